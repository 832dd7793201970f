//! Serving: load the settings, start what was asked for, say where it answers.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use steward_cli::{Connection, Output};
use steward_runtime::config::{self, Layers, Loaded, Problem};
use steward_runtime::lifecycle::Setup;
use steward_runtime::{Boot, StartError, telemetry};

use super::{InitArguments, ServerArguments};
use crate::Component;
use crate::config::Config;
use crate::installation;

/// Loads the settings from all layers.
pub(super) fn load(server: &ServerArguments, connection: &Connection) -> Result<Loaded<Config>, Vec<Problem>> {
    let mut flags = Vec::new();
    if let Some(listen) = &server.listen {
        flags.push(("server.listen".to_owned(), listen.clone()));
    }
    if let Some(folder) = &connection.data_dir {
        flags.push(("server.data_dir".to_owned(), folder.display().to_string()));
    }
    config::load(&Layers {
        file: server.config.clone(),
        environment: config::environment(),
        flags,
    })
}

/// Serves until a signal comes.
pub(super) fn run(component: Component, server: &ServerArguments, connection: &Connection) -> ExitCode {
    let config = match load(server, connection) {
        Ok(loaded) => loaded.config,
        Err(problems) => return refuse(&problems),
    };
    let json = connection.json;
    let setup = setup(component.name(), &config);
    steward_runtime::run(setup, async move |boot: Boot| {
        let ready = installation::start(component, config, &boot).await?;
        announce(&ready, json);
        Ok(())
    })
}

/// Makes what the first start makes, and ends. Where a server runs on the folder already, that was done.
pub(super) fn init(arguments: &InitArguments, connection: &Connection) -> ExitCode {
    let config = match load(&arguments.server, connection) {
        Ok(loaded) => loaded.config,
        Err(problems) => return refuse(&problems),
    };
    steward_runtime::tls::install_provider();
    let worker_token = arguments.worker_token.clone();
    let json = connection.json;
    block_on(async move {
        let folder = config.data_dir();
        match make(config, worker_token.as_deref()).await {
            Ok(()) => {
                let mut output = Output::new(json);
                if json {
                    output.line(&serde_json::json!({"data_dir": folder}).to_string());
                } else {
                    output.line(&format!("Ready to serve from {}.", folder.display()));
                }
                ExitCode::SUCCESS
            }
            Err(error) => failed(&error),
        }
    })
}

async fn make(config: Config, worker_token: Option<&Path>) -> Result<(), StartError> {
    let boot = Boot::new(config.data_dir());
    if !installation::is_served(&boot.data_dir) {
        let made = installation::init(config, &boot).await;
        boot.tasks.shutdown(Duration::from_secs(5)).await;
        made?;
    }
    match worker_token {
        Some(file) => installation::hand_out_worker_token(&boot.data_dir, file),
        None => Ok(()),
    }
}

/// Runs a future to its end on a runtime of its own.
pub(super) fn block_on(future: impl Future<Output = ExitCode>) -> ExitCode {
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let code = runtime.block_on(future);
            runtime.shutdown_timeout(Duration::from_secs(1));
            code
        }
        Err(error) => failed(&StartError::new("start the async runtime", error)),
    }
}

fn setup(name: &str, config: &Config) -> Setup {
    let mut options = telemetry::Options::new(name);
    options.config = config.telemetry.clone();
    Setup {
        boot: Boot::new(config.data_dir()),
        telemetry: options,
        patience: Duration::from_secs(config.server.stop_seconds),
    }
}

/// One line that says where everything is, for people and, as JSON, for whoever started the process.
fn announce(ready: &installation::Ready, json: bool) {
    let mut output = Output::new(json);
    if json {
        let line = serde_json::json!({
            "ready": true,
            "endpoint": ready.endpoint,
            "data_dir": ready.data_dir,
            "services": ready.services,
            "model": ready.model,
            "version": env!("CARGO_PKG_VERSION"),
        });
        output.line(&line.to_string());
        return;
    }
    let model = ready
        .model
        .as_deref()
        .unwrap_or("none (set agent.model.base_url and agent.model.name)");
    output.line(&format!(
        "steward {} ready at {} · data {} · model {model}",
        env!("CARGO_PKG_VERSION"),
        ready.endpoint,
        ready.data_dir.display()
    ));
}

fn refuse(problems: &[Problem]) -> ExitCode {
    let mut output = Output::new(false);
    output.aside("the settings are wrong:");
    output.aside(config::list(problems).trim_end());
    ExitCode::from(config::EXIT_USAGE)
}

fn failed(error: &StartError) -> ExitCode {
    Output::new(false).failure(&anyhow::anyhow!(steward_base::error_chain(error)));
    ExitCode::from(error.exit_code())
}

//! From the first line of `main` to its exit code: telemetry, TLS provider, runtime, start, signals, stop.
//!
//! The first SIGTERM or SIGINT stops softly; a second one, or the end of the patience, stops hard. The exit code is 0
//! after a stop that was asked for, 1 when something essential failed, 64 for a wrong configuration.

use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use steward_base::error_chain;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::boot::{Boot, StartError};
use crate::tasks::{Stopped, Tasks};
use crate::{config, telemetry, tls};

/// How long a soft stop waits, unless set otherwise.
pub const DEFAULT_PATIENCE: Duration = Duration::from_secs(25);

/// What [`run`] needs to know before anything is started.
#[derive(Debug)]
pub struct Setup {
    /// Where the services keep their files, and their clock, ids and tasks.
    pub boot: Boot,
    /// Logs and traces.
    pub telemetry: telemetry::Options,
    /// How long a soft stop waits before it becomes a hard one.
    pub patience: Duration,
}

/// Runs a process: `start` binds, builds and spawns into `boot.tasks` and returns once everything is up; then the
/// process lives until a signal comes or an essential task fails.
pub fn run<F, Fut>(setup: Setup, start: F) -> ExitCode
where
    F: FnOnce(Boot) -> Fut,
    Fut: Future<Output = Result<(), StartError>>,
{
    tls::install_provider();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(&StartError::new("start the async runtime", error)),
    };
    // Exporters need a runtime to start and to flush in, so the guard lives inside.
    let code = runtime.block_on(async {
        let guard = match telemetry::install(&setup.telemetry) {
            Ok(guard) => guard,
            Err(error) => return report(&error),
        };
        let code = match guard.serve(&setup.boot.tasks).await {
            Ok(()) => live(setup.boot, setup.patience, start).await,
            Err(error) => report(&error),
        };
        // Flushing blocks until the exporter's own tasks have run.
        let _ = tokio::task::spawn_blocking(move || drop(guard)).await;
        code
    });
    // What could not be dropped must not keep the process alive.
    runtime.shutdown_timeout(Duration::from_secs(1));
    code
}

async fn live<F, Fut>(boot: Boot, patience: Duration, start: F) -> ExitCode
where
    F: FnOnce(Boot) -> Fut,
    Fut: Future<Output = Result<(), StartError>>,
{
    match Signals::listen() {
        Ok(signals) => supervise(boot, patience, start, signals).await,
        Err(error) => report(&StartError::new("listen for signals", error)),
    }
}

/// Asks the process to stop, any number of times.
trait Asker {
    async fn asked(&mut self);
}

async fn supervise<F, Fut>(boot: Boot, patience: Duration, start: F, mut asker: impl Asker) -> ExitCode
where
    F: FnOnce(Boot) -> Fut,
    Fut: Future<Output = Result<(), StartError>>,
{
    let tasks = boot.tasks.clone();
    let started = tokio::select! {
        started = start(boot) => started.map(|()| true),
        () = asker.asked() => Ok(false),
    };
    match started {
        Err(error) => {
            tasks.shutdown(Duration::from_secs(5)).await;
            return report(&error);
        }
        Ok(false) => tracing::info!("stopping before everything was up"),
        Ok(true) => {
            let stopping = tasks.stopping();
            tokio::select! {
                () = stopping.cancelled() => {}
                () = asker.asked() => tracing::info!("stopping"),
            }
        }
    }
    let stopped = stop(&tasks, patience, &mut asker).await;
    tracing::info!(forced = stopped.forced, failed = stopped.failed, "stopped");
    ExitCode::from(u8::from(stopped.failed))
}

async fn stop(tasks: &Tasks, patience: Duration, asker: &mut impl Asker) -> Stopped {
    let shutdown = tasks.shutdown(patience);
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            stopped = &mut shutdown => return stopped,
            () = asker.asked() => {
                tracing::warn!("asked a second time, stopping hard");
                tasks.abort();
            }
        }
    }
}

/// Prints why the process did not start, before or after telemetry is there.
#[expect(
    clippy::print_stderr,
    reason = "this is the last thing a failed start says, telemetry may not exist"
)]
fn report(error: &StartError) -> ExitCode {
    eprintln!("steward: {}", error_chain(error));
    if let StartError::Config { problems } = error {
        eprint!("{}", config::list(problems));
    }
    ExitCode::from(error.exit_code())
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }
}

impl Asker for Signals {
    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;
    use tokio::sync::mpsc;

    const PATIENCE: Duration = Duration::from_mins(5);

    impl Asker for mpsc::UnboundedReceiver<()> {
        async fn asked(&mut self) {
            match self.recv().await {
                Some(()) => {}
                None => std::future::pending().await,
            }
        }
    }

    fn boot() -> (tempfile::TempDir, Boot) {
        let folder = tempfile::tempdir().unwrap();
        let boot = Boot::new(folder.path());
        (folder, boot)
    }

    #[tokio::test]
    async fn a_signal_that_comes_while_the_process_starts_stops_it() {
        let (_folder, boot) = boot();
        let (ask, asker) = mpsc::unbounded_channel();
        let (started, mut in_start) = mpsc::unbounded_channel();
        let live = supervise(
            boot,
            PATIENCE,
            move |boot| async move {
                let stopping = boot.tasks.stopping();
                boot.tasks.spawn("half started", Policy::ESSENTIAL, async move {
                    stopping.cancelled().await;
                    Ok(())
                });
                started.send(()).unwrap();
                std::future::pending().await
            },
            asker,
        );
        let signal = async {
            in_start.recv().await.unwrap();
            ask.send(()).unwrap();
        };
        let (code, ()) = tokio::join!(live, signal);
        assert_eq!(code, ExitCode::SUCCESS);
    }

    #[tokio::test]
    async fn a_second_signal_drops_what_does_not_end() {
        let (_folder, boot) = boot();
        let (ask, asker) = mpsc::unbounded_channel();
        let live = supervise(
            boot,
            PATIENCE,
            move |boot| async move {
                boot.tasks.spawn("stubborn", Policy::WORK, std::future::pending());
                ask.send(()).unwrap();
                ask.send(()).unwrap();
                // Kept open for the life of the process, as signals are.
                boot.tasks.at_end("signals", async move {
                    drop(ask);
                    Ok(())
                });
                Ok(())
            },
            asker,
        );
        assert_eq!(live.await, ExitCode::SUCCESS);
    }

    #[tokio::test]
    async fn a_wrong_configuration_ends_with_the_code_for_usage() {
        let (_folder, boot) = boot();
        let (_ask, asker) = mpsc::unbounded_channel();
        let problems = vec![crate::Problem::new("memory.listen", "must be an address")];
        let code = supervise(boot, PATIENCE, async move |_| StartError::check(problems), asker).await;
        assert_eq!(code, ExitCode::from(64));
    }
}

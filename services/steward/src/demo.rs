//! `steward demo`: the loop, played once with real services, real stores and real connections in a folder of its own,
//! against a model that is simulated and says so.
//!
//! Session 1 meets a lesson that cannot be guessed: a window code drawn from the seed. The reviewer writes it through the
//! gates. Session 2 succeeds only if the code stands in what the model is sent. With `--forget`, what was learned is
//! erased between the two, and session 2 fails.

mod person;
mod show;
mod simulated;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use steward_base::hash::sha256_hex;
use steward_runtime::Boot;

use crate::config::Config;
use crate::{Component, installation};
use person::{Outcome, Person};
use show::Show;

/// Names of windows; the code's other half is eight hexadecimal digits.
const WINDOWS: [&str; 16] = [
    "osprey", "kestrel", "harrier", "merlin", "goshawk", "plover", "curlew", "dunlin", "siskin", "linnet", "bunting",
    "wagtail", "dipper", "avocet", "gannet", "petrel",
];

/// Arguments of `steward demo`.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Draws the lesson; another seed, another lesson.
    #[arg(long, default_value_t = 7)]
    pub seed: u64,
    /// Erase what was learned between the two sessions.
    #[arg(long)]
    pub forget: bool,
}

/// Plays the demo. Exit code 0 when the outcome is the one that must come: success, or with `--forget` failure.
pub async fn run(arguments: Arguments, json: bool) -> ExitCode {
    steward_runtime::tls::install_provider();
    let mut show = Show::new(json);
    match Box::pin(play(&arguments, &mut show)).await {
        Ok(outcome) => {
            let expected = if arguments.forget {
                Outcome::Refused
            } else {
                Outcome::Released
            };
            show.document(arguments.seed, outcome, outcome == expected);
            if outcome == expected {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            show.problem(&error);
            ExitCode::FAILURE
        }
    }
}

/// Stops the demo when a step did not go as it must.
fn expect(otherwise: &str, holds: bool) -> anyhow::Result<()> {
    if !holds {
        bail!("the demo went wrong: {otherwise}");
    }
    Ok(())
}

/// The window code of a seed.
fn window_code(seed: u64) -> String {
    let digest = sha256_hex(format!("steward demo {seed}").as_bytes());
    let window = usize::from_str_radix(&digest[..1], 16).unwrap_or_default();
    format!("{}-{}", WINDOWS[window], &digest[8..16])
}

async fn play(arguments: &Arguments, show: &mut Show) -> anyhow::Result<Outcome> {
    let folder = tempfile::Builder::new()
        .prefix("steward-demo-")
        .tempdir()
        .context("cannot make a folder")?;
    let boot = Boot::new(folder.path().join("data"));
    let outcome = Box::pin(story(arguments, &boot, show)).await;
    let stopped = boot.tasks.shutdown(Duration::from_secs(10)).await;
    if stopped.failed {
        bail!("a task of the installation failed");
    }
    outcome
}

async fn story(arguments: &Arguments, boot: &Boot, show: &mut Show) -> anyhow::Result<Outcome> {
    let code = window_code(arguments.seed);
    let model = simulated::serve(&boot.tasks).await?;
    let ready = installation::start(Component::All, settings(&model, boot), boot).await?;
    show.begin(arguments, &code, &ready, &model);
    let person = Person::arrive(&ready, &code).await?;

    show.heading("session 1: the lesson is met");
    let first = person.session().await?;
    show.prompt_lines("what the prompt says of the code", &first.system_prompt, &code);
    let refused = person.ask(&first.name, "Release the billing service.", show).await?;
    expect("released without the code", refused == Outcome::Refused)?;
    let told = format!("From now on, give the release desk the window code {code}. Please try again: billing.");
    let released = person.ask(&first.name, &told, show).await?;
    expect("not released with the code", released == Outcome::Released)?;

    show.heading("the review, after the answer was delivered");
    let review = person.review_of(&first.name).await?;
    show.review(&review);
    show.stored(&person.notes().await?, &person.skills().await?);
    show.recall(&person.recall(&code).await?, &code);

    if arguments.forget {
        show.heading("forgetting: what was learned is erased");
        person.forget(&code).await?;
        show.stored(&person.notes().await?, &person.skills().await?);
    }

    show.heading("session 2: nobody mentions the code");
    let second = person.session().await?;
    show.prompt_lines("what the next prompt says of the code", &second.system_prompt, &code);
    let outcome = person.ask(&second.name, "Release the shop service.", show).await?;
    show.prefix(&person.read_session(&second.name).await?);
    show.outcome(outcome, arguments.forget);
    Ok(outcome)
}

/// The shipped defaults, with the simulated model, a free port, and both reviews due at the end of the second turn.
fn settings(model: &str, boot: &Boot) -> Config {
    let mut config = Config::default();
    "127.0.0.1:0".clone_into(&mut config.server.listen);
    config.server.data_dir = Some(boot.data_dir.clone());
    config.agent.model.base_url = Some(model.to_owned());
    config.agent.model.name = Some(simulated::MODEL.to_owned());
    config.agent.nudges.memory_turns = 2;
    config.agent.nudges.skill_iterations = 4;
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_seed_has_a_code_of_its_own() {
        let codes: std::collections::BTreeSet<_> = (0..200).map(window_code).collect();
        assert_eq!(codes.len(), 200);
        assert_eq!(window_code(7), window_code(7));
    }
}

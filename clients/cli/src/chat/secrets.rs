//! Values that a skill needs and that are not set on this machine (`S-8`): asked of the person, hidden, and put into the
//! environment of the commands of this conversation; on the person's word also into the team's secrets. A value is in no
//! message, and is taken out of what a command prints.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use steward_client::ClientError;
use steward_proto::skill::v1 as pb;

use crate::connect::Session;
use crate::output::{Output, printable, short};
use crate::verbs::secrets::ask;

/// Values shorter than this are not looked for in what a command prints: everything would be full of them.
const LEAST: usize = 4;

/// What this conversation has and was asked for.
#[derive(Default)]
pub(crate) struct Secrets {
    values: BTreeMap<String, String>,
    /// Asked once, whatever the answer was.
    asked: BTreeSet<String>,
    waiting: Vec<pb::SecretRequest>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets")
            .field("asked", &self.asked)
            .finish_non_exhaustive()
    }
}

impl Secrets {
    /// For the environment of a command.
    pub(super) fn values(&self) -> &BTreeMap<String, String> {
        &self.values
    }

    /// A text without the values.
    pub(super) fn hidden_in(&self, mut text: String) -> String {
        for (name, value) in self.values.iter().filter(|(_, value)| value.len() >= LEAST) {
            if text.contains(value.as_str()) {
                text = text.replace(value.as_str(), &format!("[{name}]"));
            }
        }
        text
    }

    /// Remembers a request until the person can be asked without being interrupted.
    pub(super) fn wanted(&mut self, request: pb::SecretRequest) {
        self.waiting.push(request);
    }

    /// Asks for what was wanted and not asked before. Where nobody can be asked it is said once, and the turn goes on without.
    pub(super) async fn ask(&mut self, can_ask: bool, session: &Session, output: &mut Output) {
        for request in std::mem::take(&mut self.waiting) {
            let skill = printable(short(&request.skill));
            for variable in request.variables {
                if !self.asked.insert(variable.name.clone()) {
                    continue;
                }
                if !can_ask {
                    output.warn(&format!(
                        "the skill {skill} needs {}, which is not set here; the turn goes on without",
                        printable(&variable.name)
                    ));
                    continue;
                }
                let told = self.one(&skill, &variable, request.team_store, session, output).await;
                if let Err(problem) = told {
                    output.warn(&printable(&problem));
                }
            }
        }
    }

    async fn one(
        &mut self,
        skill: &str,
        variable: &pb::SkillVariable,
        team_store: bool,
        session: &Session,
        output: &mut Output,
    ) -> Result<(), String> {
        output.aside(&format!(
            "the skill {skill} needs {}; an empty answer goes on without",
            printable(&variable.name)
        ));
        for said in [&variable.prompt, &variable.help] {
            if !said.is_empty() {
                output.aside(&printable(said));
            }
        }
        let name = variable.name.clone();
        let asked = tokio::task::spawn_blocking(move || ask(&name)).await;
        let value = match asked {
            Ok(Ok(value)) => value,
            Ok(Err(error)) => return Err(error.to_string()),
            Err(error) => return Err(error.to_string()),
        };
        if value.is_empty() {
            return Ok(());
        }
        self.values.insert(variable.name.clone(), value.clone());
        if team_store && for_the_team(&variable.name).await {
            let kept = keep(session, &variable.name, value).await;
            kept.map_err(|error| {
                format!(
                    "it is set for this conversation; the team did not take it: {}",
                    error.message
                )
            })?;
            output.aside("kept for the team");
        }
        Ok(())
    }
}

/// Whether the person wants the whole team to have it; no by default.
async fn for_the_team(name: &str) -> bool {
    let question = format!("Keep {} for the whole team? [y/N] ", printable(name));
    let answer = tokio::task::spawn_blocking(move || {
        let mut editor = rustyline::DefaultEditor::new().ok()?;
        editor.readline(&question).ok()
    });
    let answer = answer.await.ok().flatten().unwrap_or_default();
    answer.trim().eq_ignore_ascii_case("y")
}

async fn keep(session: &Session, name: &str, value: String) -> Result<(), ClientError> {
    let request = pb::SetSecretRequest {
        parent: session.user.clone(),
        secret: name.to_owned(),
        value,
    };
    session.client.secrets.set_secret(request).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_shown_nowhere() {
        let secrets = Secrets {
            values: BTreeMap::from([
                ("API_KEY".to_owned(), "v-4711-x".to_owned()),
                ("ONE".to_owned(), "1".to_owned()),
            ]),
            ..Secrets::default()
        };
        assert_eq!(
            secrets.hidden_in("key=v-4711-x; 1 try".to_owned()),
            "key=[API_KEY]; 1 try"
        );
        assert!(!format!("{secrets:?}").contains("4711"));
    }
}

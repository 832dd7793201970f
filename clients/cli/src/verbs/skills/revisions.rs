//! The past of a skill: its revisions, what changed between two, who wrote which line, and going back.

use clap::Subcommand;
use steward_proto::skill::v1 as pb;

use super::named::{Among, resolve};
use super::show;
use crate::connect::{Session, request_id};
use crate::output::{ALL, Cell, NAME, Output, SIDE, first_line, gather, printable, short, time, word};

/// Characters of a revision that people read.
const REVISION: usize = 12;

/// Verbs on revisions.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List a skill's revisions.
    History {
        /// Name, category/name or full resource name.
        skill: String,
    },
    /// Compare two revisions.
    Diff {
        /// Name, category/name or full resource name.
        skill: String,
        /// Left; nothing by default, so that all is added. The beginning of a revision is enough.
        #[arg(long, default_value = "", hide_default_value = true)]
        from: String,
        /// Right; the present one by default.
        #[arg(long, default_value = "", hide_default_value = true)]
        to: String,
    },
    /// Say for each line of a file which revision put it there, for whom, and on what evidence.
    Blame {
        /// Name, category/name or full resource name.
        skill: String,
        /// File inside the skill; SKILL.md by default.
        #[arg(default_value = "", hide_default_value = true)]
        path: String,
        /// Look from this revision back; the present one by default.
        #[arg(long, default_value = "", hide_default_value = true)]
        revision: String,
    },
    /// Make an earlier revision the present one again.
    RestoreRevision {
        /// Name, category/name or full resource name.
        skill: String,
        /// The revision, or its beginning.
        revision: String,
    },
}

/// Runs a verb.
pub(super) async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let skills = &session.client.skills;
    match verb {
        Verb::History { skill } => {
            let name = resolve(&skill, Among::Listed, session).await?;
            output.answer(&list(&name, session).await?, history)
        }
        Verb::Diff { skill, from, to } => {
            let name = resolve(&skill, Among::Listed, session).await?;
            let request = pb::DiffRevisionsRequest {
                from_revision: whole(&name, from, session).await?,
                to_revision: whole(&name, to, session).await?,
                name,
            };
            output.answer(&skills.diff_revisions(request).await?, |output, answer| {
                if answer.diff.is_empty() {
                    output.line("No difference.");
                } else {
                    output.diff(&answer.diff);
                }
            })
        }
        Verb::Blame { skill, path, revision } => {
            let name = resolve(&skill, Among::Listed, session).await?;
            let request = pb::BlameFileRequest {
                revision: whole(&name, revision, session).await?,
                name,
                path,
            };
            output.answer(&skills.blame_file(request).await?, blame)
        }
        Verb::RestoreRevision { skill, revision } => {
            let name = resolve(&skill, Among::Listed, session).await?;
            let request = pb::RestoreRevisionRequest {
                revision: whole(&name, revision, session).await?,
                name,
                base_revision: String::new(),
                request_id: request_id(),
            };
            output.answer(&skills.restore_revision(request).await?, |output, answer| {
                show::now(output, answer.skill.as_ref());
            })
        }
    }
}

async fn list(name: &str, session: &Session) -> anyhow::Result<pb::ListRevisionsResponse> {
    let answer = gather(ALL, |page_size, page_token| {
        session.client.skills.list_revisions(pb::ListRevisionsRequest {
            parent: name.to_owned(),
            page_size,
            page_token,
        })
    });
    Ok(answer.await?)
}

/// The revision that begins so. What fits none or several is left to the server to refuse.
pub(super) async fn whole(name: &str, given: String, session: &Session) -> anyhow::Result<String> {
    if given.is_empty() || given.len() >= 64 {
        return Ok(given);
    }
    let listed = list(name, session).await?;
    let mut fitting = listed
        .revisions
        .into_iter()
        .map(|revision| revision.revision)
        .filter(|revision| revision.starts_with(&given));
    match (fitting.next(), fitting.next()) {
        (Some(one), None) => Ok(one),
        _ => Ok(given),
    }
}

fn history(output: &mut Output, answer: &pb::ListRevisionsResponse) {
    let rows = answer
        .revisions
        .iter()
        .map(|revision| {
            vec![
                Cell::name(start(&revision.revision)),
                Cell::side(time(revision.create_time.as_ref())),
                revision.action.as_str().into(),
                word(revision.origin().as_str_name(), "ORIGIN_").into(),
                short(&revision.author).into(),
                first_line(&revision.reason, 50).into(),
            ]
        })
        .collect();
    output.table(
        &["revision", "when", "action", "origin", "for", "why"],
        rows,
        "No revisions.",
    );
}

fn start(revision: &str) -> String {
    revision.chars().take(REVISION).collect()
}

fn blame(output: &mut Output, answer: &pb::BlameFileResponse) {
    let unknown = pb::SkillRevision::default();
    for lines in &answer.lines {
        let revision = answer.revisions.get(lines.revision as usize).unwrap_or(&unknown);
        let origin = word(revision.origin().as_str_name(), "ORIGIN_");
        let who = format!("{origin} for {}", short(&revision.author));
        for (number, line) in (lines.first..).zip(lines.text.lines()) {
            output.line(&format!(
                "{NAME}{:12}{NAME:#} {SIDE}{:19} {:26}{number:>4}{SIDE:#} {}",
                start(&revision.revision),
                time(revision.create_time.as_ref()),
                first_line(&printable(&who), 25),
                printable(line)
            ));
        }
    }
    let rested: Vec<_> = answer
        .revisions
        .iter()
        .filter_map(|revision| {
            let evidence = revision.evidence.as_ref()?;
            Some(vec![
                Cell::name(start(&revision.revision)),
                short(&revision.session).into(),
                evidence.spans.join(" ").into(),
                first_line(&revision.reason, 50).into(),
            ])
        })
        .collect();
    if !rested.is_empty() {
        output.line("");
        output.table(&["revision", "session", "rests on", "why"], rested, "");
    }
}

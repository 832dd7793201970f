//! `steward skills`: list, view, create, edit, patch, write-file, remove-file, delete, archive, restore, purge, pin,
//! unpin, history, diff, restore-revision, index, import.

mod import;

use std::path::PathBuf;

use clap::Subcommand;
use steward_proto::skill::v1 as pb;
use steward_proto::skill::v1::manage_skill_request::Action;

use crate::connect::{Session, request_id};
use crate::output::{NOTICE, Output, first_line, printable, short, time, word};
use crate::verbs::read_text as content;

/// Verbs of `steward skills`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List the skills that you can use; broken ones with their reason.
    List {
        /// The archived ones instead.
        #[arg(long)]
        archived: bool,
        /// Only this category and those below it.
        #[arg(long, default_value = "")]
        category: String,
    },
    /// Print a skill, or one of its files.
    View {
        /// Name, category/name or full resource name.
        skill: String,
        /// File inside the skill.
        #[arg(default_value = "")]
        path: String,
    },
    /// Make a skill from a SKILL.md.
    Create {
        /// Name of the new skill.
        skill: String,
        /// File with the whole SKILL.md; `-` for standard input.
        #[arg(long)]
        file: PathBuf,
        /// Category, for example `ops/backup`.
        #[arg(long, default_value = "")]
        category: String,
        /// For the whole team (maintainers).
        #[arg(long)]
        team: bool,
    },
    /// Replace a skill's SKILL.md.
    Edit {
        /// Name, category/name or full resource name.
        skill: String,
        /// File with the whole SKILL.md; `-` for standard input.
        #[arg(long)]
        file: PathBuf,
    },
    /// Replace a text in SKILL.md or a file.
    Patch {
        /// Name, category/name or full resource name.
        skill: String,
        /// Text that stands there now.
        old: String,
        /// Text to put there.
        new: String,
        /// File inside the skill.
        #[arg(long, default_value = "")]
        path: String,
        /// Replace every occurrence.
        #[arg(long)]
        all: bool,
    },
    /// Write a support file.
    WriteFile {
        /// Name, category/name or full resource name.
        skill: String,
        /// Path below references/, templates/, scripts/ or assets/.
        path: String,
        /// File with the content; `-` for standard input.
        #[arg(long)]
        file: PathBuf,
    },
    /// Remove a support file.
    RemoveFile {
        /// Name, category/name or full resource name.
        skill: String,
        /// Path inside the skill.
        path: String,
    },
    /// Delete a skill; it can be restored from the archive.
    Delete {
        /// Name, category/name or full resource name.
        skill: String,
    },
    /// Take a skill out of listings.
    Archive {
        /// Full resource name.
        skill: String,
    },
    /// Put an archived skill back.
    Restore {
        /// Full resource name, as `list --archived` shows it.
        skill: String,
    },
    /// Destroy an archived skill and its history for good (maintainers).
    Purge {
        /// Full resource name.
        skill: String,
    },
    /// Protect a skill from deletion and from automatic changes.
    Pin {
        /// Full resource name.
        skill: String,
    },
    /// Take that protection off.
    Unpin {
        /// Full resource name.
        skill: String,
    },
    /// List a skill's revisions.
    History {
        /// Full resource name.
        skill: String,
    },
    /// Compare two revisions.
    Diff {
        /// Full resource name.
        skill: String,
        /// Left; empty for nothing.
        #[arg(long, default_value = "")]
        from: String,
        /// Right; empty for the present one.
        #[arg(long, default_value = "")]
        to: String,
    },
    /// Make an earlier revision the present one again.
    RestoreRevision {
        /// Full resource name.
        skill: String,
        /// The revision.
        revision: String,
    },
    /// Print the index that a new session is shown.
    Index,
    /// Bring in a folder of skills: folders with a SKILL.md, in categories.
    Import(import::Arguments),
}

/// Runs a verb.
pub async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    match verb {
        Verb::List { archived, category } => list(archived, category, session, output).await,
        Verb::View { skill, path } => view(skill, path, session, output).await,
        Verb::Create {
            skill,
            file,
            category,
            team,
        } => {
            let scope = if team {
                pb::SkillScope::Team
            } else {
                pb::SkillScope::User
            };
            let create = pb::CreateSkill {
                content: content(&file)?,
                category,
                scope: scope.into(),
            };
            manage(skill, Action::Create(create), session, output).await
        }
        Verb::Edit { skill, file } => {
            let edit = pb::EditSkill {
                content: content(&file)?,
            };
            manage(skill, Action::Edit(edit), session, output).await
        }
        Verb::Patch {
            skill,
            old,
            new,
            path,
            all,
        } => {
            let patch = pb::PatchSkill {
                path,
                old_text: old,
                new_text: new,
                replace_all: all,
            };
            manage(skill, Action::Patch(patch), session, output).await
        }
        Verb::WriteFile { skill, path, file } => {
            let write = pb::WriteSkillFile {
                path,
                content: content(&file)?,
            };
            manage(skill, Action::WriteFile(write), session, output).await
        }
        Verb::RemoveFile { skill, path } => {
            manage(skill, Action::RemoveFile(pb::RemoveSkillFile { path }), session, output).await
        }
        Verb::Delete { skill } => {
            manage(
                skill,
                Action::Delete(pb::DeleteSkill { absorbed_into: None }),
                session,
                output,
            )
            .await
        }
        Verb::Import(arguments) => import::run(arguments, session, output).await,
        verb => by_full_name(verb, session, output).await,
    }
}

/// The verbs that take one exact skill.
async fn by_full_name(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let skills = &session.client.skills;
    match verb {
        Verb::Archive { skill } => {
            let answer = skills.archive_skill(pb::ArchiveSkillRequest { name: skill }).await?;
            output.answer(&answer, |output, _| output.line("Archived."))
        }
        Verb::Restore { skill } => {
            let answer = skills.restore_skill(pb::RestoreSkillRequest { name: skill }).await?;
            output.answer(&answer, |output, _| output.line("Restored."))
        }
        Verb::Purge { skill } => {
            let answer = skills.purge_skill(pb::PurgeSkillRequest { name: skill }).await?;
            output.answer(&answer, |output, answer| {
                output.line(&format!("Destroyed, with {} revisions.", answer.revisions));
            })
        }
        Verb::Pin { skill } => {
            let answer = skills
                .pin_skill(pb::PinSkillRequest {
                    name: skill,
                    pinned: true,
                })
                .await?;
            output.answer(&answer, |output, _| output.line("Pinned."))
        }
        Verb::Unpin { skill } => {
            let answer = skills
                .pin_skill(pb::PinSkillRequest {
                    name: skill,
                    pinned: false,
                })
                .await?;
            output.answer(&answer, |output, _| output.line("Unpinned."))
        }
        Verb::History { skill } => {
            let request = pb::ListRevisionsRequest {
                parent: skill,
                page_size: 200,
                page_token: String::new(),
            };
            output.answer(&skills.list_revisions(request).await?, show_history)
        }
        Verb::Diff { skill, from, to } => {
            let request = pb::DiffRevisionsRequest {
                name: skill,
                from_revision: from,
                to_revision: to,
            };
            output.answer(&skills.diff_revisions(request).await?, |output, answer| {
                output.line(&printable(&answer.diff));
            })
        }
        Verb::RestoreRevision { skill, revision } => {
            let request = pb::RestoreRevisionRequest {
                name: skill,
                revision,
                base_revision: String::new(),
                request_id: request_id(),
            };
            output.answer(&skills.restore_revision(request).await?, |output, _| {
                output.line("Restored.");
            })
        }
        _ => {
            let request = pb::GetIndexRequest {
                user: session.user.clone(),
                ..pb::GetIndexRequest::default()
            };
            output.answer(&skills.get_index(request).await?, |output, answer| {
                output.line(if answer.text.is_empty() {
                    "No skills yet."
                } else {
                    answer.text.trim_end()
                });
            })
        }
    }
}

async fn list(archived: bool, category: String, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let request = pb::ListSkillsRequest {
        parent: session.user.clone(),
        archived,
        category,
        page_size: 1000,
        page_token: String::new(),
    };
    output.answer(&session.client.skills.list_skills(request).await?, |output, answer| {
        let rows = answer
            .skills
            .iter()
            .map(|skill| {
                let mut marks = vec![word(skill.provenance().as_str_name(), "SKILL_PROVENANCE_")];
                if skill.pinned {
                    marks.push("pinned".to_owned());
                }
                let uses = skill.r#use.unwrap_or_default().use_count;
                vec![
                    skill.category.clone(),
                    short(&skill.name).to_owned(),
                    skill.description.clone(),
                    marks.join(", "),
                    uses.to_string(),
                    skill.name.clone(),
                ]
            })
            .collect();
        output.table(
            &["category", "skill", "for", "made by", "uses", "name"],
            rows,
            "No skills.",
        );
        for broken in &answer.broken {
            output.aside(&format!(
                "broken: {}: {}",
                broken.name,
                printable(&broken.broken_reason)
            ));
        }
    })
}

async fn view(skill: String, path: String, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let request = pb::ViewSkillRequest {
        parent: session.user.clone(),
        skill,
        path,
        ..pb::ViewSkillRequest::default()
    };
    output.answer(&session.client.skills.view_skill(request).await?, |output, answer| {
        if answer.binary {
            output.line("The file is not text.");
        } else {
            output.line(printable(&answer.content).trim_end_matches('\n'));
        }
        if answer.files.len() > 1 {
            let names: Vec<_> = answer.files.iter().map(|file| printable(&file.path)).collect();
            output.aside(&format!("files: {}", names.join(", ")));
        }
        if let Some(skill) = answer.skill.as_ref().filter(|skill| !skill.warning.is_empty()) {
            output.aside(&format!("warning: {}", printable(&skill.warning)));
        }
    })
}

async fn manage(skill: String, action: Action, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let request = pb::ManageSkillRequest {
        parent: session.user.clone(),
        skill,
        action: Some(action),
        request_id: request_id(),
        ..pb::ManageSkillRequest::default()
    };
    output.answer(&session.client.skills.manage_skill(request).await?, |output, answer| {
        if answer.approximate {
            output.line(&format!(
                "{NOTICE}The text matched only after blanks were ignored; check the result.{NOTICE:#}"
            ));
        }
        if let Some(skill) = &answer.skill {
            let state = word(skill.state().as_str_name(), "SKILL_STATE_");
            output.line(&format!(
                "{} is at revision {} ({state}).",
                skill.name,
                first_line(&skill.revision, 13)
            ));
        }
    })
}

fn show_history(output: &mut Output, answer: &pb::ListRevisionsResponse) {
    let rows = answer
        .revisions
        .iter()
        .map(|revision| {
            vec![
                revision.revision.clone(),
                time(revision.create_time.as_ref()),
                revision.action.clone(),
                word(revision.origin().as_str_name(), "ORIGIN_"),
                short(&revision.author).to_owned(),
                first_line(&revision.reason, 50),
            ]
        })
        .collect();
    output.table(
        &["revision", "when", "action", "origin", "for", "why"],
        rows,
        "No revisions.",
    );
}

//! The six changes of a skill's text, as a person makes them.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use steward_proto::skill::v1 as pb;
use steward_proto::skill::v1::manage_skill_request::Action;

use super::show;
use crate::connect::{Session, request_id};
use crate::output::Output;
use crate::verbs::read_text;

/// How a change is made.
#[derive(Debug, Clone, Default, Args)]
pub struct How {
    /// Why, for the history.
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
    /// Say whether it could be done; keep nothing.
    #[arg(long)]
    dry_run: bool,
}

/// Changes of a skill.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Make a skill from a SKILL.md.
    Create {
        /// Name of the new skill.
        skill: String,
        /// File with the whole SKILL.md; `-` for standard input.
        #[arg(long)]
        file: PathBuf,
        /// Category, for example `ops/backup`.
        #[arg(long, default_value = "", hide_default_value = true)]
        category: String,
        /// For the whole team (maintainers).
        #[arg(long)]
        team: bool,
        #[command(flatten)]
        how: How,
    },
    /// Replace a skill's SKILL.md.
    Edit {
        /// Name, category/name or full resource name.
        skill: String,
        /// File with the whole SKILL.md; `-` for standard input.
        #[arg(long)]
        file: PathBuf,
        #[command(flatten)]
        how: How,
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
        #[arg(long, default_value = "", hide_default_value = true)]
        path: String,
        /// Replace every occurrence.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        how: How,
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
        #[command(flatten)]
        how: How,
    },
    /// Remove a support file.
    RemoveFile {
        /// Name, category/name or full resource name.
        skill: String,
        /// Path inside the skill.
        path: String,
        #[command(flatten)]
        how: How,
    },
    /// Delete a skill; it can be restored from the archive.
    Delete {
        /// Name, category/name or full resource name.
        skill: String,
        #[command(flatten)]
        how: How,
    },
}

/// Runs a verb.
pub(super) async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let (skill, action, how) = read(verb)?;
    let request = pb::ManageSkillRequest {
        parent: session.user.clone(),
        skill,
        action: Some(action),
        request_id: request_id(),
        reason: how.reason,
        validate_only: how.dry_run,
        ..pb::ManageSkillRequest::default()
    };
    output.answer(&session.client.skills.manage_skill(request).await?, |output, answer| {
        show::managed(output, answer);
        if how.dry_run {
            output.aside("nothing was kept");
        }
    })
}

fn read(verb: Verb) -> anyhow::Result<(String, Action, How)> {
    Ok(match verb {
        Verb::Create {
            skill,
            file,
            category,
            team,
            how,
        } => {
            let create = pb::CreateSkill {
                content: read_text(&file)?,
                category,
                scope: scope(team).into(),
            };
            (skill, Action::Create(create), how)
        }
        Verb::Edit { skill, file, how } => {
            let edit = pb::EditSkill {
                content: read_text(&file)?,
            };
            (skill, Action::Edit(edit), how)
        }
        Verb::Patch {
            skill,
            old,
            new,
            path,
            all,
            how,
        } => {
            let patch = pb::PatchSkill {
                path,
                old_text: old,
                new_text: new,
                replace_all: all,
            };
            (skill, Action::Patch(patch), how)
        }
        Verb::WriteFile { skill, path, file, how } => {
            let write = pb::WriteSkillFile {
                path,
                content: read_text(&file)?,
            };
            (skill, Action::WriteFile(write), how)
        }
        Verb::RemoveFile { skill, path, how } => (skill, Action::RemoveFile(pb::RemoveSkillFile { path }), how),
        Verb::Delete { skill, how } => {
            let delete = pb::DeleteSkill { absorbed_into: None };
            (skill, Action::Delete(delete), how)
        }
    })
}

/// Whose a new skill is.
pub(super) const fn scope(team: bool) -> pb::SkillScope {
    if team {
        pb::SkillScope::Team
    } else {
        pb::SkillScope::User
    }
}

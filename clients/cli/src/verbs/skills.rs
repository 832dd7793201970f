//! `steward skills`: written know-how: list, read, change, put away, bring back, bring in, give out, and who wrote what.

mod bundles;
mod change;
mod commands;
mod export;
mod folder;
mod import;
mod inbox;
mod keep;
mod named;
mod report;
mod revisions;
mod show;

use clap::Subcommand;
use steward_proto::skill::v1 as pb;

use crate::connect::{Session, request_id};
use crate::output::{ALL, Output, gather, printable};

/// Verbs of `steward skills`. A skill is given by its name, its category and name, or its full resource name.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List the skills that you can use; broken ones with their reason.
    List {
        /// The archived ones instead.
        #[arg(long)]
        archived: bool,
        /// Only this category and those below it.
        #[arg(long, default_value = "", hide_default_value = true)]
        category: String,
    },
    /// Show what is known about a skill: scope, state, use.
    Show {
        /// Name, category/name or full resource name.
        skill: String,
        /// Look among the archived ones.
        #[arg(long)]
        archived: bool,
    },
    /// Print a skill, or one of its files.
    View {
        /// Name, category/name or full resource name.
        skill: String,
        /// File inside the skill.
        #[arg(default_value = "", hide_default_value = true)]
        path: String,
    },
    #[command(flatten)]
    Change(change::Verb),
    #[command(flatten)]
    Keep(keep::Verb),
    #[command(flatten)]
    Revisions(revisions::Verb),
    /// Print the index that a new session is shown; what is not said of the session filters nothing.
    Index {
        /// Operating system on which its tools run, for example `linux`.
        #[arg(long, default_value = "", hide_default_value = true)]
        platform: String,
        /// Kind of environment in which it runs, for example `docker`. May be repeated.
        #[arg(long = "environment", value_name = "KIND")]
        environments: Vec<String>,
        /// A tool that it offers. May be repeated.
        #[arg(long = "tool", value_name = "NAME")]
        tools: Vec<String>,
    },
    #[command(flatten)]
    Commands(commands::Verb),
    /// Skills that are opened together under one name.
    #[command(subcommand)]
    Bundles(bundles::Verb),
    /// Propose a skill of your own for the team's library.
    Propose {
        /// Name, category/name or full resource name.
        skill: String,
        /// Why it should be the team's.
        #[arg(long, default_value = "", hide_default_value = true)]
        reason: String,
        /// Category in the team's library; as it is by default.
        #[arg(long, default_value = "", hide_default_value = true)]
        category: String,
    },
    /// Skills that are proposed for the team's library.
    #[command(subcommand)]
    Inbox(inbox::Verb),
    /// Say how a folder follows the Agent Skills specification, without bringing it in.
    Check(import::Check),
    /// Bring in skills byte for byte: folders with a SKILL.md, in categories.
    Import(import::Arguments),
    /// Write skills to folders, byte for byte.
    Export(export::Arguments),
}

/// Runs a verb.
pub async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let skills = &session.client.skills;
    match verb {
        Verb::List { archived, category } => {
            let answer = gather(ALL, |page_size, page_token| {
                skills.list_skills(pb::ListSkillsRequest {
                    parent: session.user.clone(),
                    archived,
                    category: category.clone(),
                    page_size,
                    page_token,
                })
            });
            output.answer(&answer.await?, show::list)
        }
        Verb::Show { skill, archived } => {
            let name = named::resolve(&skill, named::among(archived), session).await?;
            let answer = skills.get_skill(pb::GetSkillRequest { name }).await?;
            output.answer(&answer, |output, answer| {
                if let Some(skill) = &answer.skill {
                    show::skill(output, skill);
                }
            })
        }
        Verb::View { skill, path } => {
            let request = pb::ViewSkillRequest {
                parent: session.user.clone(),
                skill,
                path,
                ..pb::ViewSkillRequest::default()
            };
            output.answer(&skills.view_skill(request).await?, show::view)
        }
        Verb::Change(verb) => change::run(verb, session, output).await,
        Verb::Keep(verb) => keep::run(verb, session, output).await,
        Verb::Revisions(verb) => revisions::run(verb, session, output).await,
        Verb::Index {
            platform,
            environments,
            tools,
        } => {
            let request = pb::GetIndexRequest {
                user: session.user.clone(),
                tools,
                platform,
                environments,
            };
            index(request, session, output).await
        }
        Verb::Commands(verb) => commands::run(verb, session, output).await,
        Verb::Bundles(verb) => bundles::run(verb, session, output).await,
        Verb::Propose {
            skill,
            reason,
            category,
        } => {
            let request = pb::ProposeSkillRequest {
                parent: session.user.clone(),
                skill,
                reason,
                category,
                request_id: request_id(),
            };
            let answer = session.client.skill_proposals.propose_skill(request).await?;
            output.answer(&answer, |output, answer| inbox::show(output, answer.proposal.as_ref()))
        }
        Verb::Inbox(verb) => inbox::run(verb, session, output).await,
        Verb::Check(arguments) => import::check(arguments, session, output).await,
        Verb::Import(arguments) => import::run(arguments, session, output).await,
        Verb::Export(arguments) => export::run(arguments, session, output).await,
    }
}

async fn index(request: pb::GetIndexRequest, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    output.answer(&session.client.skills.get_index(request).await?, |output, answer| {
        if answer.text.is_empty() {
            output.line("No skills yet.");
        } else {
            output.line(printable(&answer.text).trim_end());
        }
    })
}

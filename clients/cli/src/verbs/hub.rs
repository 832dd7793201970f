//! `steward hub`: skills from outside: search, look at, approve, install, keep up to date, and what was done.

mod fetch;
mod log;
mod publish;
mod show;
mod update;
mod withdraw;

use clap::{Args, Subcommand};
use steward_proto::hub::v1 as pb;

use crate::connect::Session;
use crate::fault::at_least_one;
use crate::output::{ALL, Output, gather};

/// Verbs of `steward hub`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Search all sources at once.
    Search {
        /// Words, or the address of a site.
        query: Vec<String>,
        /// At most this many of each source.
        #[arg(long, default_value_t = 20, value_parser = at_least_one::<u16>)]
        limit: u16,
    },
    /// Bring a skill into quarantine and show what was found in it; nothing is installed.
    Inspect {
        /// `source:reference`, as a search shows it.
        reference: String,
    },
    /// Install a skill: one from quarantine, or one that is brought there first (maintainers).
    Install {
        /// `source:reference`, or the id or full name of an item in quarantine.
        skill: String,
        #[command(flatten)]
        choice: Choice,
    },
    /// Let an item through that waits for a person, or with --force one that is blocked for caution (maintainers).
    Approve {
        /// Id or full name of the item.
        item: String,
        /// Why; required with --force.
        #[arg(default_value = "", hide_default_value = true)]
        reason: String,
        /// Lift a block for caution; nothing lifts what is dangerous.
        #[arg(long)]
        force: bool,
    },
    /// Turn an item down for good (maintainers).
    Reject {
        /// Id or full name of the item.
        item: String,
        /// Why.
        #[arg(default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Accept one finding for its evidence, so that it changes no verdict from now on (maintainers).
    Accept {
        /// Fingerprint of the finding, as `inspect --json` and `sarif` show it.
        fingerprint: String,
        /// Why it is no harm.
        reason: String,
    },
    /// List what the hub installed.
    List,
    /// Show an installed skill with its lock and the scan that let it in.
    Show {
        /// Name of the skill.
        skill: String,
    },
    /// List what is in quarantine, oldest first.
    Items {
        /// At most this many.
        #[arg(long, default_value_t = ALL, hide_default_value = true, value_parser = at_least_one::<usize>)]
        limit: usize,
    },
    /// Show an item of quarantine: findings, capabilities, and what it would change.
    Item {
        /// Id or full name of the item.
        item: String,
    },
    /// Compare an installed skill with its lock; exit code 1 when it differs.
    Verify {
        /// Name of the skill.
        skill: String,
    },
    /// Take an installed skill out of use (maintainers).
    Uninstall {
        /// Name of the skill.
        skill: String,
    },
    /// Show what an update of a skill would do and bring.
    Plan {
        /// Name of the skill.
        skill: String,
    },
    /// Bring skills up to date, each from the source it came from (maintainers).
    Update {
        /// Names of the skills; all by default.
        skills: Vec<String>,
        #[command(flatten)]
        choice: Choice,
    },
    /// Scan everything that is installed with today's rules; exit code 1 when something got worse (maintainers).
    Rescan,
    /// Withdraw a tree of files: nobody installs it any more, and where it is installed it is out of agents' sight at once
    /// (maintainers).
    Revoke {
        /// Name of an installed skill, or the digest of a tree.
        tree: String,
        /// Why.
        reason: String,
        /// Only keep it from being installed; where it is installed it stays, with a warning.
        #[arg(long)]
        yank: bool,
    },
    /// Overrule a withdrawal, whoever said it (maintainers).
    Reinstate {
        /// Name of an installed skill, or the digest of a tree.
        tree: String,
        /// Why.
        reason: String,
    },
    /// List what is withdrawn, or was and is reinstated.
    Withdrawn,
    /// Ask sources and advisories whether they withdrew what is installed; exit code 1 when something is withdrawn
    /// (maintainers).
    Check,
    /// Give a skill of the team out to others as it is now (maintainers).
    Publish {
        /// Name of the skill in the team's library, or its resource name.
        skill: String,
    },
    /// No longer give a skill out (maintainers).
    Unpublish {
        /// Name of the skill.
        skill: String,
    },
    /// List what the team gives out.
    Published,
    /// List what was done, oldest first.
    Audit {
        /// At most this many.
        #[arg(long, default_value_t = ALL, hide_default_value = true, value_parser = at_least_one::<usize>)]
        limit: usize,
    },
    /// Check that the log is whole and that an entry is in it; exit code 1 when not.
    Prove {
        /// Number of the entry; the newest by default.
        #[arg(default_value_t = 0, hide_default_value = true)]
        entry: u64,
    },
    /// Print the findings of an item as SARIF.
    Sarif {
        /// Id or full name of the item.
        item: String,
    },
}

/// What an install may do besides.
#[derive(Debug, Clone, Copy, Args)]
pub struct Choice {
    /// Set a skill of the same name aside that did not come from this source; it can be restored.
    #[arg(long)]
    pub replace: bool,
    /// Merge with what was changed here since the last install.
    #[arg(long, conflicts_with = "give_up_changes")]
    pub merge: bool,
    /// Give up what was changed here since the last install; its revision stays.
    #[arg(long)]
    pub give_up_changes: bool,
}

impl Choice {
    fn request(self, name: &str) -> pb::InstallHubItemRequest {
        let local = match (self.merge, self.give_up_changes) {
            (true, _) => pb::HubLocalChanges::Merge,
            (_, true) => pb::HubLocalChanges::GiveUp,
            (false, false) => pb::HubLocalChanges::Keep,
        };
        pb::InstallHubItemRequest {
            name: name.to_owned(),
            replace: self.replace,
            local_changes: local.into(),
        }
    }

    /// Whether it says what happens to changes made here.
    const fn takes_changes(self) -> bool {
        self.merge || self.give_up_changes
    }
}

fn item_name(session: &Session, given: &str) -> String {
    session.child("hubItems", given)
}

fn skill_name(session: &Session, given: &str) -> String {
    session.child("hubSkills", given)
}

/// Runs a verb.
pub async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    match verb {
        Verb::Search { query, limit } => fetch::search(&query.join(" "), limit, session, output).await,
        Verb::Inspect { reference } => fetch::inspect(&reference, session, output).await,
        Verb::Install { skill, choice } => fetch::install(&skill, choice, session, output).await,
        Verb::Update { skills, choice } => update::update(skills, choice, session, output).await,
        Verb::Rescan => update::rescan(session, output).await,
        Verb::Revoke { tree, reason, yank } => withdraw::revoke(&tree, reason, yank, session, output).await,
        Verb::Reinstate { tree, reason } => withdraw::reinstate(&tree, reason, session, output).await,
        Verb::Withdrawn => withdraw::list(session, output).await,
        Verb::Check => withdraw::check(session, output).await,
        Verb::Publish { skill } => publish::publish(&skill, session, output).await,
        Verb::Unpublish { skill } => publish::unpublish(&skill, session, output).await,
        Verb::Published => publish::list(session, output).await,
        Verb::Audit { limit } => log::list(limit, session, output).await,
        Verb::Prove { entry } => log::prove(entry, session, output).await,
        Verb::Approve { .. } | Verb::Reject { .. } | Verb::Accept { .. } => decide(verb, session, output).await,
        Verb::Items { .. } | Verb::Item { .. } | Verb::Sarif { .. } => items(verb, session, output).await,
        Verb::List | Verb::Show { .. } | Verb::Verify { .. } | Verb::Uninstall { .. } | Verb::Plan { .. } => {
            installed(verb, session, output).await
        }
    }
}

async fn decide(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let hub = &session.client.hub;
    match verb {
        Verb::Approve { item, reason, force } => {
            let name = item_name(session, &item);
            let request = pb::ReleaseHubItemRequest { name, reason, force };
            output.answer(&hub.release_hub_item(request).await?, |output, answer| {
                let id = answer.item.as_ref().map_or("", |item| crate::output::short(&item.name));
                output.line(&format!("Approved. `steward hub install {id}` installs it."));
            })
        }
        Verb::Reject { item, reason } => {
            let name = item_name(session, &item);
            let request = pb::RejectHubItemRequest { name, reason };
            output.answer(&hub.reject_hub_item(request).await?, |output, _| {
                output.line("Rejected; its bytes are dropped.");
            })
        }
        Verb::Accept { fingerprint, reason } => {
            let request = pb::AcceptHubFindingRequest {
                parent: session.team.clone(),
                fingerprint,
                reason,
            };
            output.answer(&hub.accept_hub_finding(request).await?, |output, _| {
                output.line("Accepted, for this evidence only; what is fetched from now on is judged without it.");
            })
        }
        _ => Ok(()),
    }
}

async fn items(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let hub = &session.client.hub;
    match verb {
        Verb::Items { limit } => {
            let answer = gather(limit, |page_size, page_token| {
                hub.list_hub_items(pb::ListHubItemsRequest {
                    parent: session.team.clone(),
                    page_size,
                    page_token,
                })
            });
            output.answer(&answer.await?, show::items)
        }
        Verb::Item { item } => {
            let name = item_name(session, &item);
            let answer = hub.get_hub_item(pb::GetHubItemRequest { name }).await?;
            output.answer(&answer, show::item_with_diff)
        }
        Verb::Sarif { item } => {
            let name = item_name(session, &item);
            let answer = hub.export_hub_findings(pb::ExportHubFindingsRequest { name }).await?;
            // The document is the answer, for people and programs alike.
            output.document(&serde_json::from_str(&answer.sarif_json)?)
        }
        _ => Ok(()),
    }
}

async fn installed(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let hub = &session.client.hub;
    match verb {
        Verb::List => {
            let answer = gather(ALL, |page_size, page_token| {
                hub.list_hub_skills(pb::ListHubSkillsRequest {
                    parent: session.team.clone(),
                    page_size,
                    page_token,
                })
            });
            output.answer(&answer.await?, show::skills)
        }
        Verb::Show { skill } => {
            let name = skill_name(session, &skill);
            let answer = hub.get_hub_skill(pb::GetHubSkillRequest { name }).await?;
            output.answer(&answer, |output, answer| {
                show::skill(output, answer.skill.as_ref());
                show::report(output, answer.report.as_ref());
            })
        }
        Verb::Verify { skill } => {
            let name = skill_name(session, &skill);
            let answer = hub.verify_hub_skill(pb::VerifyHubSkillRequest { name }).await?;
            output.answer(&answer, |output, answer| {
                if answer.intact {
                    output.line("It is what was installed.");
                }
                show::drift(output, answer.drift.as_ref());
            })?;
            if answer.intact { Ok(()) } else { Err(crate::Said.into()) }
        }
        Verb::Uninstall { skill } => {
            let name = skill_name(session, &skill);
            let request = pb::UninstallHubSkillRequest { name };
            output.answer(&hub.uninstall_hub_skill(request).await?, |output, _| {
                output.line("Uninstalled; the library's archive still has it.");
            })
        }
        Verb::Plan { skill } => {
            let name = skill_name(session, &skill);
            let answer = hub.plan_hub_update(pb::PlanHubUpdateRequest { name }).await?;
            output.answer(&answer, |output, answer| show::plan(output, answer.plan.as_ref()))?;
            // Nobody knows then whether there is something newer.
            match answer.plan.as_ref().map(pb::HubPlan::state) {
                Some(pb::HubPlanState::SourceUnavailable) => Err(crate::Said.into()),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

//! `steward skills bundles`: skills that are opened together under one name.

use clap::Subcommand;
use steward_proto::skill::v1 as pb;

use super::change::scope;
use crate::connect::Session;
use crate::fault::Fault;
use crate::output::{Cell, Output, Tone, printable, short, time};

/// Verbs of `steward skills bundles`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List the bundles that you see, your own before the team's.
    List,
    /// Show a bundle.
    Show {
        /// Slug, or full name.
        bundle: String,
    },
    /// Make a bundle, or replace the one of that name.
    Save {
        /// Slug: what is typed after the slash.
        bundle: String,
        /// Skills, in the order in which they are opened.
        #[arg(required = true)]
        skills: Vec<String>,
        /// One line that says what it is for.
        #[arg(long, default_value = "", hide_default_value = true)]
        description: String,
        /// What the agent is told beside the skills.
        #[arg(long, default_value = "", hide_default_value = true)]
        instruction: String,
        /// For the whole team (maintainers).
        #[arg(long)]
        team: bool,
    },
    /// Delete a bundle; its skills stay.
    Delete {
        /// Slug, or full name.
        bundle: String,
    },
}

/// Runs a verb.
pub(super) async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let bundles = &session.client.bundles;
    match verb {
        Verb::List => output.answer(&list(session).await?, |output, answer| {
            let rows = answer.bundles.iter().map(|bundle| {
                let whose = if bundle.name.contains("/users/") {
                    "yours"
                } else {
                    "the team's"
                };
                vec![
                    Cell::name(format!("/{}", short(&bundle.name))),
                    whose.into(),
                    bundle.skills.join(" ").into(),
                    bundle.description.as_str().into(),
                    Cell::toned(missing(bundle), Tone::Notice),
                ]
            });
            output.table(&["bundle", "whose", "opens", "for", ""], rows.collect(), "No bundles.");
        }),
        Verb::Show { bundle } => {
            let name = find(&bundle, session).await?;
            output.answer(
                &bundles.get_bundle(pb::GetBundleRequest { name }).await?,
                |output, answer| {
                    show(output, answer.bundle.as_ref());
                },
            )
        }
        Verb::Save {
            bundle: slug,
            skills,
            description,
            instruction,
            team,
        } => {
            let request = pb::SaveBundleRequest {
                parent: session.user.clone(),
                etag: present(&slug, team, session).await?,
                slug,
                scope: scope(team).into(),
                bundle: Some(pb::Bundle {
                    description,
                    skills,
                    instruction,
                    ..pb::Bundle::default()
                }),
            };
            output.answer(&bundles.save_bundle(request).await?, |output, answer| {
                show(output, answer.bundle.as_ref());
            })
        }
        Verb::Delete { bundle } => {
            let name = find(&bundle, session).await?;
            let answer = bundles.delete_bundle(pb::DeleteBundleRequest { name }).await?;
            output.answer(&answer, |output, _| {
                output.line("Deleted; its skills are where they were.");
            })
        }
    }
}

async fn list(session: &Session) -> anyhow::Result<pb::ListBundlesResponse> {
    let request = pb::ListBundlesRequest {
        parent: session.user.clone(),
    };
    Ok(session.client.bundles.list_bundles(request).await?)
}

/// Full name of a bundle given by its slug; a person's own wins over the team's, as it does when it is typed.
async fn find(given: &str, session: &Session) -> anyhow::Result<String> {
    if given.contains("/bundles/") {
        return Ok(given.to_owned());
    }
    let slug = given.trim_start_matches('/');
    let listed = list(session).await?.bundles;
    let found = listed.into_iter().find(|bundle| short(&bundle.name) == slug);
    let Some(bundle) = found else {
        let message = format!("no bundle is called {slug}; `steward skills bundles list` shows them");
        return Err(Fault::of("BUNDLE_NOT_FOUND", message).into());
    };
    Ok(bundle.name)
}

/// Etag of the bundle that stands in the scope under this slug; empty without one.
async fn present(slug: &str, team: bool, session: &Session) -> anyhow::Result<String> {
    let listed = list(session).await?.bundles;
    let same = |bundle: &pb::Bundle| short(&bundle.name) == slug && bundle.name.contains("/users/") != team;
    Ok(listed
        .into_iter()
        .find(same)
        .map(|bundle| bundle.etag)
        .unwrap_or_default())
}

fn missing(bundle: &pb::Bundle) -> String {
    if bundle.unresolved.is_empty() {
        String::new()
    } else {
        format!("not found: {}", bundle.unresolved.join(" "))
    }
}

fn show(output: &mut Output, bundle: Option<&pb::Bundle>) {
    let Some(bundle) = bundle else { return };
    output.record(vec![
        ("name", Cell::name(bundle.name.as_str())),
        ("typed", format!("/{}", short(&bundle.name)).into()),
        ("for", bundle.description.as_str().into()),
        ("opens", bundle.skills.join("\n").into()),
        ("not found", Cell::toned(bundle.unresolved.join(" "), Tone::Notice)),
        ("created", time(bundle.create_time.as_ref()).into()),
        ("changed", time(bundle.update_time.as_ref()).into()),
    ]);
    if !bundle.instruction.is_empty() {
        output.line("");
        output.line(&printable(&bundle.instruction));
    }
}

//! `steward models`: which models an installation has, and what each is for.

use clap::Subcommand;
use steward_proto::agent::v1 as pb;

use crate::connect::Session;
use crate::output::{Cell, Output};

/// Verbs of `steward models`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List the models that a session may use, and where they are asked.
    List,
}

/// Runs a verb.
pub async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    match verb {
        Verb::List => {
            let request = pb::GetModelRouteRequest {};
            output.answer(&session.client.model.get_model_route(request).await?, show)
        }
    }
}

fn show(output: &mut Output, route: &pb::GetModelRouteResponse) {
    if !route.configured {
        output.line("No model is configured. Set agent.model.base_url and agent.model.name for the server.");
        return;
    }
    let mut models: Vec<&str> = route.models.iter().map(String::as_str).collect();
    for named in [route.model.as_str(), route.review_model.as_str()] {
        if !named.is_empty() && !models.contains(&named) {
            models.push(named);
        }
    }
    let rows = models.iter().map(|model| {
        let mut uses = Vec::new();
        if *model == route.model {
            uses.push("turns");
        }
        if *model == route.review_model {
            uses.push("reviews");
        }
        if uses.is_empty() {
            uses.push("where asked for");
        }
        vec![Cell::name(*model), uses.join(", ").into()]
    });
    output.table(&["model", "used for"], rows.collect(), "");
    let window = match route.context_window {
        0 => String::new(),
        tokens => format!("{tokens} tokens"),
    };
    output.line("");
    output.record(vec![
        ("provider", route.provider.as_str().into()),
        ("address", route.base_url.as_str().into()),
        ("window", window.into()),
    ]);
}

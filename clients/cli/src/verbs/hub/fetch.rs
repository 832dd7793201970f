//! What asks a source: searching, bringing into quarantine, installing.

use steward_proto::hub::v1 as pb;
use steward_proto::hub::v1::fetch_hub_item_response::Event;
use steward_proto::hub::v1::hub_progress::Stage;

use super::{Choice, item_name, show};
use crate::connect::{Session, request_id};
use crate::output::{Output, counted, short, size};

pub(super) async fn search(query: &str, limit: u16, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let request = pb::SearchHubRequest {
        parent: session.team.clone(),
        query: query.to_owned(),
        source_limit: limit.into(),
    };
    output.progress("asking the sources");
    let answer = session.client.hub.search_hub(request).await;
    output.progress("");
    output.answer(&answer?, show::results)
}

/// Brings an item, telling on the side how far it is.
async fn bring(reference: &str, session: &Session, output: &mut Output) -> anyhow::Result<pb::HubItem> {
    let request = pb::FetchHubItemRequest {
        parent: session.team.clone(),
        reference: reference.to_owned(),
        request_id: request_id(),
    };
    let mut stream = session.client.hub.fetch_hub_item(request).await?;
    loop {
        let answer = stream.message().await;
        match answer {
            Ok(Some(pb::FetchHubItemResponse {
                event: Some(Event::Progress(progress)),
            })) => tell(&progress, output),
            Ok(Some(pb::FetchHubItemResponse {
                event: Some(Event::Item(item)),
            })) => {
                output.progress("");
                return Ok(item);
            }
            Ok(Some(_)) => {}
            Ok(None) => anyhow::bail!("the server ended the answer without an item"),
            Err(error) => {
                output.progress("");
                return Err(error.into());
            }
        }
    }
}

/// A stage of a fetch.
pub(super) fn tell(progress: &pb::HubProgress, output: &mut Output) {
    let text = match progress.stage() {
        Stage::Unspecified => return,
        Stage::Resolving => format!("asking {}", progress.detail),
        Stage::Fetching => format!("fetching {}", progress.detail),
        Stage::Scanning => {
            let files = usize::try_from(progress.files).unwrap_or_default();
            format!("scanning {}, {}", counted(files, "file"), size(progress.size_bytes))
        }
    };
    output.progress(&text);
}

pub(super) async fn inspect(reference: &str, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let name = bring(reference, session, output).await?.name;
    let answer = session.client.hub.get_hub_item(pb::GetHubItemRequest { name }).await?;
    output.answer(&answer, show::item_with_diff)
}

/// Whether it names an item in quarantine: sources have a colon, ids have not.
fn is_item(session: &Session, given: &str) -> bool {
    let id = given
        .strip_prefix(&format!("{}/hubItems/", session.team))
        .unwrap_or(given);
    id.len() == 32 && id.chars().all(|character| character.is_ascii_hexdigit())
}

pub(super) async fn install(skill: &str, choice: Choice, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let name = if is_item(session, skill) {
        item_name(session, skill)
    } else {
        let item = bring(skill, session, output).await?;
        if item.state() != pb::HubItemState::Approved && !output.is_json() {
            show::item(output, Some(&item));
            advise(&item, output);
        }
        item.name
    };
    // The server says why it cannot be installed, if it cannot.
    let answer = session.client.hub.install_hub_item(choice.request(&name)).await?;
    output.answer(&answer, show::installed)
}

/// What a maintainer can do about an item that is not approved.
fn advise(item: &pb::HubItem, output: &mut Output) {
    let id = short(&item.name);
    let verdict = item.report.as_ref().map(pb::HubReport::verdict);
    match (item.state(), verdict) {
        (pb::HubItemState::Blocked, Some(pb::HubVerdict::Caution)) => {
            output.aside(&format!(
                "a maintainer who knows better: `steward hub approve {id} REASON --force`"
            ));
        }
        (pb::HubItemState::AwaitingApproval, _) => {
            output.aside(&format!("a maintainer decides: `steward hub approve {id}`"));
        }
        _ => {}
    }
}

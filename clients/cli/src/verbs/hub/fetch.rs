//! What asks a source: searching, bringing into quarantine, installing.

use steward_client::ClientError;
use steward_proto::hub::v1 as pb;
use steward_proto::hub::v1::fetch_hub_item_response::Event;
use steward_proto::hub::v1::hub_progress::Stage;

use super::{Choice, item_name, show};
use crate::connect::{Session, request_id};
use crate::fault::Fault;
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
    let answer = answer?;
    somebody_looked(query, &answer)?;
    output.answer(&answer, show::results)
}

/// Refuses to call it "nothing found" where nobody could look. What one source has found is an answer, whatever the others do.
fn somebody_looked(query: &str, answer: &pb::SearchHubResponse) -> Result<(), Fault> {
    if answer.sources.is_empty() {
        return Err(Fault::of(
            "HUB_NO_SOURCE",
            "no source is switched on, so none was asked",
        ));
    }
    let failed = |source: &&String| answer.failures.iter().any(|failure| failure.source == **source);
    let mut looked = answer
        .sources
        .iter()
        .filter(|source| searches(source, query) && !failed(source));
    if answer.failures.is_empty() || !answer.results.is_empty() || looked.next().is_some() {
        return Ok(());
    }
    let problems = answer
        .failures
        .iter()
        .map(|failure| format!("{}: {}", failure.source, failure.problem));
    let problems: Vec<_> = problems.collect();
    Err(Fault::of(
        "DEPENDENCY_UNAVAILABLE",
        format!("no source could be searched: {}", problems.join("; ")),
    ))
}

/// Whether a source asks anybody for this query: two of them take addresses only and find nothing by words, and one is a
/// folder of the server's own, in which a skill from outside would not be.
fn searches(source: &str, query: &str) -> bool {
    match source {
        "official" | "url" => false,
        "well-known" => query.contains('.') && !query.contains(' '),
        _ => true,
    }
}

/// Brings an item, telling on the side how far it is.
async fn bring(reference: &str, session: &Session, output: &mut Output) -> anyhow::Result<pb::HubItem> {
    let request = pb::FetchHubItemRequest {
        parent: session.team.clone(),
        reference: reference.to_owned(),
        request_id: request_id(),
    };
    let item = to_the_end(request, session, output).await;
    output.progress("");
    item?.ok_or_else(|| anyhow::anyhow!("the server ended the answer without an item"))
}

/// Who leaves a stream before its end has given up, as the server's audit sees it.
async fn to_the_end(
    request: pb::FetchHubItemRequest,
    session: &Session,
    output: &mut Output,
) -> Result<Option<pb::HubItem>, ClientError> {
    let mut stream = session.client.hub.fetch_hub_item(request).await?;
    let mut found = None;
    while let Some(answer) = stream.message().await? {
        match answer.event {
            Some(Event::Progress(progress)) => tell(&progress, output),
            Some(Event::Item(item)) => found = Some(item),
            None => {}
        }
    }
    Ok(found)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(sources: &[&str], failed: &[&str], found: usize) -> pb::SearchHubResponse {
        let failure = |source: &&str| pb::HubSourceFailure {
            source: (*source).to_owned(),
            problem: "no answer in time".to_owned(),
        };
        pb::SearchHubResponse {
            results: vec![pb::HubSearchResult::default(); found],
            failures: failed.iter().map(failure).collect(),
            sources: sources.iter().map(|source| (*source).to_owned()).collect(),
        }
    }

    #[test]
    fn nothing_found_is_an_answer_only_where_somebody_looked() {
        let all = ["official", "a", "b", "url", "well-known"];
        for (query, failed, found) in [
            ("tidy", &[][..], 0),
            ("tidy", &["a"], 0),
            ("tidy", &["a", "b"], 1),
            ("skills.example", &["a", "b"], 0),
        ] {
            let looked = somebody_looked(query, &answer(&all, failed, found));
            assert_eq!(looked, Ok(()), "{query} {failed:?}");
        }
        let silent = somebody_looked("tidy", &answer(&all, &["a", "b"], 0)).unwrap_err();
        assert_eq!(silent.reason, "DEPENDENCY_UNAVAILABLE");
        assert_eq!(
            silent.to_string(),
            "no source could be searched: a: no answer in time; b: no answer in time"
        );
        let nobody = somebody_looked("tidy", &answer(&[], &[], 0)).unwrap_err();
        assert_eq!(nobody.reason, "HUB_NO_SOURCE");
    }
}

//! The corrections that wait for a review: what the person said in the reviewed session, up to the review's upper message,
//! and what was staged of it in the same turn.

use steward_base::names::{session_name, team_name, user_name};
use steward_client::MemoryClient;
use steward_curator_core::Error;
use steward_curator_core::ports::StagedCorrection;
use steward_curator_core::review::Review;
use steward_proto::common::v1::Origin;
use steward_proto::memory::v1 as pb;
use steward_proto::memory::v1::operation::Action;

use super::MEMORY;

/// Proposals of one page, and pages that are read: a person has far fewer that wait.
const PAGE: i32 = 200;
const PAGES: usize = 10;

/// Most corrections that one review is given; what is left waits for the next.
const MOST: usize = 20;

/// The corrections of the review's session that wait, oldest first.
pub(super) async fn load(client: &MemoryClient, review: &Review) -> Result<Vec<StagedCorrection>, Error> {
    let mut found = Vec::new();
    let mut page_token = String::new();
    for _ in 0..PAGES {
        let request = pb::ListProposalsRequest {
            parent: team_name(&review.team),
            state: pb::ProposalState::Pending.into(),
            page_size: PAGE,
            page_token,
        };
        let page = client
            .list_proposals(request)
            .await
            .map_err(|error| Error::peer(MEMORY, error))?;
        found.extend(
            page.proposals
                .into_iter()
                .filter_map(|proposal| staged(proposal, review)),
        );
        page_token = page.next_page_token;
        if page_token.is_empty() || found.len() >= MOST {
            break;
        }
    }
    found.truncate(MOST);
    Ok(found)
}

/// The proposal as a correction, if it is one of this session that the review can know of. Nothing else that a person
/// writes to their own memory waits.
fn staged(proposal: pb::Proposal, review: &Review) -> Option<StagedCorrection> {
    let own = format!("{}/memory/", user_name(&review.team, &review.user));
    let target = proposal.store.strip_prefix(&own)?.to_owned();
    let provenance = proposal.provenance?;
    let evidence = provenance.evidence.as_ref()?;
    let [span] = evidence.spans.as_slice() else { return None };
    let here = evidence.session == session_name(&review.team, &review.session);
    if !here || provenance.origin() != Origin::Foreground || message_of(span)? > review.to_seq {
        return None;
    }
    let [
        pb::Operation {
            action: Some(Action::Add(add)),
        },
    ] = proposal.operations.as_slice()
    else {
        return None;
    };
    Some(StagedCorrection {
        proposal: proposal.name,
        target,
        text: add.content.clone(),
        span: span.clone(),
    })
}

/// The message in which a span stands: `s12` or `s12.0`.
fn message_of(span: &str) -> Option<u64> {
    span.strip_prefix('s')?.split('.').next()?.parse().ok()
}

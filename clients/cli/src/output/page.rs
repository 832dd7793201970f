//! Lists that come in pages: read until the end or until enough, and shown as one.

use std::future::Future;

use steward_client::ClientError;
use steward_proto::{access, agent, hub, learning, memory, recall, skill};

/// The most items that one request asks for; servers coerce it down to their own limit.
const PAGE: usize = 200;

/// An answer that is a page of a list.
pub trait Page: Default {
    /// How many items it has.
    fn count(&self) -> usize;
    /// Token of the next page; empty at the end.
    fn next(&self) -> &str;
    /// Takes the items of the page that follows.
    fn absorb(&mut self, following: Self);
    /// Keeps the first items only.
    fn cut(&mut self, limit: usize);
}

macro_rules! pages {
    ($($package:ident::$answer:ident { $items:ident $(, $more:ident)* };)*) => {
        $(
            impl Page for $package::v1::$answer {
                fn count(&self) -> usize {
                    self.$items.len()
                }

                fn next(&self) -> &str {
                    &self.next_page_token
                }

                fn absorb(&mut self, following: Self) {
                    self.$items.extend(following.$items);
                    $(self.$more.extend(following.$more);)*
                    self.next_page_token = following.next_page_token;
                }

                fn cut(&mut self, limit: usize) {
                    self.$items.truncate(limit);
                }
            }
        )*
    };
}

pages! {
    access::ListAuditEventsResponse { audit_events };
    access::ListTeamsResponse { teams };
    access::ListTokensResponse { tokens };
    access::ListUsersResponse { users };
    agent::ListSessionMessagesResponse { messages };
    agent::ListSessionsResponse { sessions };
    hub::ListHubAuditEntriesResponse { entries };
    hub::ListHubItemsResponse { items };
    hub::ListHubPublicationsResponse { publications };
    hub::ListHubSkillsResponse { skills };
    hub::ListHubWithdrawalsResponse { withdrawals };
    learning::ListCurationRunsResponse { runs };
    learning::ListReviewsResponse { reviews };
    memory::ListEntriesResponse { entries };
    memory::ListEntryRevisionsResponse { revisions };
    memory::ListProposalsResponse { proposals };
    recall::ListBackupsResponse { backups };
    skill::ListProposalsResponse { proposals };
    skill::ListRevisionsResponse { revisions };
    skill::ListSkillsResponse { skills, broken };
}

/// Reads pages until the list ends or has `limit` items. `fetch` takes the size and the token of a page. What the first
/// page says beside its items stands; the token is empty exactly when nothing was left out.
pub async fn gather<P, F, Fut>(limit: usize, mut fetch: F) -> Result<P, ClientError>
where
    P: Page,
    F: FnMut(i32, String) -> Fut,
    Fut: Future<Output = Result<P, ClientError>>,
{
    let ask = |have: usize| i32::try_from(limit.saturating_sub(have).clamp(1, PAGE)).unwrap_or(i32::MAX);
    let mut whole = fetch(ask(0), String::new()).await?;
    while !whole.next().is_empty() && whole.count() < limit {
        let page = fetch(ask(whole.count()), whole.next().to_owned()).await?;
        whole.absorb(page);
    }
    whole.cut(limit);
    Ok(whole)
}

/// As many as there are.
pub const ALL: usize = usize::MAX;

#[cfg(test)]
mod tests {
    use steward_proto::agent::v1::{ListSessionsResponse, Session};

    use super::*;

    async fn listed(limit: usize) -> (ListSessionsResponse, Vec<i32>) {
        let mut asked = Vec::new();
        let all: Vec<_> = (0..450)
            .map(|number| Session {
                name: number.to_string(),
                ..Session::default()
            })
            .collect();
        let whole = gather(limit, |size, token| {
            asked.push(size);
            let from: usize = token.parse().unwrap_or_default();
            let to = (from + usize::try_from(size).unwrap()).min(all.len());
            let page = ListSessionsResponse {
                sessions: all[from..to].to_vec(),
                next_page_token: if to < all.len() { to.to_string() } else { String::new() },
            };
            async move { Ok(page) }
        })
        .await
        .unwrap();
        (whole, asked)
    }

    #[tokio::test]
    async fn every_page_is_read_when_all_is_wanted() {
        let (whole, asked) = listed(ALL).await;
        assert_eq!(whole.sessions.len(), 450);
        assert_eq!(whole.sessions[449].name, "449");
        assert_eq!(whole.next_page_token, "");
        assert_eq!(asked, [200, 200, 200]);
    }

    #[tokio::test]
    async fn a_limit_ends_the_reading_and_says_that_there_is_more() {
        let (whole, asked) = listed(201).await;
        assert_eq!(whole.sessions.len(), 201);
        assert_eq!(whole.next_page_token, "201");
        assert_eq!(asked, [200, 1]);
        assert_eq!(listed(450).await.0.next_page_token, "");
    }
}

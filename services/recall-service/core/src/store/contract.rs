//! What every [`SessionStore`] must do, as tests that any implementation runs: `session_store_contract!`.
//!
//! The cases go through the operations, so that they hold rules and store together to what callers see.
#![expect(clippy::unwrap_used, reason = "these are tests, kept where every store finds them")]

pub mod appends;
pub mod compactions;
pub mod lifecycle;
pub mod retries;
pub mod searches;
pub mod sessions;
pub mod updates;
pub mod walls;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use steward_base::names::{SessionId, TeamId, UserId};
use steward_base::{Clock, IdGen, Timestamp};

use super::SessionStore;
use crate::append_messages::{Append, Appended, OpenCallsChange, RequestKey};
use crate::create_session::NewSession;
use crate::error::Error;
use crate::message::{NewMessage, Role, ToolResult};
use crate::search::{Answer, Asker, Discover, Search};
use crate::session::{Counters, Frozen, Session, SessionSource};
use crate::sessions::{Limits, Sessions};

/// Runs every case of the contract as a test of its own. `$make` is an expression for an async function that gives a
/// guard (kept until the test ends) and an empty store.
#[macro_export]
macro_rules! session_store_contract {
    ($make:expr; $($module:ident :: { $($case:ident),+ $(,)? }),+ $(,)?) => {
        $($(
            #[tokio::test]
            async fn $case() {
                let (_guard, store) = $make().await;
                $crate::store::contract::$module::$case(&$crate::store::contract::World::new(store)).await;
            }
        )+)+
    };
    ($make:expr) => {
        $crate::session_store_contract! { $make;
            sessions::{
                a_session_comes_back_as_it_was_created, the_same_creation_again_returns_the_first_session,
                a_taken_id_is_refused, a_lineage_keeps_its_root, another_team_sees_nothing,
                sessions_are_listed_by_activity_page_by_page, one_turn_at_a_time_runs_in_a_session,
                a_lease_that_ended_can_be_taken_over_and_fences_its_holder_off,
            },
            appends::{
                messages_are_numbered_without_gaps_and_come_back_whole, the_same_append_again_returns_the_first_answer,
                an_append_that_is_refused_leaves_nothing, a_stale_fence_cannot_append,
                state_changes_with_the_messages, a_turn_moves_from_running_to_its_end,
                a_turn_that_was_left_open_is_closed_by_the_next, due_reviews_stay_until_acknowledged,
                a_session_that_skips_reviews_makes_none_due, messages_are_taken_from_either_end,
                oversized_messages_are_refused, a_page_of_messages_says_where_the_next_begins,
                integrity_follows_what_stood_in_the_context,
            },
            searches::{
                dense_scripts_are_found_in_every_query_shape, any_text_is_a_valid_query,
                peoples_own_talks_come_before_schedules, a_lineage_is_found_once,
                the_current_context_is_left_out_and_compaction_opens_it, filters_act_before_limits,
                what_was_undone_is_invisible_everywhere, every_answer_is_bounded, nobody_finds_what_is_not_theirs,
                too_few_hits_widen_the_search_and_say_so, tool_text_is_found_and_weighs_less,
                time_and_role_filters_hold, reading_goes_on_where_it_ended, rows_and_index_agree,
            },
            retries::{
                a_retry_under_another_fence_returns_the_first_answer, an_answer_is_kept_for_a_month_and_no_longer,
                no_two_calls_with_one_id_wait_at_once, nothing_unbounded_is_kept,
                due_reviews_of_one_team_are_not_hidden_by_anothers,
            },
            updates::{
                a_changed_session_begins_its_prefix_anew, a_title_changes_without_a_break,
                a_session_is_changed_between_turns_only, a_changed_session_is_the_one_that_was_read,
                a_change_that_is_refused_leaves_nothing, the_same_change_again_changes_nothing,
                a_turn_begins_and_ends_with_its_appends, an_append_takes_no_lease_that_another_turn_holds,
                a_retry_that_begins_a_turn_has_its_lease, a_session_is_read_with_its_turn_and_messages,
                a_providers_form_is_kept_and_never_found,
            },
            compactions::{
                a_summary_stands_in_the_place_of_what_it_replaces, summaries_follow_each_other_and_a_rewind_undoes_them,
                a_compaction_that_is_refused_leaves_nothing,
            },
            lifecycle::{
                an_append_upon_another_state_than_was_read_is_refused,
                a_deleted_session_is_gone_and_a_late_append_is_refused, a_session_is_not_deleted_while_a_turn_runs,
                what_was_rewound_is_kept_and_seen_by_nobody, a_rewind_cuts_whole_turns_between_turns,
                a_fork_takes_the_history_along_and_is_one_conversation, a_fork_that_is_refused_leaves_nothing,
                turns_that_waited_too_long_are_listed,
                a_session_is_taken_in_as_it_was_and_once,
            },
            walls::{
                talkative_conversations_starve_no_other, a_wall_of_schedules_hides_nobodys_talk,
                the_reason_of_a_parent_decides_what_is_one_conversation, what_was_taken_along_is_not_offered_as_past,
                what_left_the_context_can_be_paged_through, scrolling_reaches_both_ends,
                no_answer_grows_with_what_is_stored, stored_marks_are_no_highlights, every_spelling_of_a_text_finds_it,
                plain_questions_find_what_they_are_about,
            },
        }
    };
}

/// A clock that moves by one second with every look, so that no two writes have the same time.
#[derive(Debug)]
struct SteadyClock(AtomicI64);

impl SteadyClock {
    fn advance(&self, by: Duration) {
        self.0
            .fetch_add(i64::try_from(by.as_micros()).unwrap(), Ordering::Relaxed);
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.fetch_add(1_000_000, Ordering::Relaxed))
    }
}

#[derive(Debug, Default)]
struct CountingIds(AtomicU64);

impl IdGen for CountingIds {
    fn new_id(&self) -> String {
        format!("{:032x}", self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// A store with operations over it.
#[derive(Debug)]
pub struct World {
    store: Arc<dyn SessionStore>,
    sessions: Sessions,
    search: Search,
    clock: Arc<SteadyClock>,
    ids: CountingIds,
}

impl World {
    /// Over an empty store.
    pub fn new(store: Arc<dyn SessionStore>) -> Self {
        let clock = Arc::new(SteadyClock(AtomicI64::new(1_790_000_000_000_000)));
        let limits = Limits {
            message_bytes: 1_000_000,
        };
        let sessions = Sessions::new(
            Arc::clone(&store),
            clock.clone(),
            Arc::new(CountingIds::default()),
            limits,
        );
        Self {
            search: Search::new(Arc::clone(&store)),
            store,
            sessions,
            clock,
            ids: CountingIds::default(),
        }
    }

    fn request(&self) -> RequestKey {
        let id = self.ids.new_id();
        RequestKey {
            hash: format!("hash of {id}"),
            id,
        }
    }

    fn new_session(&self, id: &str) -> NewSession {
        NewSession {
            team: team("red"),
            id: session(id),
            user: user("ann"),
            source: SessionSource::Chat,
            title: String::new(),
            lineage: None,
            project: String::new(),
            frozen: Frozen {
                model: "m1".to_owned(),
                ..Frozen::default()
            },
            skip_review: false,
            skip_memory: false,
            counters: Counters::default(),
            exposures: Vec::new(),
            request: self.request(),
        }
    }

    async fn create(&self, id: &str) -> Session {
        self.sessions.create_session(self.new_session(id)).await.unwrap()
    }

    async fn create_from(&self, id: &str, source: SessionSource) -> Session {
        self.sessions
            .create_session(NewSession {
                source,
                ..self.new_session(id)
            })
            .await
            .unwrap()
    }

    /// Takes the lease for a turn.
    async fn lease(&self, id: &str, turn: &str) -> u64 {
        let ttl = Duration::from_mins(1);
        let grant = self
            .sessions
            .acquire_turn_lease(&team("red"), &session(id), turn.to_owned(), "p1".to_owned(), ttl)
            .await;
        grant.unwrap().fence
    }

    fn append_to(&self, id: &str, fence: u64, expected_seq: u64, messages: Vec<NewMessage>) -> Append {
        Append {
            team: team("red"),
            session: session(id),
            fence,
            acquire: None,
            release: false,
            expected_seq,
            expected_etag: String::new(),
            request: self.request(),
            messages,
            turn: None,
            counters: None,
            prefix: None,
            usage: None,
            open_calls: OpenCallsChange::Add(Vec::new()),
            due_review: None,
            title: None,
            exposures: Vec::new(),
        }
    }

    /// Appends in a lease of its own.
    async fn say(&self, id: &str, messages: Vec<NewMessage>) -> Appended {
        let turn = self.ids.new_id();
        let fence = self.lease(id, &turn).await;
        let last = self
            .sessions
            .get_session(&team("red"), &session(id))
            .await
            .unwrap()
            .last_seq;
        let appended = self
            .sessions
            .append_messages(self.append_to(id, fence, last, messages))
            .await
            .unwrap();
        self.sessions
            .release_turn_lease(&team("red"), &session(id), fence)
            .await
            .unwrap();
        appended
    }

    /// A chat in which the person says these things.
    async fn chat(&self, id: &str, texts: &[&str]) {
        self.create(id).await;
        self.say(id, texts.iter().map(|text| said(text)).collect()).await;
    }

    /// Takes back what was said after a message.
    async fn rewind(&self, id: &str, to: u64) {
        let cut = lifecycle::cut(self, id, to);
        self.sessions.rewind_session(cut).await.unwrap();
    }

    /// Puts a summary in the place of messages, behind the `last` one.
    async fn compact(&self, id: &str, range: (u64, u64), last: u64) {
        let compaction = lifecycle::summary(self, id, range, last, "earlier");
        self.sessions.mark_compacted(compaction).await.unwrap();
    }

    async fn discover(&self, query: &str) -> Answer {
        self.ask(
            &asker(None),
            Discover {
                query: query.to_owned(),
                limit: 10,
                ..Discover::default()
            },
        )
        .await
        .unwrap()
    }

    async fn ask(&self, asker: &Asker, discover: Discover) -> Result<Answer, Error> {
        self.search.discover(asker, discover).await
    }

    /// Sessions found, in order.
    async fn found(&self, query: &str) -> Vec<String> {
        names(&self.discover(query).await)
    }
}

fn names(answer: &Answer) -> Vec<String> {
    answer
        .conversations
        .iter()
        .map(|conversation| conversation.session.id.as_str().to_owned())
        .collect()
}

fn team(id: &str) -> TeamId {
    TeamId::parse(id).unwrap()
}

fn user(id: &str) -> UserId {
    UserId::parse(id).unwrap()
}

fn session(id: &str) -> SessionId {
    SessionId::parse(id).unwrap()
}

fn asker(current: Option<&str>) -> Asker {
    Asker {
        team: team("red"),
        user: user("ann"),
        current: current.map(session),
    }
}

fn said(text: &str) -> NewMessage {
    NewMessage {
        role: Role::User,
        text: text.to_owned(),
        sent_text: None,
        tool_calls: Vec::new(),
        result: None,
        spans: Vec::new(),
        usage: None,
        turn: String::new(),
        native: None,
    }
}

fn answered(text: &str) -> NewMessage {
    NewMessage {
        role: Role::Assistant,
        ..said(text)
    }
}

fn returned(text: &str) -> NewMessage {
    let result = ToolResult {
        call_id: "c1".to_owned(),
        tool_name: "terminal".to_owned(),
        is_error: false,
    };
    NewMessage {
        role: Role::Tool,
        result: Some(result),
        ..said(text)
    }
}

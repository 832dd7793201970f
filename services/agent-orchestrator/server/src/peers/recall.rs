//! recall-service as the store of sessions.

use std::time::Duration;

use async_trait::async_trait;
use steward_base::names::{TeamId, UserId, team_name, user_name};
use steward_client::{ClientError, SessionStoreClient};
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::{
    Append, Appended, ExpiredTurn, Fork, MessagePage, NewSession, Opened, Rewind, Session, SessionKey, SessionPage,
    SessionStore, SessionUpdate, Turn,
};
use steward_proto::recall::v1 as pb;

use super::recall_convert::{
    append_to_pb, expired_from_pb, message_from_pb, new_session_to_pb, session_from_pb, turn_from_pb, update_to_pb,
};
use super::{failed, metadata};

const RECALL: &str = "recall-service";

/// Messages that one page of the context may have.
const PAGE: i32 = 1000;

/// The [`SessionStore`] behind recall-service.
#[derive(Debug, Clone)]
pub(crate) struct RecallSessions {
    client: SessionStoreClient,
}

impl RecallSessions {
    /// Over a client with this service's own credentials.
    pub(crate) fn new(client: SessionStoreClient) -> Self {
        Self { client }
    }
}

/// What recall's own reasons mean here; everything else is a failure of the dependency or a fault of ours.
fn refused(key: &SessionKey, operation: &'static str, fence: u64, error: ClientError) -> Error {
    match error.reason {
        "SESSION_NOT_FOUND" | "SESSION_DELETED" => Error::SessionNotFound { session: key.name() },
        "TURN_RUNNING" => Error::TurnRunning {
            turn: metadata(&error, "turn"),
        },
        "ETAG_MISMATCH" | "SEQUENCE_MISMATCH" => Error::SessionChanged {
            session: key.name(),
            expected: metadata(&error, "expected"),
            current: metadata(&error, "current"),
        },
        "STALE_FENCE" => Error::StaleFence {
            fence,
            current: metadata(&error, "current"),
        },
        "MESSAGE_TOO_LARGE" => Error::field(
            "input",
            format!(
                "a message has {} bytes; at most {} are kept",
                metadata(&error, "actual"),
                metadata(&error, "limit")
            ),
        ),
        _ => failed(RECALL, operation, error),
    }
}

/// Violations of a list request are the caller's: they name the same fields.
fn list_refused(operation: &'static str, error: ClientError) -> Error {
    if error.reason != "INVALID_REQUEST" {
        return failed(RECALL, operation, error);
    }
    let mut violations = steward_base::FieldViolations::new();
    for violation in &error.violations {
        violations.add(violation.field.clone(), violation.description.clone());
    }
    Error::Invalid(violations)
}

/// A request that a person made and that is passed on as it is: what recall finds wrong with it is what they did.
fn asked_wrongly(key: &SessionKey, operation: &'static str, request_id: &str, error: ClientError) -> Error {
    match error.reason {
        "REQUEST_ID_REUSED" | "SESSION_EXISTS" => Error::request_id_reused(request_id),
        "MESSAGE_NOT_FOUND" => Error::field("through_seq", "must be a message that is in the context"),
        "INVALID_REQUEST" => list_refused(operation, error),
        _ => refused(key, operation, 0, error),
    }
}

fn malformed(operation: &'static str, what: String) -> Error {
    Error::internal(operation, what)
}

fn duration(duration: Duration) -> Option<prost_types::Duration> {
    prost_types::Duration::try_from(duration).ok()
}

#[async_trait]
impl SessionStore for RecallSessions {
    async fn create_session(&self, new: NewSession, request_id: &str) -> Result<Session, Error> {
        const OPERATION: &str = "create a session";
        let key = new.key.clone();
        let request = pb::CreateSessionRequest {
            parent: team_name(&key.team),
            session_id: key.id.to_string(),
            session: Some(new_session_to_pb(new)),
            request_id: request_id.to_owned(),
        };
        let session = match self.client.create_session(request).await {
            Ok(answer) => answer.session,
            // Another try of the same request was faster, with a prompt that was assembled at another moment.
            Err(error) if matches!(error.reason, "SESSION_EXISTS" | "REQUEST_ID_REUSED") => {
                return self
                    .session(&key)
                    .await?
                    .ok_or_else(|| failed(RECALL, OPERATION, error));
            }
            Err(error) => return Err(failed(RECALL, OPERATION, error)),
        };
        session_from_pb(session.unwrap_or_default()).map_err(|what| malformed(OPERATION, what))
    }

    async fn update_session(&self, key: &SessionKey, update: SessionUpdate) -> Result<Session, Error> {
        const OPERATION: &str = "change a session";
        let request_id = update.request_id.clone();
        let answer = match self.client.update_session(update_to_pb(key, update)).await {
            Ok(answer) => answer,
            Err(error) if error.reason == "REQUEST_ID_REUSED" => return Err(Error::request_id_reused(&request_id)),
            Err(error) => return Err(refused(key, OPERATION, 0, error)),
        };
        session_from_pb(answer.session.unwrap_or_default()).map_err(|what| malformed(OPERATION, what))
    }

    async fn open(&self, key: &SessionKey, turn: &str) -> Result<Option<Opened>, Error> {
        const OPERATION: &str = "read a session with its messages";
        let request = pb::GetSessionRequest {
            name: key.name(),
            turn: turn.to_owned(),
            include_messages: true,
        };
        let answer = match self.client.get_session(request).await {
            Ok(answer) => answer,
            Err(error) if error.reason == "SESSION_NOT_FOUND" => return Ok(None),
            Err(error) => return Err(failed(RECALL, OPERATION, error)),
        };
        let session = session_from_pb(answer.session.unwrap_or_default()).map_err(|what| malformed(OPERATION, what))?;
        let turn = answer.turn.map(turn_from_pb).transpose();
        let history = answer
            .messages
            .into_iter()
            .map(message_from_pb)
            .collect::<Result<_, _>>();
        let mut opened = Opened {
            session,
            turn: turn.map_err(|what| malformed(OPERATION, what))?,
            history: history.map_err(|what| malformed(OPERATION, what))?,
        };
        // What is appended between two pages is met by the check of the session's last number.
        let mut page_token = answer.next_page_token;
        while !page_token.is_empty() {
            let page = self.messages(key, PAGE, &page_token).await?;
            opened.history.extend(page.messages);
            page_token = page.next_page_token;
        }
        Ok(Some(opened))
    }

    async fn session(&self, key: &SessionKey) -> Result<Option<Session>, Error> {
        const OPERATION: &str = "read a session";
        match self
            .client
            .get_session(pb::GetSessionRequest {
                name: key.name(),
                ..pb::GetSessionRequest::default()
            })
            .await
        {
            Ok(answer) => {
                let session = session_from_pb(answer.session.unwrap_or_default());
                Ok(Some(session.map_err(|what| malformed(OPERATION, what))?))
            }
            Err(error) if error.reason == "SESSION_NOT_FOUND" => Ok(None),
            Err(error) => Err(failed(RECALL, OPERATION, error)),
        }
    }

    async fn sessions(
        &self,
        team: &TeamId,
        user: &UserId,
        page_size: i32,
        page_token: &str,
    ) -> Result<SessionPage, Error> {
        const OPERATION: &str = "list sessions";
        let request = pb::ListSessionsRequest {
            parent: team_name(team),
            user: user_name(team, user),
            sources: Vec::new(),
            page_size,
            page_token: page_token.to_owned(),
        };
        let answer = self.client.list_sessions(request).await;
        let answer = answer.map_err(|error| list_refused(OPERATION, error))?;
        let sessions = answer
            .sessions
            .into_iter()
            .map(session_from_pb)
            .collect::<Result<_, _>>();
        Ok(SessionPage {
            sessions: sessions.map_err(|what| malformed(OPERATION, what))?,
            next_page_token: answer.next_page_token,
        })
    }

    async fn acquire_lease(&self, key: &SessionKey, turn: &str, holder: &str, ttl: Duration) -> Result<u64, Error> {
        let request = pb::AcquireTurnLeaseRequest {
            session: key.name(),
            turn: turn.to_owned(),
            holder: holder.to_owned(),
            ttl: duration(ttl),
        };
        let answer = self.client.acquire_turn_lease(request).await;
        Ok(answer
            .map_err(|error| refused(key, "take a turn lease", 0, error))?
            .fence)
    }

    async fn renew_lease(&self, key: &SessionKey, fence: u64, ttl: Duration) -> Result<(), Error> {
        let request = pb::RenewTurnLeaseRequest {
            session: key.name(),
            fence,
            ttl: duration(ttl),
        };
        let answer = self.client.renew_turn_lease(request).await;
        answer
            .map(drop)
            .map_err(|error| refused(key, "renew a turn lease", fence, error))
    }

    async fn release_lease(&self, key: &SessionKey, fence: u64) -> Result<(), Error> {
        let request = pb::ReleaseTurnLeaseRequest {
            session: key.name(),
            fence,
        };
        let answer = self.client.release_turn_lease(request).await;
        answer
            .map(drop)
            .map_err(|error| refused(key, "give a turn lease up", fence, error))
    }

    async fn append(&self, key: &SessionKey, append: Append) -> Result<Appended, Error> {
        let fence = append.fence;
        let answer = self.client.append_messages(append_to_pb(key, append)).await;
        let answer = answer.map_err(|error| refused(key, "append to a session", fence, error))?;
        Ok(Appended {
            last_seq: answer.last_seq,
            fence: answer.fence,
        })
    }

    async fn messages(&self, key: &SessionKey, page_size: i32, page_token: &str) -> Result<MessagePage, Error> {
        const OPERATION: &str = "list messages";
        let request = pb::ListMessagesRequest {
            session: key.name(),
            from_seq: 0,
            to_seq: 0,
            include_hidden: false,
            page_size,
            page_token: page_token.to_owned(),
        };
        let answer = self.client.list_messages(request).await;
        let answer = answer.map_err(|error| match error.reason {
            "SESSION_NOT_FOUND" => Error::SessionNotFound { session: key.name() },
            _ => list_refused(OPERATION, error),
        })?;
        let messages = answer
            .messages
            .into_iter()
            .map(message_from_pb)
            .collect::<Result<_, _>>();
        Ok(MessagePage {
            messages: messages.map_err(|what| malformed(OPERATION, what))?,
            next_page_token: answer.next_page_token,
        })
    }

    async fn delete_session(&self, key: &SessionKey, etag: &str) -> Result<(), Error> {
        let request = pb::DeleteSessionRequest {
            name: key.name(),
            etag: etag.to_owned(),
        };
        let answer = self.client.delete_session(request).await;
        answer
            .map(drop)
            .map_err(|error| refused(key, "delete a session", 0, error))
    }

    async fn rewind_session(&self, key: &SessionKey, rewind: Rewind) -> Result<Session, Error> {
        const OPERATION: &str = "rewind a session";
        let request_id = rewind.request_id.clone();
        let request = pb::RewindSessionRequest {
            name: key.name(),
            to_seq: rewind.to_seq,
            etag: rewind.etag,
            request_id: rewind.request_id,
        };
        let answer = self.client.rewind_session(request).await;
        let answer = answer.map_err(|error| asked_wrongly(key, OPERATION, &request_id, error))?;
        session_from_pb(answer.session.unwrap_or_default()).map_err(|what| malformed(OPERATION, what))
    }

    async fn fork_session(&self, parent: &SessionKey, fork: Fork) -> Result<Session, Error> {
        const OPERATION: &str = "fork a session";
        let request_id = fork.request_id.clone();
        let request = pb::ForkSessionRequest {
            name: parent.name(),
            session_id: fork.id.to_string(),
            through_seq: fork.through_seq,
            title: fork.title,
            request_id: fork.request_id,
        };
        let answer = self.client.fork_session(request).await;
        let answer = answer.map_err(|error| asked_wrongly(parent, OPERATION, &request_id, error))?;
        session_from_pb(answer.session.unwrap_or_default()).map_err(|what| malformed(OPERATION, what))
    }

    async fn expired_turns(&self, limit: u32) -> Result<Vec<ExpiredTurn>, Error> {
        const OPERATION: &str = "list turns that waited too long";
        let request = pb::ListExpiredTurnsRequest {
            page_size: i32::try_from(limit).unwrap_or(i32::MAX),
        };
        let answer = self.client.list_expired_turns(request).await;
        let turns = answer.map_err(|error| failed(RECALL, OPERATION, error))?.turns;
        let turns = turns.into_iter().map(expired_from_pb).collect::<Result<_, _>>();
        turns.map_err(|what| malformed(OPERATION, what))
    }

    async fn turn(&self, key: &SessionKey, turn: &str) -> Result<Option<Turn>, Error> {
        const OPERATION: &str = "read a turn";
        let request = pb::GetTurnRequest {
            session: key.name(),
            turn: turn.to_owned(),
        };
        match self.client.get_turn(request).await {
            Ok(answer) => {
                let turn = turn_from_pb(answer.turn.unwrap_or_default());
                Ok(Some(turn.map_err(|what| malformed(OPERATION, what))?))
            }
            Err(error) if error.reason == "TURN_NOT_FOUND" => Ok(None),
            Err(error) => Err(refused(key, OPERATION, 0, error)),
        }
    }
}

//! `ExportSessions`: a person's sessions as JSON lines, written as they are read, so that none stands in memory whole.

use std::collections::VecDeque;
use std::pin::Pin;

use futures::Stream;
use futures::stream::try_unfold;
use steward_base::names::{SessionId, TeamId, UserId, parse_user};
use steward_base::{Caller, Timestamp};
use steward_grpc::caller;
use steward_proto::recall::v1 as pb;
use steward_recall_core::session::SessionSource;
use steward_recall_core::store::{MessageRange, SessionList, Visibility};
use steward_recall_core::{Error, Sessions};
use tonic::{Request, Response, Status};

use super::access::session_of;
use super::fail;
use super::session_line::{line_of, message_part};

/// What the RPC answers.
pub(super) type Export = Pin<Box<dyn Stream<Item = Result<pb::ExportSessionsResponse, Status>> + Send>>;

/// Sessions that are listed at a time.
const PAGE: u32 = 200;
/// Messages of a page; it also ends at its bound in bytes.
const MESSAGES: u32 = 1_000;

pub(super) fn export_sessions(
    sessions: &Sessions,
    request: &Request<pb::ExportSessionsRequest>,
) -> Result<Response<Export>, Status> {
    let caller = caller(request)?;
    let exporter = Exporter::new(sessions.clone(), caller, request.get_ref()).map_err(fail)?;
    let chunks = try_unfold(exporter, |mut exporter| async move {
        let chunk = exporter.next().await.map_err(fail)?;
        Ok(chunk.map(|chunk| (pb::ExportSessionsResponse { chunk: chunk.into() }, exporter)))
    });
    Ok(Response::new(Box::pin(chunks)))
}

/// The person that a request is about: whoever makes it.
pub(super) fn own_user(caller: &Caller, parent: &str) -> Result<(TeamId, UserId), Error> {
    let (team, user) = parse_user(parent).map_err(|problem| Error::field("parent", problem.to_string()))?;
    if caller.team.as_ref() != Some(&team) || caller.user.as_ref() != Some(&user) || caller.session().is_some() {
        return Err(Error::field("parent", "must be the caller"));
    }
    Ok((team, user))
}

struct Exporter {
    sessions: Sessions,
    team: TeamId,
    user: UserId,
    waiting: VecDeque<SessionId>,
    /// Whether there may be more sessions than those that wait.
    lists: bool,
    /// Behind which one the list goes on; `None` at its beginning.
    after: Option<(Timestamp, SessionId)>,
    current: Option<Current>,
}

/// A session of which a part is written.
struct Current {
    id: SessionId,
    from: u64,
    last: u64,
}

impl Exporter {
    fn new(sessions: Sessions, caller: &Caller, request: &pb::ExportSessionsRequest) -> Result<Self, Error> {
        let (team, user) = own_user(caller, &request.parent)?;
        let named = request.sessions.iter().enumerate();
        let waiting = named
            .map(|(at, name)| Ok(session_of(caller, &format!("sessions[{at}]"), name)?.1))
            .collect::<Result<VecDeque<_>, Error>>()?;
        Ok(Self {
            sessions,
            team,
            user,
            lists: request.sessions.is_empty(),
            after: None,
            waiting,
            current: None,
        })
    }

    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        if let Some(current) = self.current.take() {
            return self.messages(current).await.map(Some);
        }
        if self.waiting.is_empty() {
            self.list().await?;
        }
        match self.waiting.pop_front() {
            Some(id) => self.begin(id).await.map(Some),
            None => Ok(None),
        }
    }

    async fn list(&mut self) -> Result<(), Error> {
        if !self.lists {
            return Ok(());
        }
        let list = SessionList {
            team: self.team.clone(),
            user: self.user.clone(),
            sources: SessionSource::visible(),
            after: self.after.take(),
            limit: PAGE,
        };
        let found = self.sessions.list_sessions(&list).await?;
        self.lists = found.len() == PAGE as usize;
        self.after = found.last().map(|last| (last.last_active, last.id.clone()));
        self.waiting.extend(found.into_iter().map(|session| session.id));
        Ok(())
    }

    /// Everything of a session that stands before its messages.
    async fn begin(&mut self, id: SessionId) -> Result<Vec<u8>, Error> {
        let session = self.sessions.own_session(&self.team, &id, &self.user).await?;
        let turns = self.sessions.turns(&self.team, &id).await?;
        let mut line = written(&line_of(&session, &turns))?;
        // The messages are the last field: what closes them comes when they are all there.
        line.truncate(line.len() - CLOSING.len());
        self.current = Some(Current {
            id,
            from: 1,
            last: session.last_seq,
        });
        Ok(line)
    }

    async fn messages(&mut self, current: Current) -> Result<Vec<u8>, Error> {
        let Current { id, from, last } = current;
        let range = MessageRange {
            visibility: Visibility::All,
            ..MessageRange::in_context(from, last, MESSAGES)
        };
        let page = self.sessions.list_messages(&self.team, &id, &range).await?;
        let mut chunk = Vec::new();
        for message in &page.messages {
            if message.seq > 1 {
                chunk.push(b',');
            }
            chunk.extend(written(&message_part(message))?);
        }
        if let Some(next) = page.next {
            self.current = Some(Current { id, from: next, last });
        } else {
            chunk.extend_from_slice(CLOSING);
            chunk.push(b'\n');
        }
        Ok(chunk)
    }
}

/// How a line ends behind its messages.
const CLOSING: &[u8] = b"]}";

fn written<T: serde::Serialize>(part: &T) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(part).map_err(|error| Error::internal("write a session down", error))
}

//! `ImportSessions`: JSON lines, taken in one by one. What is wrong with a line is told with its number, and keeps no other
//! out; what is wrong with the store ends the import.

use steward_base::names::{TeamId, UserId};
use steward_grpc::caller;
use steward_proto::recall::v1 as pb;
use steward_recall_core::{Error, Sessions};
use steward_recall_exchange::split::Line;
use steward_recall_exchange::{LineSplitter, MAX_LINE, SessionLine};
use tonic::{Request, Response, Status, Streaming};

use super::export_sessions::own_user;
use super::fail;
use super::session_line::whole_session;

/// Problems that are told one by one.
const MOST_PROBLEMS: usize = 1_000;

pub(super) async fn import_sessions(
    sessions: &Sessions,
    request: Request<Streaming<pb::ImportSessionsRequest>>,
) -> Result<Response<pb::ImportSessionsResponse>, Status> {
    let caller = caller(&request)?.clone();
    let mut items = request.into_inner();
    let mut import: Option<Import<'_>> = None;
    let mut splitter = LineSplitter::default();
    while let Some(item) = items.message().await? {
        let import = if let Some(import) = &mut import {
            import
        } else {
            let (team, user) = own_user(&caller, &item.parent).map_err(fail)?;
            import.insert(Import::new(sessions, team, user))
        };
        for line in splitter.push(&item.chunk) {
            import.take(line).await.map_err(fail)?;
        }
    }
    let Some(mut import) = import else {
        return Err(fail(Error::field("parent", "must be given with the first item")));
    };
    if let Some(line) = splitter.finish() {
        import.take(line).await.map_err(fail)?;
    }
    Ok(Response::new(import.outcome))
}

struct Import<'a> {
    sessions: &'a Sessions,
    team: TeamId,
    user: UserId,
    outcome: pb::ImportSessionsResponse,
}

impl<'a> Import<'a> {
    fn new(sessions: &'a Sessions, team: TeamId, user: UserId) -> Self {
        Self {
            sessions,
            team,
            user,
            outcome: pb::ImportSessionsResponse::default(),
        }
    }

    async fn take(&mut self, line: Line) -> Result<(), Error> {
        let number = line.number;
        match self.import(line).await {
            Ok(true) => self.outcome.imported += 1,
            Ok(false) => self.outcome.unchanged += 1,
            Err(Refused::Line(description)) => self.problem(number, description),
            Err(Refused::All(error)) => return Err(error),
        }
        Ok(())
    }

    async fn import(&self, line: Line) -> Result<bool, Refused> {
        let Some(bytes) = line.bytes else {
            return Err(Refused::Line(format!("is longer than {MAX_LINE} bytes")));
        };
        let line = SessionLine::parse(&bytes).map_err(Refused::Line)?;
        let whole = whole_session(line, &self.team, &self.user);
        let whole = whole.map_err(|violations| Refused::Line(violations.to_string()))?;
        match self.sessions.import_session(whole).await {
            Err(error @ (Error::Invalid(_) | Error::MessageTooLarge { .. })) => Err(Refused::Line(error.to_string())),
            Err(Error::SessionExists { .. }) => Err(Refused::Line("its id is taken by somebody else".to_owned())),
            outcome => outcome.map_err(Refused::All),
        }
    }

    fn problem(&mut self, line: u64, description: String) {
        if self.outcome.problems.len() < MOST_PROBLEMS {
            self.outcome.problems.push(pb::ImportProblem { line, description });
        } else {
            self.outcome.more_problems += 1;
        }
    }
}

/// What stops a line, or all of them.
enum Refused {
    Line(String),
    All(Error),
}

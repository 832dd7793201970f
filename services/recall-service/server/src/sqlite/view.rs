//! A session as a turn begins with it: itself, one of its turns and the first page of its messages, all at one moment. And
//! pages of messages by themselves.
//!
//! What is of ordinary size is read where the caller is; more than that on a thread for such work, from the beginning.

use std::ops::ControlFlow;

use steward_base::names::{SessionId, TeamId};
use steward_recall_core::get_session::{MessagePage, SessionRead, SessionView};
use steward_recall_core::store::MessageRange;
use steward_store::{Db, Sqlite};

use super::failure::Failure;
use super::{messages, sessions};

/// Bytes of messages that are read where the caller is: some hundred microseconds of work.
const AT_ONCE: usize = 512 * 1024;

/// What was asked for; `None` for a session that does not exist.
pub(super) async fn view(
    sqlite: &Sqlite,
    team: &TeamId,
    session: &SessionId,
    read: &SessionRead,
) -> Result<Option<SessionView>, Failure> {
    match sqlite.view(|db| seen(db, team, session, read, AT_ONCE)).await? {
        Seen::All(view) => Ok(view),
        Seen::More => {
            let (team, session, read) = (team.clone(), session.clone(), read.clone());
            let whole = sqlite.view_beside(move |db| seen(db, &team, &session, &read, usize::MAX));
            Ok(whole.await?.all())
        }
    }
}

/// A page of messages; `None` for a session that does not exist.
pub(super) async fn page(
    sqlite: &Sqlite,
    team: &TeamId,
    session: &SessionId,
    range: &MessageRange,
) -> Result<Option<MessagePage>, Failure> {
    match sqlite.view(|db| page_of(db, team, session, range, AT_ONCE)).await? {
        Seen::All(page) => Ok(page),
        Seen::More => {
            let (team, session, range) = (team.clone(), session.clone(), range.clone());
            let whole = sqlite.view_beside(move |db| page_of(db, &team, &session, &range, usize::MAX));
            Ok(whole.await?.all())
        }
    }
}

/// What came of a look that was to read so many bytes of messages at most.
enum Seen<T> {
    All(Option<T>),
    /// There are more than that.
    More,
}

impl<T> Seen<T> {
    /// Of a look without a bound.
    fn all(self) -> Option<T> {
        match self {
            Self::All(all) => all,
            Self::More => None,
        }
    }
}

fn seen(
    db: Db<'_>,
    team: &TeamId,
    session: &SessionId,
    read: &SessionRead,
    bytes: usize,
) -> Result<Seen<SessionView>, Failure> {
    let Some(found) = sessions::load(db, team, session)? else {
        return Ok(Seen::All(None));
    };
    let turn = match read.turn.as_str() {
        "" => None,
        turn => messages::turn_of(db, found.number, turn)?,
    };
    let page = match &read.messages {
        Some(range) => fill(db, found.number, range, bytes)?,
        None => Some(MessagePage::default()),
    };
    Ok(page.map_or(Seen::More, |messages| {
        Seen::All(Some(SessionView {
            session: found.session,
            turn,
            messages,
        }))
    }))
}

fn page_of(
    db: Db<'_>,
    team: &TeamId,
    session: &SessionId,
    range: &MessageRange,
    bytes: usize,
) -> Result<Seen<MessagePage>, Failure> {
    let Some(number) = sessions::number_of(db, team, session)? else {
        return Ok(Seen::All(None));
    };
    Ok(fill(db, number, range, bytes)?.map_or(Seen::More, |page| Seen::All(Some(page))))
}

/// A page, unless it has more than so many bytes.
fn fill(db: Db<'_>, session: i64, range: &MessageRange, bytes: usize) -> Result<Option<MessagePage>, Failure> {
    let (mut page, mut is_within) = (MessagePage::default(), true);
    // One more than fits on the page says that there is another page.
    messages::each(db, session, range, range.limit.saturating_add(1), |message| {
        is_within = page.bytes() < bytes;
        if is_within {
            page.offer(range, message)
        } else {
            ControlFlow::Break(())
        }
    })?;
    Ok(is_within.then_some(page))
}

//! A session as a turn begins with it: itself, one of its turns and the first page of its messages, all at one moment.
//!
//! One look where the conversation is of ordinary size, since each piece of work for the database costs more than what it
//! reads; the long way for all others, so that large messages never stand in memory more than a few at a time.

use sqlx::sqlite::SqliteRow;
use sqlx::{Connection, Row};
use steward_base::names::{SessionId, TeamId};
use steward_recall_core::get_session::{BATCH, MessagePage, SessionRead, SessionView};
use steward_recall_core::store::{MessageRange, Taken, Visibility};
use steward_store::{Batch, Reader, Sqlite};

use super::failure::Failure;
use super::messages::{self, columns};
use super::rows::{self, signed};
use super::sessions::{self, Numbered};

/// The session with what its requests begin with, and the turn if it has that. Values: team, session, turn.
const SESSION: &str = "SELECT 'session' AS part, s.*, p.*,
         t.id AS t_id, t.state AS t_state, t.first_seq AS t_first_seq, t.last_seq AS t_last_seq,
         t.iterations AS t_iterations, t.segments AS t_segments, t.error_reason AS t_error_reason,
         t.error_message AS t_error_message, t.created AS t_created, t.ended AS t_ended
     FROM session s JOIN session_prompt p ON p.session = s.number
     LEFT JOIN turn t ON t.session = s.number AND t.id = ?3
     WHERE s.team = ?1 AND s.id = ?2";

const EXPOSURES: &str = "SELECT 'exposure' AS part, e.* FROM exposure e
     WHERE session = (SELECT number FROM session WHERE team = ?1 AND id = ?2) ORDER BY e.number";

/// Further values: first, last, at most, at most if they may be large. How large they are is taken from the last request
/// that was made of them. A limit may not be null: of a session that does not exist there are none.
const MESSAGES: &str = concat!(
    "SELECT 'message' AS part, ",
    columns!(),
    ", seq AS at FROM message
         WHERE session = (SELECT number FROM session WHERE team = ?1 AND id = ?2)
               AND place IS NULL AND seq BETWEEN ?4 AND ?5 AND rewound = 0 AND compacted = 0
     UNION ALL
     SELECT 'message' AS part, ",
    columns!(),
    ", place AS at FROM message
         WHERE session = (SELECT number FROM session WHERE team = ?1 AND id = ?2)
               AND place IS NOT NULL AND place BETWEEN ?4 AND ?5 AND rewound = 0 AND compacted = 0
     ORDER BY at
     LIMIT coalesce(
         (SELECT iif(prefix_messages_bytes BETWEEN 1 AND 1048576, ?6, ?7) FROM session WHERE team = ?1 AND id = ?2), 0)"
);

/// What was asked for; `None` for a session that does not exist.
pub(super) async fn view(
    sqlite: &Sqlite,
    team: &TeamId,
    session: &SessionId,
    read: &SessionRead,
) -> Result<Option<SessionView>, Failure> {
    let look = ask(team, session, read);
    match look {
        Some(look) => {
            let rows = sqlite.read().await?.at_once(look).await?;
            match seen(&rows, read)? {
                Seen::All(view) => Ok(view.map(|view| *view)),
                Seen::More => step_by_step(sqlite.read().await?, team, session, read).await,
            }
        }
        None => step_by_step(sqlite.read().await?, team, session, read).await,
    }
}

/// The look, unless it is one of a kind that nobody makes at every turn.
fn ask(team: &TeamId, session: &SessionId, read: &SessionRead) -> Option<Batch> {
    let mut look = Batch::default();
    look.statement(SESSION)
        .with(team.as_str())
        .with(session.as_str())
        .with(read.turn.as_str())
        .statement(EXPOSURES);
    if let Some(range) = &read.messages {
        if !is_ordinary(range) {
            return None;
        }
        // One more than fits on the page says that there is another page.
        look.statement(MESSAGES)
            .with(signed(range.from))
            .with(signed(range.to))
            .with(i64::from(range.limit) + 1)
            .with(i64::from(BATCH));
    }
    Some(look)
}

fn is_ordinary(range: &MessageRange) -> bool {
    range.visibility == Visibility::InContext && range.taken == Taken::First && range.roles.is_empty()
}

enum Seen {
    All(Option<Box<SessionView>>),
    /// There may be messages that were not looked at.
    More,
}

fn seen(rows: &[SqliteRow], read: &SessionRead) -> Result<Seen, Failure> {
    let Some((first, rest)) = rows.split_first() else {
        return Ok(Seen::All(None));
    };
    let mut session = Numbered::from_row(first)?.session;
    rows::prompt(first, &mut session.frozen)?;
    let turn = match first.try_get::<Option<&str>, _>("t_id")? {
        Some(_) => Some(rows::turn(first, "t_")?),
        None => None,
    };
    let mut page = MessagePage::default();
    let mut found = 0;
    for row in rest {
        if row.try_get::<&str, _>("part")? == "exposure" {
            session.exposures.push(rows::exposure(row)?);
            continue;
        }
        found += 1;
        let message = rows::placed_message(row)?;
        if let Some(range) = &read.messages
            && page.offer(range, message).is_break()
        {
            break;
        }
    }
    if found == BATCH && page.next.is_none() {
        return Ok(Seen::More);
    }
    Ok(Seen::All(Some(Box::new(SessionView {
        session,
        turn,
        messages: page,
    }))))
}

/// The same in a transaction of several looks.
async fn step_by_step(
    mut reader: Reader,
    team: &TeamId,
    session: &SessionId,
    read: &SessionRead,
) -> Result<Option<SessionView>, Failure> {
    let mut snapshot = reader.begin().await?;
    let Some(found) = sessions::load_numbered(&mut snapshot, team, session).await? else {
        return Ok(None);
    };
    let turn = match read.turn.as_str() {
        "" => None,
        turn => messages::turn_of(&mut snapshot, found.number, turn).await?,
    };
    let page = match &read.messages {
        Some(range) => messages::page(&mut snapshot, found.number, range).await?,
        None => MessagePage::default(),
    };
    snapshot.commit().await?;
    Ok(Some(SessionView {
        session: found.session,
        turn,
        messages: page,
    }))
}

//! Telling an external memory what it is owed ([`crate::owed`]): in a session's order, until it has it.

use std::collections::BTreeSet;
use std::time::Duration;

use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::{Message, Opened, Said, SessionKey, TurnState};
use steward_orchestrator_core::turn::own_words;

use super::Turns;
use super::beside::at;
use crate::owed::{Debt, What};
use crate::peers::Told;

/// How long something is owed at most: a memory that was not to be had for that long is done without.
const LONGEST: Duration = Duration::from_hours(7 * 24);
/// How long a turn is waited for that was never stored, or an end that never came.
const NEVER_CAME: Duration = Duration::from_hours(1);

/// What is told of a turn.
pub(super) struct Words {
    pub(super) said: String,
    pub(super) answer: String,
}

/// What came of one debt.
enum Paid {
    /// It is settled, for whatever reason.
    Settled,
    /// Its turn is not over.
    NotYet,
    /// The memory did not take it in.
    Refused,
}

impl From<Told> for Paid {
    fn from(told: Told) -> Self {
        match told {
            Told::Taken | Told::Nothing => Self::Settled,
            Told::Later => Self::Refused,
        }
    }
}

impl Turns {
    /// Tells what is owed of the sessions that wait longest. Gives how much was settled.
    pub(crate) async fn pay_all(&self, limit: u32) -> Result<u64, Error> {
        let (mut settled, mut refused) = (0, BTreeSet::new());
        for key in self.parts().owed.sessions(limit).await? {
            // One that does not answer for one session does not for another.
            if refused.contains(&key.team) {
                continue;
            }
            let mut place = self.lines().stand(&key);
            place.reached().await;
            let (paid, answers) = self.pay(&key, None).await?;
            settled += paid;
            if !answers {
                refused.insert(key.team.clone());
            }
        }
        Ok(settled)
    }

    /// Tells what is owed of a session, from a place in its line. `known` is a turn whose words need not be read. Gives how much
    /// was settled, and whether the memory answered.
    pub(super) async fn pay(&self, key: &SessionKey, known: Option<(&str, &Words)>) -> Result<(u64, bool), Error> {
        let owed = &self.parts().owed;
        let mut settled = 0;
        for debt in owed.of(key).await? {
            let words = known.and_then(|(turn, words)| (debt.what == What::Turn(turn.to_owned())).then_some(words));
            match self.pay_one(&debt, words).await? {
                Paid::Settled => {}
                Paid::NotYet => return Ok((settled, true)),
                Paid::Refused if self.is_older(&debt, LONGEST) => {
                    tracing::warn!(session.id = %key.id, "an external memory was not to be had for too long; it is not told any more");
                }
                Paid::Refused => return Ok((settled, false)),
            }
            owed.settle(key, &debt.what).await?;
            settled += 1;
        }
        Ok((settled, true))
    }

    async fn pay_one(&self, debt: &Debt, words: Option<&Words>) -> Result<Paid, Error> {
        match &debt.what {
            What::Turn(turn) => match words {
                Some(words) => self.pay_turn(debt, turn, words).await,
                None => match self.words_of(debt, turn).await? {
                    Ok(words) => self.pay_turn(debt, turn, &words).await,
                    Err(paid) => Ok(paid),
                },
            },
            What::End => {
                if self.store().session(&debt.key).await?.is_some() {
                    return Ok(self.never_came(debt));
                }
                let at = at(&debt.person, &debt.key, "end");
                Ok(self.parts().beside.end(&at).await.map_or_else(unheard, Paid::from))
            }
        }
    }

    async fn pay_turn(&self, debt: &Debt, turn: &str, words: &Words) -> Result<Paid, Error> {
        let at = at(&debt.person, &debt.key, turn);
        let told = self.parts().beside.sync(&at, &words.said, &words.answer).await;
        Ok(told.map_or_else(unheard, Paid::from))
    }

    /// What there is to tell of a turn, as it is stored; or that there is nothing.
    async fn words_of(&self, debt: &Debt, turn: &str) -> Result<Result<Words, Paid>, Error> {
        if let Some(running) = self.registry().running(&debt.key)
            && running.id() == turn
        {
            return Ok(Err(Paid::NotYet));
        }
        let Some(opened) = self.store().open(&debt.key, turn).await? else {
            return Ok(Err(Paid::Settled));
        };
        let state = opened.turn.as_ref().map(|turn| turn.state);
        Ok(match state {
            None => Err(self.never_came(debt)),
            Some(TurnState::Completed) => words(&opened, turn).ok_or(Paid::Settled),
            Some(TurnState::Running | TurnState::RequiresAction) => Err(Paid::NotYet),
            Some(TurnState::Failed | TurnState::Interrupted | TurnState::Expired) => Err(Paid::Settled),
        })
    }

    fn never_came(&self, debt: &Debt) -> Paid {
        if self.is_older(debt, NEVER_CAME) {
            Paid::Settled
        } else {
            Paid::NotYet
        }
    }

    fn is_older(&self, debt: &Debt, than: Duration) -> bool {
        self.parts().clock.now().since(debt.since) > than
    }
}

/// The person's own words and the final answer. Nothing once they left the context.
fn words(opened: &Opened, turn: &str) -> Option<Words> {
    let of_turn = |message: &&Message| message.body.turn == turn;
    let own = || opened.history.iter().filter(of_turn);
    let first = own().find(|message| message.body.said == Said::User)?;
    let last = own().rfind(|message| matches!(message.body.said, Said::Assistant { .. }))?;
    Some(Words {
        said: own_words(&first.body)?.to_owned(),
        answer: last.body.text.clone(),
    })
}

#[expect(clippy::needless_pass_by_value, reason = "made to be used with map_or_else")]
fn unheard(error: Error) -> Paid {
    tracing::warn!(
        error = steward_base::error_chain(&error),
        "an external memory could not be told"
    );
    Paid::Refused
}

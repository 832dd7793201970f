//! Withdrawals: what a source takes back, an advisory names or a maintainer revokes, and undoing that (`H-2`, `H-7`). The
//! table of what may become of what is [`turn`]; the effect on library, lock and log is one transaction of the store.

use std::collections::BTreeMap;

use super::{Actor, Hub, TRIES, event};
use crate::advisories::{Listed, Subject};
use crate::audit::Action;
use crate::error::Error;
use crate::lock::Lock;
use crate::quarantine::POLICY;
use crate::source::Resolved;
use crate::store::Withdraw;
use crate::withdrawal::{Cause, Signal, Standing, Turn, Withdrawal, turn};

/// What a check found of one installed skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Its lock.
    pub lock: Lock,
    /// Its withdrawal as it is now, if there is one.
    pub withdrawal: Option<Withdrawal>,
    /// Whether the check changed that.
    pub changed: bool,
    /// Who did not answer, and why: then nothing is known to be fine again.
    pub problem: Option<String>,
}

/// How many items are looked at in one read.
const PAGE: usize = 200;

impl Hub {
    /// What is withdrawn, or was and is reinstated, by digest.
    pub async fn withdrawals(&self, team: &str) -> Result<Vec<Withdrawal>, Error> {
        Ok(self.parts.store.withdrawals(team).await?)
    }

    /// What is known of one tree.
    pub async fn withdrawal(&self, team: &str, digest: &str) -> Result<Option<Withdrawal>, Error> {
        Ok(self.parts.store.withdrawal(team, digest).await?)
    }

    /// Refuses a tree that is withdrawn.
    pub(super) async fn check_standing(&self, team: &str, digest: &str) -> Result<(), Error> {
        match self.withdrawal(team, digest).await? {
            Some(withdrawal) if withdrawal.is_in_force() => Err(Error::Withdrawn {
                standing: withdrawal.standing,
                reason: withdrawal.reason,
            }),
            _ => Ok(()),
        }
    }

    /// A maintainer withdraws a tree: yanked, nobody installs it any more; revoked, it is also taken out of agents' sight
    /// where it is installed. Said again it stays so.
    pub async fn withdraw(
        &self,
        actor: Actor<'_>,
        digest: &str,
        standing: Standing,
        reason: &str,
    ) -> Result<Withdrawal, Error> {
        if reason.trim().is_empty() {
            return Err(Error::NoReason);
        }
        let signal = Signal {
            standing,
            cause: Cause::Person,
            reason: reason.to_owned(),
        };
        let settled = self.settle(actor, digest, |present| match present {
            Some(present) if present.standing == standing => Ok(Some(present.clone())),
            _ => Ok(Some(self.written(actor, digest, &signal))),
        });
        settled.await?.ok_or_else(|| no_withdrawal(digest))
    }

    /// A maintainer overrules a withdrawal: the tree can be installed again, and an installed skill that was taken out of
    /// sight is back. The cause that is overruled withdraws it no more.
    pub async fn reinstate(&self, actor: Actor<'_>, digest: &str, reason: &str) -> Result<Withdrawal, Error> {
        if reason.trim().is_empty() {
            return Err(Error::NoReason);
        }
        let settled = self.settle(actor, digest, |present| match present {
            None => Err(no_withdrawal(digest)),
            Some(present) if !present.is_in_force() => Ok(Some(present.clone())),
            Some(present) => Ok(Some(Withdrawal {
                standing: Standing::Reinstated,
                by: actor.user.to_owned(),
                reason: reason.to_owned(),
                at: self.parts.clock.now(),
                ..present.clone()
            })),
        });
        settled.await?.ok_or_else(|| no_withdrawal(digest))
    }

    /// What the advisories say now.
    pub async fn advisories(&self) -> Listed {
        match &self.parts.advisories {
            Some(advisories) => advisories.read().await,
            None => Listed::default(),
        }
    }

    /// Asks the source of one installed skill, and the advisories, whether it is withdrawn, and acts on what they say.
    pub async fn check_one(&self, actor: Actor<'_>, name: &str, listed: &Listed) -> Result<Checked, Error> {
        let lock = self.installed(actor.team, name).await?.lock;
        let (signal, problem) = self.signal(&lock, listed).await;
        let before = self.withdrawal(actor.team, &lock.digest).await?;
        let after = self
            .follow(actor, &lock.digest, signal.as_ref(), problem.is_none())
            .await?;
        Ok(Checked {
            changed: before != after,
            withdrawal: after,
            lock,
            problem,
        })
    }

    /// The same for everything that is installed, and the advisories for what waits in quarantine.
    pub async fn check(&self, actor: Actor<'_>) -> Result<Vec<Checked>, Error> {
        let listed = self.advisories().await;
        let mut all = Vec::new();
        for installed in self.list(actor.team).await? {
            match self.check_one(actor, &installed.lock.name, &listed).await {
                Ok(checked) => all.push(checked),
                // Uninstalled meanwhile.
                Err(Error::NotInstalled { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.check_items(actor, &listed).await?;
        Ok(all)
    }

    /// Holds what waits in quarantine against the advisories.
    pub async fn check_items(&self, actor: Actor<'_>, listed: &Listed) -> Result<(), Error> {
        let mut after: Option<String> = None;
        loop {
            let items = self.items(actor.team, after.as_deref(), PAGE).await?;
            for item in items.iter().filter(|item| item.state.is_open()) {
                let Some(report) = &item.report else { continue };
                if let Some(signal) = listed.of(subject(&item.resolved, &report.digest)) {
                    self.follow(actor, &report.digest, Some(&signal), false).await?;
                }
            }
            match items.last() {
                Some(last) if items.len() == PAGE => after = Some(last.place()),
                _ => return Ok(()),
            }
        }
    }

    /// Why what comes in cannot pass by its verdict alone: it is withdrawn, or nobody can say whether it is.
    pub(super) async fn doubts(
        &self,
        actor: Actor<'_>,
        resolved: &Resolved,
        digest: &str,
    ) -> Result<Vec<String>, Error> {
        let listed = self.advisories().await;
        let signal = listed.of(subject(resolved, digest));
        let known = self.follow(actor, digest, signal.as_ref(), false).await?;
        let mut doubts: Vec<String> = listed
            .failed
            .into_iter()
            .map(|failed| format!("an advisory list did not answer: {failed}"))
            .collect();
        if let Some(withdrawal) = known.filter(Withdrawal::is_in_force) {
            doubts.push(format!("it is {}: {}", withdrawal.standing.as_str(), withdrawal.reason));
        }
        Ok(doubts)
    }

    /// What is said against an installed skill, and who could not be asked.
    async fn signal(&self, lock: &Lock, listed: &Listed) -> (Option<Signal>, Option<String>) {
        let listed_subject = Subject {
            digest: &lock.digest,
            source: &lock.source,
            reference: &lock.reference,
            revision: &lock.revision,
        };
        let (advised, mut problem) = (listed.of(listed_subject), listed.failed.first().cloned());
        let said = match self.source(&lock.source) {
            None => Err(format!("{} is switched off", lock.source)),
            Some(source) => {
                let said = source.withdrawn(&lock.reference, &lock.revision).await;
                said.map_err(|error| error.to_string())
            }
        };
        let taken_back = match said {
            Ok(reason) => reason.map(|reason| Signal {
                standing: Standing::Yanked,
                cause: Cause::Source(lock.source.clone()),
                reason,
            }),
            Err(error) => {
                problem = Some(error);
                None
            }
        };
        (advised.or(taken_back), problem)
    }

    /// Does what [`turn`] says. An end needs that everybody was heard.
    async fn follow(
        &self,
        actor: Actor<'_>,
        digest: &str,
        signal: Option<&Signal>,
        all_heard: bool,
    ) -> Result<Option<Withdrawal>, Error> {
        self.settle(actor, digest, |present| {
            Ok(match (turn(present, signal), signal) {
                (Turn::Take, Some(signal)) => Some(self.written(actor, digest, signal)),
                (Turn::End, _) if all_heard => None,
                _ => present.cloned(),
            })
        })
        .await
    }

    fn written(&self, actor: Actor<'_>, digest: &str, signal: &Signal) -> Withdrawal {
        Withdrawal {
            digest: digest.to_owned(),
            standing: signal.standing,
            cause: signal.cause.clone(),
            by: match signal.cause {
                Cause::Person => actor.user.to_owned(),
                Cause::Source(_) | Cause::Advisory(_) => POLICY.to_owned(),
            },
            reason: signal.reason.clone(),
            at: self.parts.clock.now(),
        }
    }

    /// Writes what `decide` makes of the present state, anew when someone else was quicker.
    async fn settle(
        &self,
        actor: Actor<'_>,
        digest: &str,
        decide: impl Fn(Option<&Withdrawal>) -> Result<Option<Withdrawal>, Error>,
    ) -> Result<Option<Withdrawal>, Error> {
        let mut last = None;
        for _ in 0..TRIES {
            let before = self.withdrawal(actor.team, digest).await?;
            let after = decide(before.as_ref())?;
            if before == after {
                return Ok(after);
            }
            let installed = self.list(actor.team).await?;
            let mut locks = installed.iter().map(|installed| &installed.lock);
            let skill = locks.find(|lock| lock.digest == digest).map(|lock| lock.name.as_str());
            let withdraw = Withdraw {
                actor,
                digest,
                before: before.as_ref(),
                after: after.as_ref(),
                skill,
                at: self.parts.clock.now(),
            };
            let events = vec![happened(&withdraw)];
            match self.parts.store.withdraw(withdraw, events).await.map_err(Error::from) {
                Ok(()) => return Ok(after),
                Err(error @ Error::ChangedMeanwhile { .. }) => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| no_withdrawal(digest)))
    }
}

fn subject<'a>(resolved: &'a Resolved, digest: &'a str) -> Subject<'a> {
    Subject {
        digest,
        source: &resolved.source,
        reference: &resolved.reference,
        revision: &resolved.revision,
    }
}

fn no_withdrawal(digest: &str) -> Error {
    Error::NoWithdrawal {
        digest: digest.to_owned(),
    }
}

fn happened(withdraw: &Withdraw<'_>) -> crate::audit::Event {
    let standing = withdraw.after.map_or("offered again", |after| after.standing.as_str());
    let mut facts = BTreeMap::from([
        ("digest".to_owned(), withdraw.digest.to_owned()),
        ("standing".to_owned(), standing.to_owned()),
    ]);
    if let Some(told) = withdraw.after.or(withdraw.before) {
        facts.insert("cause".to_owned(), told.cause.told());
    }
    if let Some(after) = withdraw.after {
        facts.insert("reason".to_owned(), after.reason.clone());
    }
    if let Some(before) = withdraw.before {
        facts.insert("was".to_owned(), before.standing.as_str().to_owned());
    }
    let in_force = withdraw.after.is_some_and(Withdrawal::is_in_force);
    let action = if in_force { Action::Withdraw } else { Action::Reinstate };
    event(action, withdraw.skill.unwrap_or(withdraw.digest), withdraw.actor, facts)
}

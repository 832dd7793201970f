//! The teams in memory as a search sees them.

use std::collections::BTreeMap;

use steward_base::names::TeamId;

use super::{Team, candidate, is_asked_for, is_visible, may_hit, order, stands_in, without_prompt};
use crate::error::Error;
use crate::message::Message;
use crate::search::rank::{Candidate, Ranking};
use crate::search::{Glimpse, Hit, HitQuery, Look, Snapshot, Surroundings};

impl Snapshot for BTreeMap<TeamId, Team> {
    fn hits(&self, query: &HitQuery) -> Result<Vec<Hit>, Error> {
        let kept = self
            .get(&query.asker.team)
            .into_iter()
            .flat_map(|team| team.sessions.values());
        let mut found: Vec<Candidate> = Vec::new();
        let current = query.asker.current.as_ref();
        let current = self.get(&query.asker.team).and_then(|team| team.sessions.get(current?));
        for kept in kept.filter(|kept| is_asked_for(&kept.session, query)) {
            let messages = kept
                .messages
                .iter()
                .filter(|message| may_hit(message, query) && !stands_in(current, &kept.session, message));
            let (id, root, demoted) = (&kept.session.id, &kept.session.root, kept.session.source.is_demoted());
            found.extend(messages.filter_map(|message| candidate((id, root, demoted), message, &query.query)));
        }
        found.sort_by(|one, two| order(one, two, query.sort));
        let mut ranking = Ranking::new(query.sort, query.limit, query.depth);
        for candidate in found {
            if ranking.offer(candidate).is_break() {
                break;
            }
        }
        Ok(ranking.into_hits())
    }

    fn look(&self, team: &TeamId, looks: &[Look]) -> Result<Vec<Option<Surroundings>>, Error> {
        let kept = self.get(team);
        let each = looks.iter().map(|look| {
            let kept = kept?.sessions.get(&look.session)?;
            let visible = kept
                .messages
                .iter()
                .filter(|message| is_visible(message, look.visibility));
            let visible: Vec<&Message> = visible.collect();
            let ends = look.ends as usize;
            let shown = visible
                .iter()
                .enumerate()
                .filter(|(at, message)| look.around.contains(&message.seq) || *at < ends || at + ends >= visible.len());
            let glimpses = shown.map(|(_, message)| {
                let chars = (message.seq != look.hit).then_some(look.chars);
                Glimpse::of((*message).clone(), chars)
            });
            Some(Surroundings {
                session: without_prompt(&kept.session),
                messages: glimpses.collect(),
            })
        });
        Ok(each.collect())
    }
}

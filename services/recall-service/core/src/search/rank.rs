//! Which conversations answer a question, and in which order.
//!
//! A store offers its matches, best first, each with how strongly it matches every term. What is made of them is here, so
//! that all stores rank alike: a message is helped by terms that stand in the messages around it, a person's own words
//! weigh more than the model's, and a conversation with several good messages comes before one with a single one. Since
//! matches are offered until enough conversations are found, no number of hits elsewhere can starve one (`Q-6`).

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::ControlFlow;

use steward_base::Timestamp;
use steward_base::names::SessionId;

use super::{Hit, Sort};
use crate::message::Role;

/// Matches that are weighed against each other, at least, when all words were asked for.
pub const DEPTH: usize = 64;
/// The same when any word will do: then much matches by accident, and the order matters more.
pub const WIDE_DEPTH: usize = 400;

/// Messages on each side that lend their terms.
const REACH: u64 = 2;
/// How much of a neighbour's strength counts.
const LENT: f32 = 0.4;
/// What the best messages of a conversation after the first add.
const FURTHER: [f32; 2] = [0.5, 0.25];

/// A message that matches.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Session that has it.
    pub session: SessionId,
    /// Root of the session's lineage.
    pub root: SessionId,
    /// Number of the message.
    pub seq: u64,
    /// Who spoke.
    pub role: Role,
    /// Whether its session comes after all others (`Q-4`).
    pub demoted: bool,
    /// When it was appended.
    pub created: Timestamp,
    /// How strongly it matches each term of the query.
    pub strengths: Vec<f32>,
}

/// Takes candidates until enough is known.
#[derive(Debug)]
pub struct Ranking {
    sort: Sort,
    limit: usize,
    depth: usize,
    offered: usize,
    /// Found conversations, undemoted and demoted.
    roots: [usize; 2],
    kept: HashMap<SessionId, Vec<Candidate>>,
    /// How much each term matters, if that is known.
    weights: Vec<f32>,
}

impl Ranking {
    /// For at most `limit` conversations.
    pub fn new(sort: Sort, limit: usize, depth: usize) -> Self {
        Self {
            sort,
            limit,
            depth,
            offered: 0,
            roots: [0; 2],
            kept: HashMap::new(),
            weights: Vec::new(),
        }
    }

    /// Where each term of the question matters as much as `weights` say.
    #[must_use]
    pub fn weighing(mut self, weights: &[f32]) -> Self {
        weights.clone_into(&mut self.weights);
        self
    }

    /// Takes the next candidate; breaks when no further one can matter. They come by descending sum of strengths, newer
    /// ones first among equals; or by time, where that is asked for.
    pub fn offer(&mut self, candidate: Candidate) -> ControlFlow<()> {
        self.offered += 1;
        let weighs = self.sort == Sort::Relevance && self.offered <= self.depth;
        let roots = &mut self.roots[usize::from(candidate.demoted)];
        match self.kept.get_mut(&candidate.root) {
            // In the other list it would have come first; in this one it is only weighed.
            Some(known) if weighs => known.push(candidate),
            Some(known) if known.iter().all(|other| other.demoted) && !candidate.demoted => {
                *roots += 1;
                known.push(candidate);
            }
            None if weighs || *roots < self.limit => {
                *roots += 1;
                self.kept.insert(candidate.root.clone(), vec![candidate]);
            }
            Some(_) | None => {}
        }
        if self.roots[0] >= self.limit && !weighs {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Whether as many conversations were found as were asked for, those that come last not counted.
    pub const fn is_settled(&self) -> bool {
        self.roots[0] >= self.limit
    }

    /// The best hit of each conversation, in order.
    pub fn into_hits(self) -> Vec<Hit> {
        let parts = if self.sort == Sort::Relevance {
            self.parts()
        } else {
            Vec::new()
        };
        let Self {
            sort, limit, mut kept, ..
        } = self;
        for candidate in kept.values_mut().flatten() {
            for (strength, part) in candidate.strengths.iter_mut().zip(&parts) {
                *strength *= part;
            }
        }
        let mut found: Vec<(Candidate, f32)> = kept
            .into_values()
            .filter_map(|of_root| best_of(sort, of_root))
            .collect();
        found.sort_by(|(one, one_score), (two, two_score)| {
            let newer = (Reverse(one.created), Reverse(one.seq)).cmp(&(Reverse(two.created), Reverse(two.seq)));
            let better = two_score.total_cmp(one_score);
            let within = match sort {
                Sort::Relevance => better.then(newer),
                Sort::Newest => newer.then(better),
                Sort::Oldest => newer.reverse().then(better),
            };
            one.demoted
                .cmp(&two.demoted)
                .then(within)
                .then_with(|| one.session.cmp(&two.session))
        });
        let hits = found.into_iter().take(limit).map(|(candidate, score)| Hit {
            session: candidate.session,
            root: candidate.root,
            seq: candidate.seq,
            score: f64::from(score),
        });
        hits.collect()
    }
}

impl Ranking {
    /// What each part of a strength is worth: as much as its term matters, less where the term stands in most conversations,
    /// such as the name of whoever speaks in all of them. Between two terms it is the lesser one's worth.
    fn parts(&self) -> Vec<f32> {
        let count = self
            .kept
            .values()
            .flatten()
            .map(|candidate| candidate.strengths.len())
            .max();
        let is_wide = self.depth >= WIDE_DEPTH;
        let rarity: Vec<f32> = (0..self.weights.len())
            .map(|term| if is_wide { self.rarity(term) } else { 1.0 })
            .collect();
        let terms = rarity.iter().zip(&self.weights).map(|(rarity, weight)| rarity * weight);
        let pairs = rarity.windows(2).map(|two| two[0].min(two[1]));
        terms.chain(pairs).take(count.unwrap_or(0)).collect()
    }

    /// How well a term tells the conversations from one another that any word led to, beside how well it tells messages, which
    /// is in its strengths. Half of each: the root of their quotient.
    fn rarity(&self, term: usize) -> f32 {
        let of = |candidate: &Candidate| candidate.strengths.get(term).copied().unwrap_or(0.0);
        let strengths = || self.kept.values().flatten().map(of).filter(|strength| *strength > 0.0);
        let (messages, sum) = strengths().fold((0.0_f32, 0.0_f32), |(count, sum), one| (count + 1.0, sum + one));
        let with = self
            .kept
            .values()
            .filter(|members| members.iter().any(|one| of(one) > 0.0))
            .count();
        let (with, all) = (as_float(with), as_float(self.kept.len()));
        if messages < 1.0 {
            return 1.0;
        }
        (((all - with + 0.5) / (with + 0.5)).ln_1p() * messages / sum).sqrt()
    }
}

fn as_float(count: usize) -> f32 {
    u16::try_from(count).map_or(f32::MAX, f32::from)
}

/// The hit that stands for a conversation, and the conversation's score. Sessions of one conversation may hold copies of
/// the same messages, so that only those of one session add up.
fn best_of(sort: Sort, of_root: Vec<Candidate>) -> Option<(Candidate, f32)> {
    let demoted = of_root.iter().all(|candidate| candidate.demoted);
    let of_root: Vec<Candidate> = of_root
        .into_iter()
        .filter(|candidate| candidate.demoted == demoted)
        .collect();
    if sort != Sort::Relevance {
        return of_root.into_iter().next().map(|first| {
            let score = first.strengths.iter().sum();
            (first, score)
        });
    }
    let mut by_session: HashMap<&SessionId, Vec<&Candidate>> = HashMap::new();
    for candidate in &of_root {
        by_session.entry(&candidate.session).or_default().push(candidate);
    }
    let scored = by_session.into_values().map(|members| {
        let mut scores: Vec<(f32, &Candidate)> = members.iter().map(|one| (score(one, &members), *one)).collect();
        scores.sort_by(|(one_score, one), (two_score, two)| {
            let newer = (two.created, two.seq).cmp(&(one.created, one.seq));
            two_score.total_cmp(one_score).then(newer)
        });
        let further: f32 = scores
            .iter()
            .skip(1)
            .zip(FURTHER)
            .map(|((score, _), part)| score * part)
            .sum();
        let (first, best) = scores[0];
        (best, first + further)
    });
    let best = scored.max_by(|(one, one_score), (two, two_score)| {
        let newer = (one.created, one.seq).cmp(&(two.created, two.seq));
        one_score
            .total_cmp(two_score)
            .then(newer)
            .then_with(|| two.session.cmp(&one.session))
    });
    best.map(|(candidate, score)| (candidate.clone(), score))
}

/// How good a message is: what it matches itself, what its neighbours lend it, and who speaks.
fn score(message: &Candidate, session: &[&Candidate]) -> f32 {
    let mut strengths = message.strengths.clone();
    for neighbour in session {
        let distance = neighbour.seq.abs_diff(message.seq);
        if distance == 0 || distance > REACH {
            continue;
        }
        for (own, lent) in strengths.iter_mut().zip(&neighbour.strengths) {
            *own = own.max(LENT * lent);
        }
    }
    weight(message.role) * strengths.iter().sum::<f32>()
}

/// People look for what they said more often than for how it was answered.
const fn weight(role: Role) -> f32 {
    match role {
        Role::User => 1.0,
        Role::Assistant => 0.6,
        Role::Tool => 0.5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn candidate(root: &str, seq: u64, strengths: &[f32]) -> Candidate {
        let id = SessionId::parse(root).unwrap();
        Candidate {
            session: id.clone(),
            root: id,
            seq,
            role: Role::User,
            demoted: false,
            created: Timestamp::from_secs(1_000 - i64::try_from(seq).unwrap()),
            strengths: strengths.to_vec(),
        }
    }

    fn ranked(candidates: Vec<Candidate>, limit: usize) -> Vec<(String, u64)> {
        let mut ranking = Ranking::new(Sort::Relevance, limit, DEPTH);
        for candidate in candidates {
            if ranking.offer(candidate).is_break() {
                break;
            }
        }
        let hits = ranking.into_hits().into_iter();
        hits.map(|hit| (hit.root.as_str().to_owned(), hit.seq)).collect()
    }

    #[test]
    fn neighbours_lend_the_terms_that_a_message_lacks() {
        let apart = vec![candidate("apart", 1, &[2.0, 0.0]), candidate("apart", 9, &[0.0, 1.9])];
        let together = vec![candidate("near", 1, &[1.9, 0.0]), candidate("near", 2, &[0.0, 1.8])];
        assert_eq!(ranked([apart, together].concat(), 2)[0], ("near".to_owned(), 1));
    }

    #[test]
    fn several_good_messages_come_before_one_that_is_a_little_better() {
        let one = vec![candidate("one", 1, &[3.0])];
        let many = vec![candidate("many", 1, &[2.9]), candidate("many", 20, &[2.5])];
        assert_eq!(ranked([one, many].concat(), 2)[0].0, "many");
    }

    #[test]
    fn copies_in_a_branch_do_not_add_up() {
        let mut copy = candidate("root", 1, &[2.0]);
        copy.session = SessionId::parse("branch").unwrap();
        let copied = vec![candidate("root", 1, &[2.0]), copy];
        let better = vec![candidate("other", 1, &[2.5])];
        assert_eq!(ranked([better, copied].concat(), 2)[0].0, "other");
    }

    #[test]
    fn what_a_person_said_comes_before_what_the_model_said() {
        let mut answer = candidate("answer", 1, &[2.2]);
        answer.role = Role::Assistant;
        assert_eq!(ranked(vec![answer, candidate("asked", 1, &[2.0])], 2)[0].0, "asked");
    }

    /// A name that is said in every conversation tells none of them from another.
    #[test]
    fn a_term_of_every_conversation_counts_less_than_one_of_a_few() {
        let mut offered: Vec<Candidate> = (0..9)
            .map(|at| candidate(&format!("other{at}"), 1, &[1.0, 0.0]))
            .collect();
        offered.push(candidate("named", 1, &[1.5, 0.0]));
        offered.push(candidate("meant", 1, &[0.0, 1.4]));
        let best = |weights: &[f32], depth: usize| {
            let mut ranking = Ranking::new(Sort::Relevance, 20, depth).weighing(weights);
            for candidate in offered.clone() {
                assert!(ranking.offer(candidate).is_continue());
            }
            ranking.into_hits()[0].root.as_str().to_owned()
        };
        assert_eq!(best(&[1.0, 1.0], WIDE_DEPTH), "meant");
        // Where all words had to be there, and where nothing is known of the words, it is as offered.
        assert_eq!(
            (best(&[1.0, 1.0], DEPTH), best(&[], WIDE_DEPTH)),
            ("named".to_owned(), "named".to_owned())
        );
        assert_eq!(best(&[1.0, 2.0], DEPTH), "meant");
    }

    #[test]
    fn demoted_ones_come_last_however_well_they_match() {
        let wall = (0..500).map(|number| {
            let mut candidate = candidate(&format!("cron{number}"), 1, &[9.0]);
            candidate.demoted = true;
            candidate
        });
        let found = ranked(wall.chain([candidate("talk", 1, &[0.1])]).collect(), 3);
        assert_eq!((found.len(), found[0].0.as_str()), (3, "talk"));
    }

    proptest! {
        #[test]
        fn every_conversation_is_found_up_to_the_limit(
            offers in prop::collection::vec((0_u8..30, any::<bool>(), 1_u64..6), 0..300),
            limit in 1_usize..12,
            sort in prop::sample::select(vec![Sort::Relevance, Sort::Newest, Sort::Oldest]),
        ) {
            let mut ranking = Ranking::new(sort, limit, 20);
            let mut undemoted = std::collections::BTreeSet::new();
            let mut all = std::collections::BTreeSet::new();
            let mut broken = false;
            for (number, demoted, seq) in offers {
                // Whether a session is demoted does not change within it.
                let root = format!("r{number}{demoted}");
                all.insert(root.clone());
                if !demoted { undemoted.insert(root.clone()); }
                if !broken {
                    let offered = Candidate { demoted, ..candidate(&root, seq, &[1.0]) };
                    broken = ranking.offer(offered).is_break();
                }
            }
            let hits = ranking.into_hits();
            prop_assert_eq!(hits.len(), all.len().min(limit));
            let first = hits.iter().take_while(|hit| undemoted.contains(hit.root.as_str())).count();
            prop_assert_eq!(first, undemoted.len().min(limit));
            let distinct: std::collections::BTreeSet<&SessionId> = hits.iter().map(|hit| &hit.root).collect();
            prop_assert_eq!(distinct.len(), hits.len());
        }
    }
}

//! One try of a review: rebuild the request, run the kernel with the review's dispatch table, and say what became of it.
//!
//! Everything that a later try must not do differently is journalled first: what the request was built from, each reply of
//! the model before its calls are dispatched, each answer to a call. A later try reads the journal instead of asking again,
//! so that a job has the effects of one line of thought even if the model would answer differently today (`R-9`).

mod dispatch;
mod model;
mod transcript;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steward_agent::kernel::{self, Ended, KernelError, Outcome, Ports, estimate_tokens};
use steward_agent::review::{
    CorrectionLine, Kinds as ReviewKinds, MemoryLine, ReviewInput, ReviewMode, ReviewModel, ReviewPolicy,
    ReviewRequest, SkillLine, build, parse_verdict, review_settings,
};
use steward_base::Integrity;
use steward_model::Usage;

use crate::error::Error;
use crate::halt::{Halt, HaltReason};
use crate::plan::{self, Plan, PlanFacts};
use crate::ports::{Journal, Journalled, Opening, Peers, PresentEntry, PresentSkill, SessionView, StagedCorrection};
use crate::problem::halt_on;
use crate::review::{Ending, Mode, Problem, Rejected, Report, Review};
use crate::summary;

/// Entries of a list in the reviewer's verdict that are kept.
const MOST: usize = 20;
/// Characters of a text in the verdict that are kept.
const LONGEST: usize = 500;
/// Characters of the opening words of a write.
const PREVIEW: usize = 120;

/// What a try came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// How it stopped.
    pub reason: HaltReason,
    /// What all tries so far found out and did.
    pub report: Report,
}

/// Runs one try of `review`. `late` says that its start-by time had passed when it was handed out.
pub async fn run_review(
    review: &Review,
    late: bool,
    peers: Arc<dyn Peers>,
    journal: Arc<dyn Journal>,
    halt: &Halt,
) -> Tried {
    let journal = match Memo::load(journal).await {
        Ok(journal) => Arc::new(journal),
        Err(error) => {
            return Tried {
                reason: halt_on(&error),
                report: review.report.clone(),
            };
        }
    };
    // Rubric, mode and integrity are known once the request is built; a try that fails before keeps the earlier ones.
    let mut report = review.report.clone();
    let work = attempt(review, late, peers, &journal, halt, &mut report);
    let outcome = halt.interrupt().run_until_cancelled(work).await;
    let stopped = halt.reason();
    journal.fill(&mut report);
    let reason = match (stopped, outcome) {
        (Some(reason), _) => reason,
        (None, Some(Ok(ended))) => conclude(ended, &mut report),
        (None, Some(Err(error))) => halt_on(&error),
        (None, None) => HaltReason::Shutdown,
    };
    Tried { reason, report }
}

enum Attempted {
    Ran(Ended),
    Undone,
}

async fn attempt(
    review: &Review,
    late: bool,
    peers: Arc<dyn Peers>,
    journal: &Arc<Memo>,
    halt: &Halt,
    report: &mut Report,
) -> Result<Attempted, Error> {
    let session = peers.session().await?;
    if session.undone {
        return Ok(Attempted::Undone);
    }
    let opening = open(late, &session, &*peers, journal).await?;
    let Some(kinds) = ReviewKinds::from_flags(review.kinds.memory, review.kinds.skills) else {
        return Err(Error::unreadable("the review", "it is about nothing"));
    };
    let request = request(kinds, review, &session, &opening);
    report.mode = Some(mode(request.mode));
    report.rubric = request.rubric.tag.into();
    report.integrity = request.spans.spans().iter().map(|span| span.integrity).min();
    let ports = ports(kinds, &session, &opening, &request, peers, journal, halt);
    let window = if opening.context_window == 0 {
        u64::MAX
    } else {
        opening.context_window
    };
    let ended = kernel::run(&ports, &review_settings(window), request.conversation).await;
    Ok(Attempted::Ran(ended))
}

/// What the request is built from: as the first try found it.
async fn open(late: bool, session: &SessionView, peers: &dyn Peers, journal: &Memo) -> Result<Opening, Error> {
    if let Some(opening) = journal.opening() {
        return Ok(opening);
    }
    let route = peers.route().await?;
    let present = peers.present().await?;
    let history: u64 = session
        .messages
        .iter()
        .map(|message| estimate_tokens(message.sent.content()))
        .sum();
    let fixed = estimate_tokens(&session.system) + estimate_tokens(&session.tools_json);
    let same_model = route.review_model.is_empty() || route.review_model == session.model;
    let plan = plan::decide(PlanFacts {
        same_model,
        late,
        history_tokens: history + fixed,
        context_window: route.context_window,
    });
    let reviewer = if same_model {
        session.model.clone()
    } else {
        route.review_model
    };
    let opening = Opening {
        memory: present.memory,
        corrections: present.corrections,
        skills: present.skills,
        digest_for: (plan == Plan::Digest).then_some(reviewer),
        context_window: route.context_window,
    };
    journal.record_opening(opening.clone()).await?;
    Ok(opening)
}

fn request(kinds: ReviewKinds, review: &Review, session: &SessionView, opening: &Opening) -> ReviewRequest {
    let memory: Vec<MemoryLine> = opening.memory.iter().map(memory_line).collect();
    let skills: Vec<SkillLine> = opening.skills.iter().map(skill_line).collect();
    let numbered = (1..).zip(&opening.corrections);
    let corrections: Vec<CorrectionLine> = numbered.map(|(at, one)| correction_line(at, one)).collect();
    let input = ReviewInput {
        kinds,
        parent_model: &session.model,
        system: Arc::clone(&session.system),
        tools_json: Arc::clone(&session.tools_json),
        messages: &session.messages,
        memory: &memory,
        corrections: &corrections,
        skills: &skills,
        model: opening
            .digest_for
            .as_deref()
            .map_or(ReviewModel::Parent, ReviewModel::Other),
        max_output_tokens: None,
    };
    build(&input, review.id.as_str())
}

fn memory_line(entry: &PresentEntry) -> MemoryLine {
    MemoryLine {
        target: entry.target.clone(),
        text: entry.text.clone(),
    }
}

/// Numbered within the review: an id of the store would differ from one session to the next (`R-3`).
fn correction_line(at: usize, correction: &StagedCorrection) -> CorrectionLine {
    CorrectionLine {
        id: format!("c{at}"),
        target: correction.target.clone(),
        text: correction.text.clone(),
    }
}

fn skill_line(skill: &PresentSkill) -> SkillLine {
    SkillLine {
        name: skill.name.clone(),
        description: skill.description.clone(),
        marks: skill.marks.clone(),
    }
}

fn mode(mode: ReviewMode) -> Mode {
    match mode {
        ReviewMode::Replay => Mode::Replay,
        ReviewMode::Redacted => Mode::Redacted,
        ReviewMode::Digest => Mode::Digest,
    }
}

fn ports(
    kinds: ReviewKinds,
    session: &SessionView,
    opening: &Opening,
    request: &ReviewRequest,
    peers: Arc<dyn Peers>,
    journal: &Arc<Memo>,
    halt: &Halt,
) -> Ports {
    // What was chosen after text from outside had been read is no better than that text, whatever it cites (`L-6`).
    let ceiling = if request.hidden {
        Integrity::External
    } else {
        Integrity::Operator
    };
    let dispatch = dispatch::JournalledDispatch {
        policy: ReviewPolicy::new(kinds, session.memory_on, request.spans.clone()),
        spans: request.spans.clone(),
        corrections: opening.corrections.clone(),
        ceiling,
        peers: Arc::clone(&peers),
        journal: Arc::clone(journal),
        halt: halt.clone(),
    };
    Ports {
        model: Arc::new(model::JournalledModel {
            peers,
            journal: Arc::clone(journal),
            halt: halt.clone(),
            beside: model::Beside::of(session, request),
        }),
        transcript: Arc::new(transcript::NoTranscript),
        dispatch: Arc::new(dispatch),
        events: Arc::new(transcript::NoEvents),
        interrupt: halt.interrupt(),
    }
}

/// What an end that nobody asked for means.
fn conclude(attempted: Attempted, report: &mut Report) -> HaltReason {
    let Attempted::Ran(ended) = attempted else {
        return HaltReason::Ended(Ending::Cancelled(Problem::new("TURN_UNDONE", "The turn was undone.")));
    };
    let ending = match ended.outcome {
        Outcome::Final { text, .. } => {
            take_verdict(&text, report);
            Ending::Finished
        }
        Outcome::BudgetSpent(_) => broken_off(
            report,
            Problem::new("BUDGET_SPENT", "The review used up its budget without a result."),
        ),
        Outcome::Denied => broken_off(
            report,
            Problem::new(
                "TOOLS_DENIED",
                "The reviewer kept calling tools that a review may not use.",
            ),
        ),
        Outcome::RequiresAction { .. } => broken_off(
            report,
            Problem::new("INTERNAL", "The review met a fault; the log has the details."),
        ),
        // Without a reason of ours nothing interrupts; the next try goes on from the journal.
        Outcome::Interrupted => return HaltReason::Shutdown,
        Outcome::Failed { error } => return failed(&error, report),
    };
    HaltReason::Ended(ending)
}

fn failed(error: &KernelError, report: &Report) -> HaltReason {
    match error {
        KernelError::MalformedArguments { .. } => HaltReason::Ended(broken_off(
            report,
            Problem::new("ANSWER_MALFORMED", "The model kept writing calls that cannot be read."),
        )),
        // Errors of our own ports stop the run with their reason; what is left is the model's.
        _ => HaltReason::TryAgain(Problem::new(
            "MODEL_ANSWER_INVALID",
            "The model's answer was cut off or could not be read.",
        )),
    }
}

/// What was written counts, even if the reviewer never came to its end.
fn broken_off(report: &Report, problem: Problem) -> Ending {
    if summary::has_news(&report.writes) {
        Ending::Finished
    } else {
        Ending::Failed(problem)
    }
}

fn take_verdict(text: &str, report: &mut Report) {
    let Some(verdict) = parse_verdict(text) else { return };
    let cut = |text: &str| text.chars().take(LONGEST).collect::<String>();
    report.rejected = verdict
        .rejected
        .iter()
        .take(MOST)
        .map(|(candidate, reason)| Rejected {
            candidate: cut(candidate),
            reason: cut(reason),
        })
        .collect();
    report.used_skills = verdict.used_skills.into_iter().take(MOST).collect();
    for used in &mut report.used_skills {
        used.skill = cut(&used.skill);
        used.line = cut(&used.line);
        used.evidence.truncate(MOST);
    }
}

/// The journal with what is known of it in memory.
pub(crate) struct Memo {
    store: Arc<dyn Journal>,
    known: Mutex<Journalled>,
}

impl Memo {
    async fn load(store: Arc<dyn Journal>) -> Result<Self, Error> {
        let known = Mutex::new(store.load().await?);
        Ok(Self { store, known })
    }

    fn known(&self) -> MutexGuard<'_, Journalled> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opening(&self) -> Option<Opening> {
        self.known().opening.clone()
    }

    async fn record_opening(&self, opening: Opening) -> Result<(), Error> {
        self.store.record_opening(&opening).await?;
        self.known().opening = Some(opening);
        Ok(())
    }

    fn fill(&self, report: &mut Report) {
        report.fill_from(&self.known());
    }
}

impl Report {
    /// Takes cost and yield of all tries from what they have journalled (`R-10`).
    pub fn fill_from(&mut self, journalled: &Journalled) {
        self.iterations = u32::try_from(journalled.replies.len()).unwrap_or(u32::MAX);
        (self.usage, self.cost, self.unpriced) = (Usage::default(), 0, 0);
        for kept in journalled.replies.values() {
            self.usage.add(&kept.reply.usage);
            match kept.cost {
                Some(cost) => self.cost = self.cost.saturating_add(cost),
                None => self.unpriced += 1,
            }
        }
        self.writes = journalled
            .answers
            .values()
            .filter_map(|answer| answer.write.clone())
            .collect();
    }
}

#[cfg(test)]
mod tests;

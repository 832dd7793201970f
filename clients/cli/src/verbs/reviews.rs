//! `steward reviews`: list, show, watch, retry, cancel.

use clap::{Subcommand, ValueEnum};
use steward_proto::learning::v1 as pb;

use crate::connect::Session;
use crate::fault::at_least_one;
use crate::output::{Cell, NAME, Output, SIDE, Tone, first_line, gather, printable, short, time, word};

/// Verbs of `steward reviews`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List reviews, newest first.
    List {
        /// Only those of this session.
        #[arg(long, default_value = "", hide_default_value = true)]
        session: String,
        /// At most this many.
        #[arg(long, default_value_t = 20, value_parser = at_least_one::<usize>)]
        limit: usize,
    },
    /// Show what a review looked at, wrote and turned down.
    Show {
        /// Id or full name.
        review: String,
    },
    /// Follow reviews as they happen.
    Watch {
        /// Only those of this session.
        #[arg(long, default_value = "", hide_default_value = true)]
        session: String,
        /// How much is told of each; as the installation is set by default.
        #[arg(long, value_enum)]
        detail: Option<Detail>,
    },
    /// Put a failed, dead or cancelled review back into the queue.
    Retry {
        /// Id or full name.
        review: String,
    },
    /// Cancel a review.
    Cancel {
        /// Id or full name.
        review: String,
    },
}

/// How much is told of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Detail {
    /// That it ended.
    Off,
    /// One line that names each write.
    On,
    /// The same with the opening words of what was written.
    Verbose,
}

impl From<Detail> for pb::ReviewDetail {
    fn from(detail: Detail) -> Self {
        match detail {
            Detail::Off => Self::Off,
            Detail::On => Self::On,
            Detail::Verbose => Self::Verbose,
        }
    }
}

/// Runs a verb.
pub async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let reviews = &session.client.reviews;
    match verb {
        Verb::List { session: only, limit } => {
            let only = filter(&only, session);
            let answer = gather(limit, |page_size, page_token| {
                reviews.list_reviews(pb::ListReviewsRequest {
                    parent: session.user.clone(),
                    session: only.clone(),
                    page_size,
                    page_token,
                })
            });
            output.answer(&answer.await?, |output, answer| {
                let rows = answer.reviews.iter().map(row).collect();
                output.table(&["review", "due", "of", "state", "summary"], rows, "No reviews yet.");
                output.more(answer);
            })
        }
        Verb::Show { review } => {
            let request = pb::GetReviewRequest {
                name: session.review_name(&review),
            };
            output.answer(&reviews.get_review(request).await?, |output, answer| {
                if let Some(review) = &answer.review {
                    show(output, review);
                }
            })
        }
        Verb::Watch { session: only, detail } => watch(filter(&only, session), detail, session, output).await,
        Verb::Retry { review } => {
            let request = pb::RetryReviewRequest {
                name: session.review_name(&review),
            };
            output.answer(&reviews.retry_review(request).await?, |output, _| {
                output.line("Queued again.");
            })
        }
        Verb::Cancel { review } => {
            let request = pb::CancelReviewRequest {
                name: session.review_name(&review),
            };
            output.answer(&reviews.cancel_review(request).await?, |output, _| {
                output.line("Cancelled.");
            })
        }
    }
}

fn filter(given: &str, session: &Session) -> String {
    if given.is_empty() {
        String::new()
    } else {
        session.session_name(given)
    }
}

async fn watch(only: String, detail: Option<Detail>, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let request = pb::WatchReviewsRequest {
        parent: session.user.clone(),
        session: only,
        detail: detail.map_or(pb::ReviewDetail::Unspecified, Into::into).into(),
        ..pb::WatchReviewsRequest::default()
    };
    let mut stream = session.client.reviews.watch_reviews(request).await?;
    output.aside("watching; Ctrl-C ends");
    while let Some(item) = stream.message().await? {
        let Some(review) = &item.review else { continue };
        output.item(review, |output, review| output.line(&line(review)))?;
    }
    Ok(())
}

fn kinds(review: &pb::Review) -> &'static str {
    match (review.memory, review.skills) {
        (true, true) => "memory, skills",
        (true, false) => "memory",
        (false, true) => "skills",
        (false, false) => "",
    }
}

fn state(review: &pb::Review) -> String {
    word(review.state().as_str_name(), "REVIEW_STATE_")
}

fn row(review: &pb::Review) -> Vec<Cell> {
    let said = if review.summary.is_empty() {
        &review.error_message
    } else {
        &review.summary
    };
    vec![
        Cell::name(short(&review.name)),
        Cell::side(time(review.create_time.as_ref())),
        kinds(review).into(),
        Cell::state(state(review)),
        first_line(said, 70).into(),
    ]
}

/// One line on a review for people, as chat and watch print it.
pub fn line(review: &pb::Review) -> String {
    let said = if review.summary.is_empty() {
        &review.error_message
    } else {
        &review.summary
    };
    let said = if said.is_empty() {
        String::new()
    } else {
        format!(": {}", printable(said))
    };
    format!("{SIDE}review of {} {}{said}{SIDE:#}", kinds(review), state(review))
}

fn show(output: &mut Output, review: &pb::Review) {
    let usage = review.usage.unwrap_or_default();
    let tokens = |count: Option<u64>| count.map_or_else(|| "not reported".to_owned(), |count| count.to_string());
    let error = format!("{} {}", review.error_reason, review.error_message);
    output.record(vec![
        ("name", Cell::name(review.name.as_str())),
        (
            "session",
            format!("{}, up to message {}", review.session, review.to_seq).into(),
        ),
        ("of", kinds(review).into()),
        ("state", Cell::state(state(review))),
        ("absorbed by", short(&review.absorbed_by).into()),
        ("summary", review.summary.as_str().into()),
        ("error", Cell::toned(error.trim(), Tone::Bad)),
        (
            "history",
            format!("{} {}", review.mode, review.rubric).trim().to_owned().into(),
        ),
        ("due", time(review.create_time.as_ref()).into()),
        ("ended", time(review.end_time.as_ref()).into()),
        ("tries", review.attempts.to_string().into()),
        ("model calls", review.iterations.to_string().into()),
        (
            "tokens",
            format!(
                "{} in, {} of them cached, {} out",
                tokens(usage.input_tokens),
                tokens(usage.cached_input_tokens),
                tokens(usage.output_tokens)
            )
            .into(),
        ),
        ("cost", cost(review).into()),
    ]);
    for write in &review.writes {
        show_write(output, write);
    }
    for rejected in &review.rejected {
        output.aside(&format!(
            "not kept: {} ({})",
            printable(&rejected.candidate),
            printable(&rejected.reason)
        ));
    }
}

/// What the model calls cost, as far as their price is known.
fn cost(review: &pb::Review) -> String {
    let micros = review.cost_microdollars;
    let unpriced = match review.unpriced_calls {
        0 => String::new(),
        1 => "1 call without a known price".to_owned(),
        calls => format!("{calls} calls without a known price"),
    };
    match (micros, unpriced.is_empty()) {
        (0, _) => unpriced,
        (_, true) => format!("${}.{:06}", micros / 1_000_000, micros % 1_000_000),
        (_, false) => format!("${}.{:06}, and {unpriced}", micros / 1_000_000, micros % 1_000_000),
    }
}

fn show_write(output: &mut Output, write: &pb::ReviewWrite) {
    let result = word(write.result().as_str_name(), "RESULT_");
    let style = Tone::of_state(&result).style();
    let spans = write
        .evidence
        .as_ref()
        .map(|evidence| evidence.spans.join(" "))
        .unwrap_or_default();
    let refused: Vec<_> = [write.reason.as_str(), write.gate.as_str()]
        .into_iter()
        .filter(|said| !said.is_empty())
        .collect();
    output.line(&format!(
        "{NAME}{} {}{NAME:#} {} {style}{result}{style:#} {} {SIDE}{spans} {}{SIDE:#}",
        write.tool,
        write.action,
        printable(&write.target),
        refused.join(", "),
        printable(&write.why)
    ));
    if !write.preview.is_empty() {
        output.line(&format!("{SIDE}  “{}”{SIDE:#}", printable(&write.preview)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_said_as_far_as_it_is_known() {
        let mut review = pb::Review::default();
        assert_eq!(cost(&review), "");
        review.cost_microdollars = 1_020_300;
        assert_eq!(cost(&review), "$1.020300");
        review.unpriced_calls = 2;
        assert_eq!(cost(&review), "$1.020300, and 2 calls without a known price");
    }
}

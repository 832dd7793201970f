//! `steward reviews`: list, show, watch, retry, cancel.

use clap::Subcommand;
use steward_proto::learning::v1 as pb;

use crate::connect::Session;
use crate::output::{NAME, Output, SIDE, first_line, printable, short, time, word};

/// Verbs of `steward reviews`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List reviews, newest first.
    List {
        /// Only those of this session.
        #[arg(long, default_value = "")]
        session: String,
        /// At most this many.
        #[arg(long, default_value_t = 20)]
        limit: i32,
    },
    /// Show what a review looked at, wrote and turned down.
    Show {
        /// Id or full name.
        review: String,
    },
    /// Follow reviews as they happen.
    Watch {
        /// Only those of this session.
        #[arg(long, default_value = "")]
        session: String,
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

/// Runs a verb.
pub async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let reviews = &session.client.reviews;
    match verb {
        Verb::List { session: only, limit } => {
            let request = pb::ListReviewsRequest {
                parent: session.user.clone(),
                session: filter(&only, session),
                page_size: limit,
                page_token: String::new(),
            };
            output.answer(&reviews.list_reviews(request).await?, |output, answer| {
                let rows = answer.reviews.iter().map(row).collect();
                output.table(&["review", "due", "of", "state", "summary"], rows, "No reviews yet.");
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
        Verb::Watch { session: only } => watch(filter(&only, session), session, output).await,
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

async fn watch(only: String, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let request = pb::WatchReviewsRequest {
        parent: session.user.clone(),
        session: only,
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

fn row(review: &pb::Review) -> Vec<String> {
    let said = if review.summary.is_empty() {
        &review.error_message
    } else {
        &review.summary
    };
    vec![
        short(&review.name).to_owned(),
        time(review.create_time.as_ref()),
        kinds(review).to_owned(),
        state(review),
        first_line(said, 70),
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
    let rows = vec![
        vec!["name".to_owned(), review.name.clone()],
        vec![
            "session".to_owned(),
            format!("{}, up to message {}", review.session, review.to_seq),
        ],
        vec!["of".to_owned(), kinds(review).to_owned()],
        vec!["state".to_owned(), state(review)],
        vec!["summary".to_owned(), review.summary.clone()],
        vec![
            "error".to_owned(),
            format!("{} {}", review.error_reason, review.error_message)
                .trim()
                .to_owned(),
        ],
        vec![
            "history".to_owned(),
            format!("{} {}", review.mode, review.rubric).trim().to_owned(),
        ],
        vec!["tries".to_owned(), review.attempts.to_string()],
        vec!["model calls".to_owned(), review.iterations.to_string()],
        vec![
            "tokens".to_owned(),
            format!(
                "{} in, {} of them cached, {} out",
                tokens(usage.input_tokens),
                tokens(usage.cached_input_tokens),
                tokens(usage.output_tokens)
            ),
        ],
    ];
    output.table(&["", ""], rows, "");
    for write in &review.writes {
        let result = word(write.result().as_str_name(), "RESULT_");
        let spans = write
            .evidence
            .as_ref()
            .map(|evidence| evidence.spans.join(" "))
            .unwrap_or_default();
        output.line(&format!(
            "{NAME}{} {}{NAME:#} {} {result} {} {SIDE}{spans} {}{SIDE:#}",
            write.tool,
            write.action,
            printable(&write.target),
            write.reason,
            printable(&write.why)
        ));
    }
    for rejected in &review.rejected {
        output.aside(&format!(
            "not kept: {} ({})",
            printable(&rejected.candidate),
            printable(&rejected.reason)
        ));
    }
}

//! Writes to a store by a person.

use clap::Args;
use steward_base::{Clock as _, SystemClock};
use steward_proto::memory::v1 as pb;
use steward_proto::memory::v1::operation::Action;

use super::show;
use crate::connect::{Session, request_id};
use crate::output::{Output, parse_end, short, time};

/// How long an entry holds.
#[derive(Debug, Clone, Default, Args)]
pub struct Holds {
    /// It holds until then: 2026-12-31, 2026-12-31T08:00:00Z, or a time from now, such as 30d.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// It holds while a check does: exists:PATH, file:PATH#SHA256 or grep:PATH:TEXT. May be repeated.
    #[arg(long = "while", value_name = "CHECK")]
    checks: Vec<String>,
}

impl Holds {
    fn given(&self) -> anyhow::Result<Option<pb::Holds>> {
        let until = self.until.as_deref().map(|given| parse_end(given, SystemClock.now()));
        let until_time = until.transpose()?;
        let holds = pb::Holds {
            until_time,
            checks: self.checks.clone(),
        };
        Ok((holds != pb::Holds::default()).then_some(holds))
    }
}

/// Does one thing to a store.
pub(super) async fn apply(
    action: Action,
    holds: Option<&Holds>,
    store: String,
    session: &Session,
    output: &mut Output,
) -> anyhow::Result<()> {
    let request = pb::ApplyRequest {
        store,
        operations: vec![pb::Operation { action: Some(action) }],
        request_id: request_id(),
        holds: holds.map(Holds::given).transpose()?.flatten(),
        ..pb::ApplyRequest::default()
    };
    output.answer(&session.client.memory.apply(request).await?, |output, answer| {
        if let Some(proposal) = &answer.proposal {
            output.line(&format!("Proposed as {}; a maintainer decides.", short(&proposal.name)));
        }
        for change in &answer.changes {
            show::change(output, change);
        }
        show::budget(output, answer.budget);
    })
}

/// Says that an entry still holds.
pub(super) async fn confirm(name: String, holds: &Holds, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let request = pb::ConfirmEntryRequest {
        name,
        holds: holds.given()?,
        request_id: request_id(),
        ..pb::ConfirmEntryRequest::default()
    };
    output.answer(
        &session.client.memory.confirm_entry(request).await?,
        |output, answer| {
            let entry = answer.entry.clone().unwrap_or_default();
            let holds = entry.provenance.and_then(|provenance| provenance.holds);
            let until = time(holds.unwrap_or_default().until_time.as_ref());
            output.line(&if until.is_empty() {
                "Confirmed.".to_owned()
            } else {
                format!("Confirmed; it holds until {until}.")
            });
        },
    )
}

//! The servers: whether each package is answered for where it is looked for, whether the token is accepted, and whether
//! the search index agrees with its rows.

use std::time::Duration;

use steward_base::ErrorKind;
use steward_cli::Connection;
use steward_cli::connect::{DEFAULT_ENDPOINT, PACKAGES};
use steward_cli::verbs::health::{self, Health};
use steward_client::ClientError;
use steward_proto::recall::v1::CheckIntegrityRequest;

use super::Report;

const AREA: &str = "service";
/// A check reads a team's whole file.
const PATIENCE: Duration = Duration::from_mins(10);

/// Asks the servers. `held` says that a server has the data folder open, `kept` that there is one.
pub(super) async fn examine(connection: &Connection, kept: bool, held: bool, report: &mut Report) {
    let endpoints = match connection.endpoints() {
        Ok(endpoints) => endpoints,
        Err(error) => return report.problem(AREA, "addresses", format!("{error:#}"), ""),
    };
    // One process on one port is either there or not; that is one finding, not six.
    let alone = endpoints.values().all(|endpoint| *endpoint == connection.endpoint);
    if alone && let Health::Unreachable(why) = health::check(&connection.endpoint, "").await {
        return unreachable(connection, kept, held, &why, report);
    }
    let mut all_serve = true;
    for (package, service) in PACKAGES {
        let Some(endpoint) = endpoints.get(package) else {
            continue;
        };
        let subject = format!("{package} at {endpoint}");
        let state = health::check(endpoint, service).await;
        all_serve &= state == Health::Serving;
        match state {
            Health::Serving => report.ok(AREA, subject, "serving"),
            Health::NotServing => report.problem(AREA, subject, "is up but takes no calls", "look at the server's log"),
            Health::Unknown => {
                let hint = format!("say where it is with --service {package}=URL");
                report.problem(AREA, subject, "another server answers there", &hint);
            }
            Health::Unreachable(why) => report.problem(AREA, subject, why, "start it, or give its address"),
        }
    }
    if let Some(endpoint) = endpoints.get("recall") {
        indexes(endpoint, report).await;
    }
    if all_serve {
        ask(connection, report).await;
    }
}

/// The indexes of all teams, which the server knows better than any one team's token.
async fn indexes(endpoint: &str, report: &mut Report) {
    match health::check(endpoint, steward_recall::INDEX_HEALTH).await {
        Health::Serving => report.ok("index", "of every team", "none is known to be damaged"),
        Health::NotServing => report.problem(
            "index",
            "of every team",
            "one is damaged; searches of its team are incomplete",
            "the server's log names it; its admin runs `steward recall check --rebuild`",
        ),
        // An older server, or one that was told of above.
        Health::Unknown | Health::Unreachable(_) => {}
    }
}

/// Nobody answers at the one address. Whether that is wrong depends on whether somebody should.
fn unreachable(connection: &Connection, kept: bool, held: bool, why: &str, report: &mut Report) {
    let subject = connection.endpoint.clone();
    if held {
        let hint = "give the address that the server was started with: --endpoint";
        report.problem(AREA, subject, format!("a server runs, but not here: {why}"), hint);
    } else if connection.endpoint != DEFAULT_ENDPOINT {
        report.problem(AREA, subject, why, "start it, or give another --endpoint");
    } else if kept {
        report.note(
            AREA,
            subject,
            "no server runs; the files were looked at",
            "`steward` starts one",
        );
    } else {
        report.note(AREA, subject, "no server runs", "`steward` starts one");
    }
}

/// What only a caller with a token can ask.
async fn ask(connection: &Connection, report: &mut Report) {
    let session = match connection.open().await {
        Ok(session) => session,
        Err(error) => {
            let hint = "give a good one with --token-file; an admin makes one with `steward access create-token`";
            return report.problem("token", "as the server sees it", format!("{error:#}"), hint);
        }
    };
    report.ok("token", "as the server sees it", format!("speaks for {}", session.user));
    let store = session.client.store.clone().with_timeout(Some(PATIENCE));
    let request = CheckIntegrityRequest {
        parent: session.team.clone(),
        rebuild: false,
    };
    let subject = session.team;
    match store.check_integrity(request).await {
        Ok(answer) if answer.consistent => {
            let detail = format!(
                "agrees with its {} messages, tokenizer {}",
                answer.messages, answer.tokenizer_version
            );
            report.ok("index", subject, detail);
        }
        Ok(answer) => report.problem(
            "index",
            subject,
            answer.problems.join("; "),
            "`steward recall check --rebuild`",
        ),
        Err(error) => unchecked(subject, &error, report),
    }
}

fn unchecked(subject: String, error: &ClientError, report: &mut Report) {
    if error.kind == ErrorKind::Forbidden {
        report.note("index", subject, "not checked: that takes an admin", "");
    } else {
        report.problem(
            "index",
            subject,
            format!("{error} ({})", error.reason),
            "look at the server's log",
        );
    }
}

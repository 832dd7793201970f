//! The token of this command line: whether there is one, what it says, how long it is good. Whether it is accepted, only
//! a server can say.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use steward_base::Timestamp;
use steward_cli::Connection;
use steward_grpc::Claims;

use super::Report;

const AREA: &str = "token";
/// Days before its end from which a token's end is worth a word.
const SOON: i64 = 7;
const DAY: i64 = 86_400;
/// Seconds by which clocks may differ without harm.
const TOLERANCE: i64 = 120;
const RENEW: &str =
    "an admin makes a new one with `steward access create-token`; the owner's is made anew when the server starts";

/// Looks at the token. Without a data folder and without a token there is nothing wrong yet.
pub(super) fn examine(connection: &Connection, kept: bool, now: Timestamp, report: &mut Report) {
    let token = match connection.token() {
        Ok(token) => token,
        Err(error) if kept || connection.token_file.is_some() => {
            return report.problem(AREA, "yours", format!("{error:#}"), "");
        }
        Err(_) => {
            return report.note(
                AREA,
                "yours",
                "there is none",
                "the first start of `steward` makes the owner's",
            );
        }
    };
    let Some(claims) = claims(&token) else {
        return report.problem(AREA, "yours", "is not a token of Steward", RENEW);
    };
    let now = now.as_secs();
    let subject = claims.sub.clone();
    let left = claims.exp - now;
    if claims.iat > now + TOLERANCE {
        let detail = format!(
            "was issued {} seconds in the future of this machine's clock",
            claims.iat - now
        );
        report.problem(
            "clock",
            "this machine",
            detail,
            "set the clocks of this machine and of the server",
        );
    }
    if left <= 0 {
        report.problem(
            AREA,
            subject,
            format!("ended at {}", Timestamp::from_secs(claims.exp)),
            RENEW,
        );
    } else if left < SOON * DAY {
        let detail = format!("ends in {} hours", left / 3_600);
        report.note(AREA, subject, detail, RENEW);
    } else {
        report.ok(AREA, subject, format!("good for {} days", left / DAY));
    }
}

/// What a token says, unverified.
fn claims(token: &str) -> Option<Claims> {
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    serde_json::from_slice(&payload).ok()
}

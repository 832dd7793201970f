//! What a person can do about a refusal: one sentence for each reason where there is something to do.
//!
//! The message of the server says what is wrong; this says which verb comes next. Reasons that need no advice have none.

use steward_client::{ClientError, ErrorOrigin};

/// What went wrong, in a sentence. Where the message leaves the cause to the metadata, as that of a source which did not
/// deliver does, the cause is part of the sentence.
pub fn sentence(error: &ClientError) -> String {
    let said = error.to_string();
    with_cause(&said, error)
}

/// `said` with the cause that the error's metadata name, unless it is there already.
pub(super) fn with_cause(said: &str, error: &ClientError) -> String {
    let cause = error.metadata.iter().find(|(key, _)| *key == "problem");
    match cause {
        Some((_, cause)) if !cause.is_empty() && !said.contains(cause.as_str()) => format!("{said}: {cause}"),
        _ => said.to_owned(),
    }
}

/// The next step after this error, if there is one. A gate of the skill registry gives its own.
pub(super) fn hint(error: &ClientError) -> Option<&str> {
    if error.origin == ErrorOrigin::Transport {
        return Some("`steward doctor` looks at every service and says what is wrong");
    }
    Some(match error.reason {
        "SESSION_NOT_FOUND" => "`steward sessions list` shows your sessions; an id or a full name is taken",
        "TURN_RUNNING" => "wait for its answer, or `steward sessions stop` it",
        "NO_OPEN_CALLS" => "`steward sessions pending` shows what waits for a client",
        "MESSAGE_NOT_FOUND" => "`steward recall read` shows which messages the session has",
        "REVIEW_NOT_FOUND" => "`steward reviews list` shows the reviews",
        "REVIEW_NOT_RETRYABLE" | "REVIEW_ENDED" => "`steward reviews show` says how it ended",
        "MODEL_UNKNOWN" => "`steward models list` shows the models that there are",
        "MODEL_NOT_CONFIGURED" => "set agent.model.base_url and agent.model.name for the server",
        "MODEL_UNAVAILABLE" | "MODEL_ANSWER_INVALID" => "`steward doctor --model` asks the model's server",
        "MODEL_REFUSED" => "look at agent.model.api_key and agent.model.name with `steward config dump`",
        "SKILL_NOT_FOUND" => "`steward skills list` shows the skills; `--archived` those put away",
        "SKILL_AMBIGUOUS" => "give the full name from the last column of `steward skills list`",
        "SKILL_EXISTS" => "`steward skills edit` replaces one; `import --update` brings existing ones up to date",
        "FILE_NOT_FOUND" => "`steward skills view` lists the files of a skill",
        "REVISION_NOT_FOUND" => "the noun's `history` lists the revisions",
        "GATE_REFUSED" => {
            let advice = error.metadata.iter().find(|(key, _)| *key == "advice");
            return advice.map(|(_, advice)| advice.as_str());
        }
        "PINNED" => "`steward skills unpin` takes the protection off",
        "ARCHIVED" => "`steward skills restore` puts it back",
        "ENTRY_NOT_FOUND" | "NO_MATCH" | "AMBIGUOUS_MATCH" if error.domain.starts_with("memory") => {
            "`steward memory list` shows the entries with their names"
        }
        "BUDGET_EXCEEDED" => "remove or shorten an entry first; `steward memory list` shows them",
        "PROPOSAL_NOT_FOUND" | "PROPOSAL_DECIDED" if error.domain.starts_with("skill") => {
            "`steward skills inbox list` shows those that wait"
        }
        "MERGE_CONFLICT" => "both sides changed the same lines; `steward skills diff` shows what changed",
        "BUNDLE_NOT_FOUND" => "`steward skills bundles list` shows the bundles",
        "COMMAND_NOT_FOUND" => "`steward skills commands` lists what can be typed",
        "PROPOSAL_NOT_FOUND" | "PROPOSAL_DECIDED" => "`steward memory inbox list` shows those that wait",
        "USER_NOT_FOUND" => "`steward access users` lists the users of your team",
        "TOKEN_NOT_FOUND" => "`steward access tokens` lists the tokens with their names",
        "CREDENTIAL_MISSING" | "CREDENTIAL_INVALID" => {
            "`steward doctor` looks at the token; an admin makes one with `steward access create-token`"
        }
        "METHOD_DENIED" | "ROLE_REQUIRED" => "`steward access whoami` shows your role",
        "ETAG_MISMATCH" | "STALE_REVISION" => "somebody was faster; read it again and repeat",
        "FETCH_UNRESOLVED" | "FETCH_CONNECTION" => {
            "the server cannot reach that host; see whether it may, and try again"
        }
        "FETCH_PRIVATE_ADDRESS" | "FETCH_ADDRESS_REFUSED" => {
            "the server fetches from public https addresses only; an import takes a folder from this machine"
        }
        "FETCH_TIMEOUT" | "FETCH_LATER" => "try again later",
        "HUB_NAME_TAKEN" => "`--replace` sets the other one aside; it can be restored",
        "HUB_LOCAL_CHANGES" => {
            "`steward hub plan` shows both; `--merge` unites them, `--give-up-changes` drops those made here"
        }
        "HUB_NO_SOURCE" => "`steward hub search` gives references that a source takes",
        "HUB_SIGNATURE_INVALID" => "`steward hub item` shows what is wrong with it; its publisher has to sign it anew",
        "HUB_SIGNATURE_REQUIRED" => "an admin says in `skills.hub.signatures` who has to sign what comes from there",
        "HUB_ITEM_NOT_FOUND" => "`steward hub items` lists what is in quarantine",
        "HUB_SKILL_NOT_INSTALLED" => "`steward hub list` shows what the hub installed",
        "CURATION_RUN_NOT_FOUND" => "`steward curator history` lists the runs",
        "BACKUP_NOT_FOUND" => "`steward recall backups` lists the backups",
        "STORAGE_FULL" => "make room on the server's disk",
        "DATA_DAMAGED" | "RECORD_DAMAGED" => "`steward doctor` checks the stores",
        _ => return None,
    })
}

//! What the first start leaves behind, and what each later start makes sure of: the home team, and the credentials that lie
//! in private files for the owner and for the worker.
//!
//! A file is written anew when it is missing, when its credential is no longer accepted (another key, revoked, a role that
//! has changed) or when it is about to end. Who can read the data folder has the key itself, so this opens no door.

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use steward_base::{Caller, Clock, Timestamp};
use steward_grpc::{Auth, Claims};
use steward_orchestrator_core::access::{Access, Error, HOME_TEAM, OWNER, RENEW_BEFORE, WORKER_SERVICE};
use steward_runtime::{StartError, data_dir};

/// The owner's credential, below the service's folder.
pub(crate) const OWNER_FILE: &str = "owner.token";
/// The worker's credential, below the service's folder.
pub(crate) const WORKER_FILE: &str = "curator-worker.token";

/// Makes sure of the home team and of both files.
pub(crate) async fn prepare(
    access: &Access,
    auth: &Auth,
    clock: &Arc<dyn Clock>,
    folder: &Path,
) -> Result<(), StartError> {
    let failed = |what: &str| {
        let operation = format!("prepare {what}");
        move |error: Error| StartError::new(operation, error)
    };
    if access.ensure_home().await.map_err(failed("the home team"))? {
        tracing::info!(
            team = HOME_TEAM,
            user = OWNER,
            "first start: made the home team and its owner"
        );
    }
    let (now, owner_file, worker_file) = (clock.now(), folder.join(OWNER_FILE), folder.join(WORKER_FILE));
    let owner = access.owner().await.map_err(failed("the owner's token"))?;
    let is_owner = |caller: &Caller| owner.as_ref().is_some_and(|owner| caller.role == owner.role);
    if !is_good(&owner_file, auth, now, is_owner)
        && let Some(issued) = access.issue_owner_token().await.map_err(failed("the owner's token"))?
    {
        write(&owner_file, issued.credential.reveal())?;
    }
    let is_worker = |caller: &Caller| matches!(&caller.identity, steward_base::Identity::Service { name } if name == WORKER_SERVICE);
    if !is_good(&worker_file, auth, now, is_worker) {
        let credential = access.issue_worker_token().map_err(failed("the worker's token"))?;
        write(&worker_file, credential.reveal())?;
    }
    Ok(())
}

fn write(path: &Path, credential: &str) -> Result<(), StartError> {
    data_dir::write_private(path, credential.as_bytes())
        .map_err(|error| StartError::new(format!("write {}", path.display()), error))
}

fn is_good(path: &Path, auth: &Auth, now: Timestamp, expected: impl Fn(&Caller) -> bool) -> bool {
    let Ok(text) = std::fs::read_to_string(path) else {
        return false;
    };
    let token = text.trim();
    auth.caller(token).is_ok_and(|caller| expected(&caller))
        && ends(token).is_some_and(|ends| now.plus(RENEW_BEFORE) < ends)
}

/// When a token that was verified ends.
fn ends(token: &str) -> Option<Timestamp> {
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Claims = serde_json::from_slice(&payload).ok()?;
    Some(Timestamp::from_secs(claims.exp))
}

//! How a revocation becomes true: at once where tokens are signed, at once by push where they are verified, and again by a
//! loop, since a push may be missed (`A-2`).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use steward_base::{Clock, Timestamp, error_chain};
use steward_client::RevocationClient;
use steward_grpc::Auth;
use steward_grpc::auth::revocation::{Revocation, Revoked};
use steward_grpc::auth::revocation_to_pb;
use steward_orchestrator_core::access::{self, Access};
use steward_proto::access::v1::ApplyRevocationsRequest;
use steward_runtime::reconcile::{Nudge, Reconciler, Report};
use steward_runtime::tasks::BoxError;

/// A peer gets the list again after this long although it has not changed: it may have lost its file.
const REPEAT_AFTER: Duration = Duration::from_mins(5);

/// A server that takes pushes.
#[derive(Debug)]
struct Peer {
    name: &'static str,
    client: RevocationClient,
    /// What it has acknowledged, and when.
    has: Mutex<Option<(Vec<Revocation>, Timestamp)>>,
}

#[derive(Debug)]
struct Shared {
    access: Access,
    auth: Arc<Auth>,
    peers: Vec<Peer>,
    /// Held from reading the list until it has its version.
    reading: tokio::sync::Mutex<()>,
    nudge: Nudge,
    clock: Arc<dyn Clock>,
}

/// Keeps everyone's list of revocations as it should be. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RevocationPush(Arc<Shared>);

impl fmt::Debug for RevocationPush {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RevocationPush").finish_non_exhaustive()
    }
}

impl RevocationPush {
    /// To these peers, by name, over clients with this service's own credentials.
    pub(crate) fn new(
        access: Access,
        auth: Arc<Auth>,
        peers: Vec<(&'static str, RevocationClient)>,
        nudge: Nudge,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let peers = peers.into_iter().map(|(name, client)| Peer {
            name,
            client,
            has: Mutex::default(),
        });
        Self(Arc::new(Shared {
            access,
            auth,
            peers: peers.collect(),
            reading: tokio::sync::Mutex::default(),
            nudge,
            clock,
        }))
    }

    /// Something was revoked or given back: in force here before this returns, elsewhere as soon as the loop comes to it.
    pub(crate) async fn changed(&self) -> Result<(), access::Error> {
        self.apply_here().await?;
        self.0.nudge.nudge();
        Ok(())
    }

    /// What is revoked now, in force here.
    async fn apply_here(&self) -> Result<(u64, Vec<Revocation>), access::Error> {
        // One at a time, so that of two lists the one that was read later has the higher version.
        let _alone = self.0.reading.lock().await;
        let entries: Vec<Revocation> = self
            .0
            .access
            .list_revocations()
            .await?
            .into_iter()
            .map(as_kept)
            .collect();
        let (auth, kept) = (Arc::clone(&self.0.auth), entries.clone());
        // The file is flushed to disk, which may take a while.
        let stored = tokio::task::spawn_blocking(move || auth.revocations().publish(kept)).await;
        let stored = stored.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        let version =
            stored.map_err(|error| access::Error::Store(access::StoreFailure::Unavailable(Box::new(error))))?;
        Ok((version, entries))
    }

    /// What is revoked now, with its version, for those that pull.
    pub(crate) async fn listed(&self) -> Result<(u64, Vec<Revocation>), access::Error> {
        self.apply_here().await
    }

    async fn push(&self, peer: &Peer, version: u64, entries: &[Revocation]) -> Result<bool, BoxError> {
        let now = self.0.clock.now();
        let current = |has: &Option<(Vec<Revocation>, Timestamp)>| {
            has.as_ref()
                .is_some_and(|(has, since)| has == entries && now.since(*since) < REPEAT_AFTER)
        };
        if current(&peer.has.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(false);
        }
        let request = ApplyRevocationsRequest {
            revocations: entries.iter().map(revocation_to_pb).collect(),
            version,
        };
        peer.client.apply_revocations(request).await?;
        *peer.has.lock().unwrap_or_else(PoisonError::into_inner) = Some((entries.to_vec(), now));
        Ok(true)
    }
}

impl Reconciler for RevocationPush {
    fn name(&self) -> &'static str {
        "revocation-push"
    }

    async fn tick(&self) -> Result<Report, BoxError> {
        let (version, entries) = self.apply_here().await?;
        let mut report = Report::default();
        let mut problems = Vec::new();
        for peer in &self.0.peers {
            match self.push(peer, version, &entries).await {
                Ok(pushed) => report.items += u64::from(pushed),
                // One that does not answer must not keep the others waiting.
                Err(error) => problems.push(format!("{}: {}", peer.name, error_chain(&*error))),
            }
        }
        if problems.is_empty() {
            Ok(report)
        } else {
            Err(problems.join("; ").into())
        }
    }
}

fn as_kept(revocation: access::Revocation) -> Revocation {
    let subject = match revocation.subject {
        access::Revoked::Token(id) => Revoked::Token(id),
        access::Revoked::User(team, user) => Revoked::User(team, user),
    };
    Revocation {
        subject,
        expires: revocation.expires,
    }
}

//! `steward health`: the standard gRPC health check of one server or of all that an installation is spread over.
//!
//! A probe has no token, so this verb needs none. Containers use it as their health check.

use std::collections::BTreeSet;
use std::time::Duration;

use steward_client::Wire;
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::Said;
use crate::connect::Connection;
use crate::output::Output;

/// How long a server may take for its answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// What a server says of itself, or what is said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It takes calls.
    Serving,
    /// It is up but takes no calls: it starts, or it stops.
    NotServing,
    /// Something answers there that has no such service.
    Unknown,
    /// Nobody answers, and why.
    Unreachable(String),
}

impl Health {
    /// One word for tables and JSON.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::NotServing => "not serving",
            Self::Unknown => "unknown service",
            Self::Unreachable(_) => "unreachable",
        }
    }

    /// More than the word, where there is more to say.
    pub fn detail(&self) -> &str {
        match self {
            Self::Unreachable(why) => why,
            Self::Serving | Self::NotServing | Self::Unknown => "",
        }
    }
}

/// Asks the server at `endpoint` for `service`; empty asks for the server as a whole.
pub async fn check(endpoint: &str, service: &str) -> Health {
    let wire = match Wire::connect(endpoint) {
        Ok(wire) => wire,
        Err(error) => return Health::Unreachable(steward_base::error_chain(&error)),
    };
    let mut request = Request::new(HealthCheckRequest {
        service: service.to_owned(),
    });
    request.set_timeout(PATIENCE);
    let mut client = HealthClient::new(wire);
    let Ok(answer) = tokio::time::timeout(PATIENCE, client.check(request)).await else {
        return Health::Unreachable(format!("no answer within {} seconds", PATIENCE.as_secs()));
    };
    match answer {
        Ok(answer) if answer.get_ref().status() == ServingStatus::Serving => Health::Serving,
        Ok(_) => Health::NotServing,
        Err(status) if matches!(status.code(), Code::NotFound | Code::Unimplemented) => Health::Unknown,
        Err(status) => Health::Unreachable(steward_base::error_chain(&steward_client::ClientError::from(status))),
    }
}

/// Runs the verb: each address once.
pub(crate) async fn run(connection: &Connection, output: &mut Output) -> anyhow::Result<()> {
    let mut addresses: BTreeSet<String> = connection.endpoints()?.into_values().collect();
    addresses.insert(connection.endpoint.clone());
    let mut found = Vec::with_capacity(addresses.len());
    for address in addresses {
        let health = check(&address, "").await;
        found.push((address, health));
    }
    if output.is_json() {
        let servers: Vec<_> = found
            .iter()
            .map(|(address, health)| {
                serde_json::json!({"endpoint": address, "state": health.word(), "detail": health.detail()})
            })
            .collect();
        output.document(&serde_json::json!({ "servers": servers }))?;
    } else {
        let rows = found
            .iter()
            .map(|(address, health)| vec![address.clone(), health.word().to_owned(), health.detail().to_owned()])
            .collect();
        output.table(&["endpoint", "state", ""], rows, "");
    }
    if found.iter().all(|(_, health)| *health == Health::Serving) {
        Ok(())
    } else {
        Err(Said.into())
    }
}

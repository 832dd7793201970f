//! gRPC: requests checked and turned into calls of the core, answers and errors turned back. A file per service, one per
//! operation below where there is more to it than a line.

mod access;
mod agent;
mod convert;
mod model;
mod session;

use steward_base::{Caller, Fault};
use steward_grpc::status;
use steward_orchestrator_core::Error;
use tonic::Status;

use crate::signer::Person;

pub(crate) use access::AccessRpc;
pub(crate) use agent::AgentRpc;
pub(crate) use model::ModelRpc;
pub(crate) use session::SessionRpc;

/// Error domain of `steward.agent.v1`.
const AGENT: &str = "agent.steward.dev";
/// Error domain of `steward.access.v1`.
const ACCESS: &str = "access.steward.dev";

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn agent_status(error: impl Fault + 'static) -> Status {
    status(&error, AGENT)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn access_status(error: impl Fault + 'static) -> Status {
    status(&error, ACCESS)
}

/// The person who calls. Persons' credentials always name one; anything else is no person.
fn person(caller: &Caller) -> Result<Person, Status> {
    match (&caller.team, &caller.user) {
        (Some(team), Some(user)) => Ok(Person {
            team: team.clone(),
            user: user.clone(),
            role: caller.role,
        }),
        _ => Err(agent_status(Error::field(
            "authorization",
            "must be the credential of a person",
        ))),
    }
}

/// Checks that a `teams/{team}/users/{user}` names the caller.
fn own_user(person: &Person, field: &str, name: &str) -> Result<(), Error> {
    match steward_base::names::parse_user(name) {
        Ok((team, user)) if team == person.team && user == person.user => Ok(()),
        Ok(_) => Err(Error::field(field, "must be the caller")),
        Err(error) => Err(Error::field(field, error.to_string())),
    }
}

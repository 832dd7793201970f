//! `steward.learning.v1.PersonService`: checks who asks, and encodes.

use std::pin::Pin;

use futures::{Stream, StreamExt as _};
use steward_base::names::parse_user;
use steward_base::{FieldViolations, Role};
use steward_client::Credentials;
use steward_curator_core::Error;
use steward_proto::learning::v1 as pb;
use steward_proto::learning::v1::export_person_response::Held as PbHeld;
use steward_proto::learning::v1::person_service_server::PersonService;
use tonic::{Request, Response, Status};

use super::{convert, fail};
use crate::peers::people::{Derived, Held, People, Whose};

/// The RPCs on people.
#[derive(Debug, Clone)]
pub(crate) struct PersonHandlers(pub(crate) People);

type Exported = Pin<Box<dyn Stream<Item = Result<pb::ExportPersonResponse, Status>> + Send>>;

/// Whose it is: the caller's own, or with `admins` anyone's of the team for an admin.
fn whose<T>(request: &Request<T>, user: &str, admins: bool) -> Result<Whose, Status> {
    let caller = steward_grpc::caller(request)?.clone();
    let mut violations = FieldViolations::new();
    let named = violations.take("user", parse_user(user));
    let own = caller.team.clone().zip(caller.user.clone());
    if let Some((team, _)) = &named {
        let permitted = named == own || (admins && caller.role >= Role::Admin && caller.team.as_ref() == Some(team));
        if !permitted {
            violations.add("user", "must be the caller");
        }
    }
    match named {
        Some((team, user)) if violations.is_empty() => Ok(Whose {
            team,
            user,
            credentials: own_credentials(request)?,
            caller,
        }),
        _ => Err(fail(Error::Invalid(violations))),
    }
}

/// The credential with which the caller came: what is theirs is asked for in their name.
fn own_credentials<T>(request: &Request<T>) -> Result<Credentials, Status> {
    let token = steward_grpc::presented(request)?;
    Credentials::token(token).map_err(|error| fail(Error::unreadable("the caller's credential", error)))
}

#[tonic::async_trait]
impl PersonService for PersonHandlers {
    type ExportPersonStream = Exported;

    async fn export_person(
        &self,
        request: Request<pb::ExportPersonRequest>,
    ) -> Result<Response<Self::ExportPersonStream>, Status> {
        let whose = whose(&request, &request.get_ref().user, false)?;
        let items = self.0.export(whose).map(|item| item.map(held_to_pb).map_err(fail));
        Ok(Response::new(Box::pin(items)))
    }

    async fn erase_person(
        &self,
        request: Request<pb::ErasePersonRequest>,
    ) -> Result<Response<pb::ErasePersonResponse>, Status> {
        let whose = whose(&request, &request.get_ref().user, true)?;
        let receipt = self.0.erase(&whose, request.get_ref().shared).await.map_err(fail)?;
        Ok(Response::new(pb::ErasePersonResponse {
            sessions: receipt.sessions,
            reviews: receipt.reviews,
            entries: receipt.entries,
            revisions: receipt.revisions,
            skills: receipt.skills,
            found_after: receipt.found_after,
            derived: receipt.derived.into_iter().map(derived_to_pb).collect(),
        }))
    }
}

fn derived_to_pb(derived: Derived) -> pb::DerivedArtifact {
    pb::DerivedArtifact {
        name: derived.name,
        revision: derived.revision,
        cause: derived.cause.to_owned(),
        erased: derived.erased,
    }
}

fn held_to_pb(held: Held) -> pb::ExportPersonResponse {
    let held = match held {
        Held::Session(session) => PbHeld::Session(*session),
        Held::Message(session, message) => PbHeld::Message(pb::HeldMessage {
            session,
            message: Some(*message),
        }),
        Held::Memory(memory) => PbHeld::Memory(*memory),
        Held::Skill(skill, files) => PbHeld::Skill(pb::HeldSkill {
            skill: Some(*skill),
            files,
        }),
        Held::Review(review) => PbHeld::Review(convert::review(&review)),
    };
    pb::ExportPersonResponse { held: Some(held) }
}

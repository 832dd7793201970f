//! The erasure of what the library holds of one person alone.

use steward_base::FieldViolations;
use steward_base::names::parse_user;
use steward_proto::skill::v1 as pb;
use steward_skill_core::{Error, Skills};
use tonic::{Request, Response, Status};

use super::super::fail;

pub(super) async fn erase_person_library(
    skills: &Skills,
    request: Request<pb::ErasePersonLibraryRequest>,
) -> Result<Response<pb::ErasePersonLibraryResponse>, Status> {
    let caller = steward_grpc::caller(&request)?;
    let (team, user) = parse_user(&request.get_ref().user)
        .map_err(|problem| fail(Error::from(FieldViolations::one("user", problem.to_string()))))?;
    let erased = skills.erase_person(caller, &team, &user).await.map_err(fail)?;
    Ok(Response::new(pb::ErasePersonLibraryResponse {
        skills: erased.skills,
        revisions: erased.revisions,
        others: erased.others,
        found_after: erased.found_after,
    }))
}

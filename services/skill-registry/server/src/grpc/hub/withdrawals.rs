//! Withdrawals by digest: saying so, overruling, listing.

use steward_base::{FieldViolations, page};
use steward_proto::hub::v1 as pb;
use steward_skill_hub::error::Error;
use steward_skill_hub::hub::Hub;
use steward_skill_hub::withdrawal::Standing;

use super::convert::Known;
use super::{DEFAULT_PAGE, MAX_PAGE, Person, check_reason};

impl Person {
    /// The digest at the end of a withdrawal's name.
    fn tree<'n>(&self, name: &'n str) -> Result<&'n str, Error> {
        let missing = |digest: &str| Error::NoWithdrawal {
            digest: digest.to_owned(),
        };
        let digest = self.child(name, "hubWithdrawals", "teams/{team}/hubWithdrawals/{sha256}", missing)?;
        let hexadecimal = |character: char| matches!(character, '0'..='9' | 'a'..='f');
        if digest.len() == 64 && digest.chars().all(hexadecimal) {
            Ok(digest)
        } else {
            Err(FieldViolations::one("name", "must end in 64 hexadecimal characters").into())
        }
    }
}

pub(super) async fn withdraw_hub_tree(
    hub: &Hub,
    person: &Person,
    request: pb::WithdrawHubTreeRequest,
) -> Result<pb::WithdrawHubTreeResponse, Error> {
    let digest = person.tree(&request.name)?;
    let mut violations = FieldViolations::new();
    check_reason(&mut violations, &request.reason);
    let standing = match request.standing() {
        pb::HubStanding::Yanked => Standing::Yanked,
        pb::HubStanding::Revoked => Standing::Revoked,
        pb::HubStanding::Unspecified | pb::HubStanding::Reinstated => {
            violations.add("standing", "must be HUB_STANDING_YANKED or HUB_STANDING_REVOKED");
            Standing::Yanked
        }
    };
    violations.into_result()?;
    let withdrawal = hub.withdraw(person.actor(), digest, standing, &request.reason).await?;
    let team = person.team.as_str();
    let withdrawal = Some(Known::read(hub, team).await?.to_pb(team, &withdrawal));
    Ok(pb::WithdrawHubTreeResponse { withdrawal })
}

pub(super) async fn reinstate_hub_tree(
    hub: &Hub,
    person: &Person,
    request: pb::ReinstateHubTreeRequest,
) -> Result<pb::ReinstateHubTreeResponse, Error> {
    let digest = person.tree(&request.name)?;
    let mut violations = FieldViolations::new();
    check_reason(&mut violations, &request.reason);
    violations.into_result()?;
    let withdrawal = hub.reinstate(person.actor(), digest, &request.reason).await?;
    let team = person.team.as_str();
    let withdrawal = Some(Known::read(hub, team).await?.to_pb(team, &withdrawal));
    Ok(pb::ReinstateHubTreeResponse { withdrawal })
}

pub(super) async fn list_hub_withdrawals(
    hub: &Hub,
    person: &Person,
    request: pb::ListHubWithdrawalsRequest,
) -> Result<pb::ListHubWithdrawalsResponse, Error> {
    let mut violations = FieldViolations::new();
    person.check_parent(&mut violations, &request.parent);
    violations.into_result()?;
    let size = page::size(request.page_size, DEFAULT_PAGE, MAX_PAGE)?;
    let bound = ["hubWithdrawals", request.parent.as_str()];
    let after = page::decode(&bound, &request.page_token)?.unwrap_or_default();
    let size = usize::try_from(size).unwrap_or_default();
    let team = person.team.as_str();
    let mut all = hub.withdrawals(team).await?;
    all.retain(|withdrawal| withdrawal.digest > after);
    let more = all.len() > size;
    all.truncate(size);
    let last = all.last().filter(|_| more);
    let known = Known::read(hub, team).await?;
    Ok(pb::ListHubWithdrawalsResponse {
        next_page_token: last.map_or_else(String::new, |last| page::encode(&bound, &last.digest)),
        withdrawals: all.iter().map(|withdrawal| known.to_pb(team, withdrawal)).collect(),
    })
}

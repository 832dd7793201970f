//! What an installation begins with: a home team and its owner. And the credentials that it keeps in private files: the
//! owner's and the worker's, which are made anew when they are gone or about to end.

use std::time::Duration;

use steward_base::names::{NameError, TeamId, UserId};
use steward_base::{Origin, Role};

use super::create_token::MAX_TTL;
use super::sign::{Claims, Credential, SigningError, Subject};
use super::store::Written;
use super::{Access, Error, IssuedToken, Team, User};

/// Id of the home team.
pub const HOME_TEAM: &str = "default";
/// Id of its first admin.
pub const OWNER: &str = "owner";
/// Name of the service that the worker's credential is for.
pub const WORKER_SERVICE: &str = "curator-worker";
/// A kept credential is replaced this long before it ends.
pub const RENEW_BEFORE: Duration = Duration::from_hours(30 * 24);

fn home() -> Result<(TeamId, UserId), NameError> {
    Ok((TeamId::parse(HOME_TEAM)?, UserId::parse(OWNER)?))
}

fn broken(error: NameError) -> Error {
    Error::Signing(SigningError(Box::new(error)))
}

impl Access {
    /// Makes the home team and its owner if there is no home team yet; whether it did.
    pub async fn ensure_home(&self) -> Result<bool, Error> {
        if self.home_team().await?.is_some() {
            return Ok(false);
        }
        let (team, owner) = home().map_err(broken)?;
        let now = self.clock.now();
        let record = Team {
            id: team.clone(),
            display_name: String::new(),
            created: now,
        };
        let admin = User {
            team,
            id: owner,
            display_name: String::new(),
            role: Role::Admin,
            disabled: false,
            created: now,
        };
        let written = self.store.create_team(&record, &admin, true, None).await?;
        Ok(matches!(written, Written::Done(_)))
    }

    /// The owner of the home team, as it is now.
    pub async fn owner(&self) -> Result<Option<User>, Error> {
        let (team, owner) = home().map_err(broken)?;
        Ok(self.store.user(&team, &owner).await?)
    }

    /// A new token for the owner of the home team; `None` when that user is gone or disabled.
    pub async fn issue_owner_token(&self) -> Result<Option<IssuedToken>, Error> {
        match self.owner().await? {
            Some(user) if !user.disabled => Ok(Some(self.issue(&user, "first start".to_owned(), MAX_TTL).await?)),
            _ => Ok(None),
        }
    }

    /// A new credential for the service `name`.
    pub fn issue_service_token(&self, name: &str, ttl: Duration) -> Result<Credential, Error> {
        let now = self.clock.now();
        let claims = Claims {
            id: self.ids.new_id(),
            subject: Subject::Service { name: name.to_owned() },
            person: None,
            role: Role::Viewer,
            origin: Origin::Foreground,
            issued: now,
            expires: now.plus(ttl),
        };
        Ok(self.signer.sign(&claims)?)
    }

    /// A new credential for the worker, as long-lived as a person's may be.
    pub fn issue_worker_token(&self) -> Result<Credential, Error> {
        self.issue_service_token(WORKER_SERVICE, MAX_TTL)
    }
}

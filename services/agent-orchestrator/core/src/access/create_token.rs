//! `CreateToken`: signs a credential for a person and returns it, once.

use std::time::Duration;

use steward_base::names::{TeamId, TokenId, UserId};
use steward_base::{Caller, FieldViolations, Origin, Role};

use super::model::check_label;
use super::sign::{Claims, Credential, Subject};
use super::store::Written;
use super::{Access, AccessToken, Error, User};

/// Shortest life of a person's token.
const MIN_TTL: Duration = Duration::from_mins(1);
/// Longest life of a person's token, and that of the ones made at the first start.
pub(super) const MAX_TTL: Duration = Duration::from_hours(400 * 24);
/// Life of a token when the request does not say.
const DEFAULT_TTL: Duration = Duration::from_hours(90 * 24);

/// A token to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// Team of the user.
    pub team: TeamId,
    /// For whom.
    pub user: UserId,
    /// What it is for; may be empty.
    pub label: String,
    /// How long it lives: 1 minute to 400 days; `None` means 90 days.
    pub ttl: Option<Duration>,
}

/// A token and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedToken {
    /// What is kept.
    pub token: AccessToken,
    /// What is handed out.
    pub credential: Credential,
}

impl Access {
    /// Makes a token: for oneself, or as an admin for anyone in the team.
    pub async fn create_token(&self, caller: &Caller, new: NewToken) -> Result<IssuedToken, Error> {
        let mut violations = FieldViolations::new();
        check_label("label", &new.label, &mut violations);
        let ttl = new.ttl.unwrap_or(DEFAULT_TTL);
        if ttl < MIN_TTL || ttl > MAX_TTL {
            violations.add("ttl", "must be 1 minute to 400 days");
        }
        violations.into_result()?;
        let user = self.user_in_team_of(caller, &new.team, &new.user).await?;
        if caller.user.as_ref() != Some(&new.user) && caller.role < Role::Admin {
            return Err(Error::NotYourToken);
        }
        if user.disabled {
            return Err(Error::UserDisabled {
                team: new.team,
                user: new.user,
            });
        }
        // A token made with a token that says less must not say more.
        let role = if caller.user.as_ref() == Some(&new.user) {
            user.role.min(caller.role)
        } else {
            user.role
        };
        self.issue(&User { role, ..user }, new.label, ttl).await
    }

    /// Signs and records a token of `user` without asking who wants it.
    pub(super) async fn issue(&self, user: &User, label: String, ttl: Duration) -> Result<IssuedToken, Error> {
        let now = self.clock.now();
        let id = self.ids.new_id();
        let claims = Claims {
            id: id.clone(),
            subject: Subject::User,
            person: Some((user.team.clone(), user.id.clone())),
            role: user.role,
            origin: Origin::Foreground,
            issued: now,
            expires: now.plus(ttl),
        };
        let credential = self.signer.sign(&claims)?;
        let token = AccessToken {
            team: user.team.clone(),
            user: user.id.clone(),
            id: TokenId::parse(id).map_err(|error| super::SigningError(Box::new(error)))?,
            label,
            created: now,
            expires: claims.expires,
            revoked: None,
        };
        // Recorded before it is handed out: there is no token that could not be revoked.
        match self.store.insert_token(&token).await? {
            Written::Done(()) => Ok(IssuedToken { token, credential }),
            Written::Missing | Written::Exists | Written::LastAdmin | Written::RequestReused => {
                Err(Error::UserNotFound {
                    team: user.team.clone(),
                    user: user.id.clone(),
                })
            }
        }
    }
}

//! What every store of teams, users and tokens must do, as one suite. Run by tests on each implementation.

use std::time::Duration;

use steward_base::names::{TeamId, TokenId, UserId};
use steward_base::{Role, Timestamp};

use super::model::{AccessToken, RequestKey, Revocation, Revoked, Team, User};
use super::store::{AccessStore, StoreFailure, UserUpdate, Written};

const NOW: Timestamp = Timestamp::from_secs(1_796_000_000);

fn team(id: &str) -> Team {
    Team {
        id: team_id(id),
        display_name: format!("Team {id}"),
        created: NOW,
    }
}

fn user(team: &str, id: &str, role: Role) -> User {
    let name = format!("User {id}");
    User {
        team: team_id(team),
        id: user_id(id),
        display_name: name,
        role,
        disabled: false,
        created: NOW,
    }
}

#[expect(clippy::expect_used, reason = "the suite's own ids are well-formed")]
fn team_id(id: &str) -> TeamId {
    TeamId::parse(id).expect("a team id")
}

#[expect(clippy::expect_used, reason = "the suite's own ids are well-formed")]
fn user_id(id: &str) -> UserId {
    UserId::parse(id).expect("a user id")
}

#[expect(clippy::expect_used, reason = "the suite's own ids are well-formed")]
fn token(team: &str, user: &str, id: &str) -> AccessToken {
    AccessToken {
        team: team_id(team),
        user: user_id(user),
        id: TokenId::parse(id).expect("a token id"),
        label: "laptop".to_owned(),
        created: NOW,
        expires: NOW.plus(Duration::from_hours(1)),
        revoked: None,
    }
}

fn key(id: &str, hash: &str) -> RequestKey {
    RequestKey {
        team: team_id("home"),
        scope: "Create",
        id: id.to_owned(),
        hash: hash.to_owned(),
    }
}

fn update(role: Option<Role>, disabled: Option<bool>) -> UserUpdate {
    UserUpdate {
        role,
        disabled,
        now: NOW.plus(Duration::from_mins(1)),
    }
}

/// Runs the suite on an empty store.
///
/// # Panics
/// When the store does not keep the contract.
pub async fn suite(store: &dyn AccessStore) -> Result<(), StoreFailure> {
    teams(store).await?;
    users(store).await?;
    tokens(store).await?;
    admins(store).await
}

async fn teams(store: &dyn AccessStore) -> Result<(), StoreFailure> {
    assert_eq!(store.home_team().await?, None);
    let (home, ann) = (team("home"), user("home", "ann", Role::Admin));
    let written = store.create_team(&home, &ann, true, None).await?;
    assert_eq!(written, Written::Done((home.clone(), ann.clone())));
    assert_eq!(store.home_team().await?, Some(home.id.clone()));
    let second_home = store
        .create_team(&team("other"), &user("other", "bob", Role::Admin), true, None)
        .await?;
    assert_eq!(second_home, Written::Exists, "there is one home team");
    assert_eq!(store.create_team(&home, &ann, false, None).await?, Written::Exists);

    let (red, rob) = (team("red"), user("red", "rob", Role::Admin));
    let first = store.create_team(&red, &rob, false, Some(&key("r1", "h1"))).await?;
    let again = store.create_team(&red, &rob, false, Some(&key("r1", "h1"))).await?;
    assert_eq!(first, again, "the same request gets the first answer");
    let other = store
        .create_team(&team("blue"), &rob, false, Some(&key("r1", "h2")))
        .await?;
    assert_eq!(other, Written::RequestReused);
    assert_eq!(store.team(&team_id("blue")).await?, None);

    let page = store.teams(None, 1).await?;
    assert_eq!((page.items, page.next.as_deref()), (vec![home], Some("home")));
    let page = store.teams(Some("home"), 1).await?;
    assert_eq!((page.items, page.next), (vec![red], None));
    Ok(())
}

async fn users(store: &dyn AccessStore) -> Result<(), StoreFailure> {
    let ben = user("home", "ben", Role::Member);
    assert_eq!(
        store.create_user(&ben, Some(&key("u1", "h1"))).await?,
        Written::Done(ben.clone())
    );
    assert_eq!(
        store.create_user(&ben, Some(&key("u1", "h1"))).await?,
        Written::Done(ben.clone())
    );
    assert_eq!(
        store.create_user(&ben, Some(&key("u1", "h9"))).await?,
        Written::RequestReused
    );
    assert_eq!(store.create_user(&ben, None).await?, Written::Exists);
    assert_eq!(
        store.create_user(&user("nowhere", "ben", Role::Member), None).await?,
        Written::Missing
    );
    assert_eq!(store.user(&ben.team, &ben.id).await?, Some(ben.clone()));
    assert_eq!(
        store.user(&team_id("red"), &ben.id).await?,
        None,
        "a user is one of a team"
    );
    let page = store.users(&ben.team, Some("ann"), 5).await?;
    assert_eq!((page.items, page.next), (vec![ben], None));
    Ok(())
}

async fn tokens(store: &dyn AccessStore) -> Result<(), StoreFailure> {
    let (first, second) = (token("home", "ben", "0001"), token("home", "ben", "0002"));
    let anns = token("home", "ann", "0003");
    for token in [&first, &second, &anns] {
        assert_eq!(store.insert_token(token).await?, Written::Done(()));
    }
    assert_eq!(
        store.insert_token(&token("home", "nobody", "0004")).await?,
        Written::Missing
    );
    let page = store.tokens(&first.team, Some(&first.user), None, 1).await?;
    assert_eq!((page.items, page.next.as_deref()), (vec![second.clone()], Some("0002")));
    let page = store.tokens(&first.team, Some(&first.user), Some("0002"), 1).await?;
    assert_eq!((page.items, page.next), (vec![first.clone()], None));
    assert_eq!(store.tokens(&first.team, None, None, 9).await?.items.len(), 3);
    assert_eq!(store.tokens(&team_id("red"), None, None, 9).await?.items, []);

    let later = NOW.plus(Duration::from_mins(5));
    let revoked = AccessToken {
        revoked: Some(later),
        ..first.clone()
    };
    assert_eq!(
        store.revoke_token(&first.team, &first.id, later).await?,
        Written::Done(revoked.clone())
    );
    let again = store
        .revoke_token(&first.team, &first.id, later.plus(Duration::from_mins(1)))
        .await?;
    assert_eq!(again, Written::Done(revoked), "the first time is kept");
    assert_eq!(
        store.revoke_token(&team_id("red"), &first.id, later).await?,
        Written::Missing
    );
    let in_force = Revocation {
        subject: Revoked::Token("0001".to_owned()),
        expires: Some(first.expires),
    };
    assert_eq!(store.revocations(later).await?, [in_force]);
    assert_eq!(
        store.revocations(first.expires).await?,
        [],
        "a token that has ended needs no revocation"
    );
    Ok(())
}

async fn admins(store: &dyn AccessStore) -> Result<(), StoreFailure> {
    let (home, ann, ben) = (team_id("home"), user_id("ann"), user_id("ben"));
    for removes in [update(Some(Role::Member), None), update(None, Some(true))] {
        assert_eq!(store.update_user(&home, &ann, removes).await?, Written::LastAdmin);
    }
    assert_eq!(
        store
            .update_user(&home, &user_id("nobody"), update(None, Some(true)))
            .await?,
        Written::Missing
    );
    let promoted = User {
        role: Role::Admin,
        ..user("home", "ben", Role::Member)
    };
    assert_eq!(
        store.update_user(&home, &ben, update(Some(Role::Admin), None)).await?,
        Written::Done(promoted)
    );
    let demoted = user("home", "ann", Role::Member);
    assert_eq!(
        store.update_user(&home, &ann, update(Some(Role::Member), None)).await?,
        Written::Done(demoted)
    );
    let listed = store.revocations(NOW).await?;
    assert!(
        listed
            .iter()
            .any(|one| one.subject == Revoked::Token("0003".to_owned())),
        "an old role ends its tokens"
    );
    assert!(
        !listed
            .iter()
            .any(|one| one.subject == Revoked::Token("0002".to_owned())),
        "a higher role ends none"
    );

    let disabled = User {
        disabled: true,
        ..user("home", "ann", Role::Member)
    };
    assert_eq!(
        store.update_user(&home, &ann, update(None, Some(true))).await?,
        Written::Done(disabled)
    );
    let gone = Revocation {
        subject: Revoked::User(home.clone(), ann.clone()),
        expires: None,
    };
    assert!(store.revocations(NOW).await?.contains(&gone));
    store.update_user(&home, &ann, update(None, Some(false))).await?;
    assert!(!store.revocations(NOW).await?.contains(&gone));
    Ok(())
}

//! What every store of secrets must do.

use std::future::Future;

use super::{SkillStore, at, team};
use crate::secrets::{SecretInfo, SecretValue};
use steward_base::names::UserId;

/// Runs the suite; `open` gives an empty store each time.
pub async fn check<S, F>(open: impl Fn() -> F)
where
    S: SkillStore,
    F: Future<Output = S>,
{
    a_value_comes_back_by_team_and_name_alone(&open().await).await;
    a_later_value_takes_the_place_of_the_first(&open().await).await;
}

fn info(name: &str, second: i64) -> SecretInfo {
    SecretInfo {
        name: name.to_owned(),
        author: UserId::parse("ann").ok(),
        set: at(second),
        readable: true,
    }
}

async fn value(store: &impl SkillStore, of: &str, name: &str) -> Option<String> {
    let found = store.secret(&team(of), name).await.expect("an answer");
    found.map(|value| value.expose().to_owned())
}

async fn a_value_comes_back_by_team_and_name_alone(store: &impl SkillStore) {
    for (of, name, text) in [("red", "B_KEY", "b"), ("red", "A_KEY", "ä\n"), ("blue", "A_KEY", "x")] {
        let (team, value) = (team(of), SecretValue::new(text));
        store.put_secret(&team, info(name, 1), value).await.expect("kept");
    }
    assert_eq!(value(store, "red", "A_KEY").await.as_deref(), Some("ä\n"));
    assert_eq!(value(store, "blue", "A_KEY").await.as_deref(), Some("x"));
    assert_eq!(value(store, "blue", "B_KEY").await, None);
    let listed = store.secrets(&team("red")).await.expect("a list");
    assert_eq!(listed, [info("A_KEY", 1), info("B_KEY", 1)]);
    assert!(store.delete_secret(&team("red"), "A_KEY").await.expect("an answer"));
    assert!(!store.delete_secret(&team("red"), "A_KEY").await.expect("an answer"));
    assert_eq!(value(store, "red", "A_KEY").await, None);
    assert_eq!(value(store, "blue", "A_KEY").await.as_deref(), Some("x"));
}

async fn a_later_value_takes_the_place_of_the_first(store: &impl SkillStore) {
    for (second, text) in [(1, "one"), (2, "two")] {
        let (team, value) = (team("red"), SecretValue::new(text));
        store.put_secret(&team, info("KEY", second), value).await.expect("kept");
    }
    assert_eq!(value(store, "red", "KEY").await.as_deref(), Some("two"));
    assert_eq!(store.secrets(&team("red")).await.expect("a list"), [info("KEY", 2)]);
}

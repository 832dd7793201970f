//! Backups: made while everything goes on, verified, put back whole or not at all.

use steward_recall_core::backups::{Backups as _, Counts};

use super::*;

async fn say(store: &SqliteSessionStore, of: &str, seq: u64, text: &str) {
    let fence = lease(store, of, "s1").await;
    store.append(append(of, "s1", fence, seq, text), at(1)).await.unwrap();
}

async fn two_teams(folder: &TempDir) -> SqliteSessionStore {
    let store = open_store(folder, 4).await.unwrap();
    for of in ["red", "blue"] {
        create(&store, of, "s1").await;
        say(&store, of, 0, "a goosander").await;
    }
    store
}

#[tokio::test]
async fn a_backup_brings_back_what_was_there_and_sets_aside_what_is() {
    let folder = TempDir::new("recall-backup");
    let store = two_teams(&folder).await;
    let made = store.backup(&team("red"), "b1", at(5)).await.unwrap();
    let counts = Counts {
        sessions: 1,
        messages: 1,
    };
    assert_eq!(made.counts, Some(counts));
    say(&store, "red", 1, "a smew").await;
    let restored = store.restore(&team("red"), "b1", "b2").await.unwrap();
    assert_eq!((restored.counts, restored.set_aside.as_deref()), (counts, Some("b2")));
    assert_eq!(store.hits(&hits_for("red", "goosander")).await.unwrap().len(), 1);
    assert!(store.hits(&hits_for("red", "smew")).await.unwrap().is_empty());
    assert_eq!(store.hits(&hits_for("blue", "goosander")).await.unwrap().len(), 1);
    // What was set aside is a backup like any other, and the first one is still what it was.
    let listed = store.backups(&team("red"), None, 10).await.unwrap();
    assert_eq!(
        listed.iter().map(|backup| backup.id.as_str()).collect::<Vec<_>>(),
        ["b2", "b1"]
    );
    store.restore(&team("red"), "b2", "b3").await.unwrap();
    assert_eq!(store.hits(&hits_for("red", "smew")).await.unwrap().len(), 1);
    let again = store.restore(&team("red"), "b1", "b4").await.unwrap();
    assert_eq!(again.counts, counts);
    store.close().await;
    let store = open_store(&folder, 4).await.unwrap();
    assert!(store.hits(&hits_for("red", "smew")).await.unwrap().is_empty());
    let report = store.check_integrity(&team("red"), false).await.unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}

#[tokio::test]
async fn a_backup_that_cannot_be_used_changes_nothing() {
    let folder = TempDir::new("recall-bad-backup");
    let store = two_teams(&folder).await;
    store.backup(&team("red"), "good", at(5)).await.unwrap();
    store.backup(&team("blue"), "theirs", at(5)).await.unwrap();
    let of = |of: &str, id: &str| folder.path().join("backups").join(of).join(format!("{id}.db"));
    std::fs::copy(of("blue", "theirs"), of("red", "foreign")).unwrap();
    let mut bytes = std::fs::read(of("red", "good")).unwrap();
    std::fs::write(of("red", "half"), &bytes[..bytes.len() / 2]).unwrap();
    std::fs::write(of("red", "empty"), b"").unwrap();
    // The page of the messages' own table, wherever it is: from the second page on.
    bytes[4_096..].fill(0xa5);
    std::fs::write(of("red", "torn"), &bytes).unwrap();
    for id in ["foreign", "half", "empty", "torn"] {
        let refused = store.restore(&team("red"), id, "aside").await;
        assert!(
            matches!(refused, Err(Error::BackupUnusable { .. })),
            "{id}: {refused:?}"
        );
    }
    for id in ["none", "../blue/theirs", ""] {
        let refused = store.restore(&team("red"), id, "aside").await;
        assert!(matches!(refused, Err(Error::BackupNotFound { .. })), "{id}");
    }
    assert!(!of("red", "aside").exists());
    assert_eq!(store.hits(&hits_for("red", "goosander")).await.unwrap().len(), 1);
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("restoring"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
    let none = store.backup(&team("green"), "b1", at(5)).await;
    assert!(matches!(none, Err(Error::Invalid(_))));
}

/// A team whose file was lost or ruined is what backups are for.
#[tokio::test]
async fn a_backup_takes_the_place_of_a_ruined_file() {
    let folder = TempDir::new("recall-ruined");
    let store = two_teams(&folder).await;
    store.backup(&team("red"), "b1", at(5)).await.unwrap();
    store.close().await;
    drop(store);
    std::fs::write(folder.path().join("red.db"), [b'x'; 4096]).unwrap();
    let store = open_store(&folder, 4).await.unwrap();
    let restored = store.restore(&team("red"), "b1", "b2").await.unwrap();
    assert_eq!(restored.set_aside.as_deref(), Some("b2"));
    assert_eq!(store.hits(&hits_for("red", "goosander")).await.unwrap().len(), 1);
    let aside = std::fs::read(folder.path().join("backups/red/b2.db")).unwrap();
    assert_eq!(aside, [b'x'; 4096]);
}

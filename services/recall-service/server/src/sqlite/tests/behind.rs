//! Messages that wait for the index (`Q-11`): found, counted, taken back and deleted as if they were in it.

use steward_recall_core::backups::Backups as _;
use steward_recall_core::delete_session::Deletion;
use steward_recall_core::rewind_session::Rewind;

use super::*;

/// How far the index of team `red` is, and the last number there is.
async fn state(store: &SqliteSessionStore) -> (i64, i64) {
    let file = store.team(&team("red")).await.unwrap().unwrap();
    let state = file.view(|db| {
        let last: i64 = db.value("SELECT coalesce(max(doc), 0) FROM message", ())?;
        Ok::<_, StoreError>((db.value("SELECT covered FROM index_state", ())?, last))
    });
    state.await.unwrap()
}

async fn say(store: &SqliteSessionStore, id: &str, fence: u64, texts: &[&str]) {
    for (seq, text) in (0..).zip(texts) {
        store.append(append("red", id, fence, seq, text), at(1)).await.unwrap();
    }
}

async fn found(store: &SqliteSessionStore, words: &str) -> usize {
    store.hits(&hits_for("red", words)).await.unwrap().len()
}

async fn sound(store: &SqliteSessionStore, messages: u64) {
    let report = store.check_integrity(&team("red"), false).await.unwrap();
    assert_eq!((report.problems, report.messages), (Vec::new(), messages));
}

fn cut(id: &str, to: u64) -> Rewind {
    Rewind {
        team: team("red"),
        session: session(id),
        to,
        etag: String::new(),
        request: request(format!("rewind-{id}-{to}")),
    }
}

fn deletion(id: &str) -> Deletion {
    Deletion {
        team: team("red"),
        session: session(id),
        etag: String::new(),
    }
}

#[tokio::test]
async fn an_append_leaves_the_index_alone_and_the_next_search_brings_it_in() {
    let folder = TempDir::new("recall-behind");
    let store = open_store(&folder, 2).await.unwrap();
    create(&store, "red", "s1").await;
    let fence = lease(&store, "red", "s1").await;
    say(&store, "s1", fence, &["a smew", "a teal", "a scoter"]).await;
    assert_eq!(state(&store).await, (0, 3));
    assert_eq!(found(&store, "teal").await, 1);
    assert_eq!((state(&store).await, store.index_trouble(&team("red"))), ((3, 3), None));
    sound(&store, 3).await;
}

/// More than a piece holds, by number and by size.
#[tokio::test]
async fn however_much_waits_a_search_finds_all_of_it() {
    let folder = TempDir::new("recall-much");
    let store = open_store(&folder, 2).await.unwrap();
    create(&store, "red", "s1").await;
    let fence = lease(&store, "red", "s1").await;
    let large = "filler ".repeat(40_000);
    for seq in 0..200 {
        let text = match seq % 50 {
            0 => format!("{large} word{seq}"),
            _ => format!("word{seq}"),
        };
        store
            .append(append("red", "s1", fence, seq, &text), at(1))
            .await
            .unwrap();
    }
    for word in ["word0", "word1", "word63", "word64", "word150", "word199"] {
        assert_eq!(found(&store, word).await, 1, "{word}");
    }
    sound(&store, 200).await;
}

/// An index that keeps no text must be told what to forget, and only of what it has.
#[tokio::test]
async fn what_is_taken_back_or_deleted_before_it_was_in_the_index_never_comes_into_it() {
    let folder = TempDir::new("recall-pending");
    let store = open_store(&folder, 2).await.unwrap();
    for id in ["kept", "cut", "gone"] {
        create(&store, "red", id).await;
        let fence = lease(&store, "red", id).await;
        say(
            &store,
            id,
            fence,
            &[&format!("a smew of {id}"), &format!("a teal of {id}")],
        )
        .await;
        store.release_lease(&team("red"), &session(id), fence).await.unwrap();
    }
    store.rewind_session(cut("cut", 1), at(2)).await.unwrap();
    store.delete_session(deletion("gone"), at(2)).await.unwrap();
    assert_eq!((found(&store, "smew").await, found(&store, "teal").await), (2, 1));
    sound(&store, 4).await;
    // And once they are in it.
    store.rewind_session(cut("kept", 1), at(3)).await.unwrap();
    assert_eq!((found(&store, "smew").await, found(&store, "teal").await), (2, 0));
    store.delete_session(deletion("kept"), at(3)).await.unwrap();
    assert_eq!(found(&store, "smew").await, 1);
    sound(&store, 2).await;
}

/// Numbers of rows that were deleted are not given again where the index went by them: it would be taken to have the new ones.
#[tokio::test]
async fn what_is_written_after_the_last_messages_were_deleted_is_found() {
    let folder = TempDir::new("recall-reused");
    let store = open_store(&folder, 2).await.unwrap();
    create(&store, "red", "s1").await;
    let fence = lease(&store, "red", "s1").await;
    say(&store, "s1", fence, &["a smew", "a teal"]).await;
    store.release_lease(&team("red"), &session("s1"), fence).await.unwrap();
    assert_eq!(found(&store, "teal").await, 1);
    store.delete_session(deletion("s1"), at(2)).await.unwrap();
    create(&store, "red", "s2").await;
    let fence = lease(&store, "red", "s2").await;
    say(&store, "s2", fence, &["a scoter"]).await;
    assert_eq!((found(&store, "scoter").await, found(&store, "smew").await), (1, 0));
    sound(&store, 1).await;
}

/// As a killed process leaves it: nothing is lost, and whoever opens the file next finds everything.
#[tokio::test]
async fn after_a_crash_the_index_catches_up_from_the_rows() {
    let folder = TempDir::new("recall-crash");
    let store = open_store(&folder, 2).await.unwrap();
    create(&store, "red", "s1").await;
    let fence = lease(&store, "red", "s1").await;
    say(&store, "s1", fence, &["a smew"]).await;
    assert_eq!(found(&store, "smew").await, 1);
    store
        .append(append("red", "s1", fence, 1, "a teal"), at(1))
        .await
        .unwrap();
    let copy = TempDir::new("recall-crash-copy");
    for end in ["db", "db-wal"] {
        std::fs::copy(
            folder.path().join(format!("red.{end}")),
            copy.path().join(format!("red.{end}")),
        )
        .unwrap();
    }
    let next = open_store(&copy, 2).await.unwrap();
    assert_eq!(state(&next).await, (1, 2));
    assert_eq!((found(&next, "teal").await, found(&next, "smew").await), (1, 1));
    sound(&next, 2).await;
}

/// `M-14`: what was deleted is in the file no more, neither among the rows nor among the words of the index.
#[tokio::test]
async fn what_is_deleted_leaves_no_word_in_the_file() {
    let folder = TempDir::new("recall-gone");
    let store = open_store(&folder, 2).await.unwrap();
    for (id, words) in [
        ("s1", ["a quokkaberry", "more zanzibarine"]),
        ("s2", ["a teal", "a kept wobbegong"]),
    ] {
        create(&store, "red", id).await;
        let fence = lease(&store, "red", id).await;
        say(&store, id, fence, &words).await;
        store.release_lease(&team("red"), &session(id), fence).await.unwrap();
    }
    assert_eq!(found(&store, "quokkaberry").await, 1);
    let path = store.team(&team("red")).await.unwrap().unwrap().path().to_owned();
    store.delete_session(deletion("s1"), at(2)).await.unwrap();
    store.close().await;
    let bytes = std::fs::read(path).unwrap();
    let holds = |word: &str| bytes.windows(word.len()).any(|part| part == word.as_bytes());
    // The index has stems, and writes the first letters of neighbours once: the middle of a word tells.
    for gone in ["okkaber", "nzibar"] {
        assert!(!holds(gone), "{gone}");
    }
    assert!(holds("obbegon"));
    sound(&store, 2).await;
}

#[tokio::test]
async fn a_file_that_is_closed_leaves_nothing_waiting() {
    let folder = TempDir::new("recall-drained");
    let store = open_store(&folder, 2).await.unwrap();
    create(&store, "red", "s1").await;
    let fence = lease(&store, "red", "s1").await;
    say(&store, "s1", fence, &["a smew"]).await;
    store.close().await;
    assert_eq!(state(&store).await, (1, 1));
    // A backup of what waits is whole, and so is what is restored from it.
    store
        .append(append("red", "s1", fence, 1, "a teal"), at(1))
        .await
        .unwrap();
    let backup = store
        .backup(&team("red"), "0199f0c4000070008000000000000001", at(2))
        .await
        .unwrap();
    assert_eq!(backup.counts.unwrap().messages, 2);
}

/// The index cannot be written in time: the search says so, and the next one makes up for it.
#[tokio::test]
async fn a_search_that_cannot_wait_for_the_index_says_that_it_is_incomplete() {
    let folder = TempDir::new("recall-late");
    let mut store = open_store(&folder, 2).await.unwrap();
    store.patience = Duration::ZERO;
    create(&store, "red", "s1").await;
    let fence = lease(&store, "red", "s1").await;
    say(&store, "s1", fence, &["a smew"]).await;
    let file = store.team(&team("red")).await.unwrap().unwrap();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let busy = file.update(move |_db| {
        held.recv().unwrap();
        Ok::<_, StoreError>(())
    });
    let smews = hits_for("red", "smew");
    let asking = async {
        let (found, missing) = store.hits_with_trouble(&smews).await.unwrap();
        assert!(found.is_empty() && missing.unwrap().contains("newest"));
        assert_eq!(store.index_trouble(&team("red")), None, "it is of that search alone");
        assert!(*store.soundness().borrow(), "late is not damaged");
        release.send(()).unwrap();
    };
    let (busy, ()) = tokio::join!(busy, asking);
    busy.unwrap();
    store.patience = PATIENCE;
    let (found, missing) = store.hits_with_trouble(&smews).await.unwrap();
    assert_eq!((found.len(), missing), (1, None));
}

/// Nobody searches, and the index follows all the same.
#[tokio::test]
async fn the_background_brings_messages_into_the_index_by_itself() {
    let folder = TempDir::new("recall-follow");
    let store = Arc::new(open_store(&folder, 2).await.unwrap());
    let tasks = steward_runtime::Tasks::new();
    let following = Arc::clone(&store).follow(tasks.clone());
    let appending = async {
        for of in ["red", "blue"] {
            create(&store, of, "s1").await;
            let fence = lease(&store, of, "s1").await;
            for seq in 0..80 {
                store
                    .append(append(of, "s1", fence, seq, "a smew"), at(1))
                    .await
                    .unwrap();
            }
        }
        for of in ["red", "blue"] {
            let file = store.team(&team(of)).await.unwrap().unwrap();
            while file.progress.is_behind() {
                tokio::task::yield_now().await;
            }
        }
        tasks.stop();
    };
    tokio::join!(following, appending);
    assert_eq!(state(&store).await, (80, 80));
    sound(&store, 80).await;
}

/// The index is damaged beyond what was mended before: the newest messages are read instead, and the answer says so.
#[tokio::test]
async fn without_an_index_the_newest_messages_are_read_and_the_answer_is_incomplete() {
    let folder = TempDir::new("recall-scan");
    let store = open_store(&folder, 2).await.unwrap();
    create(&store, "red", "s1").await;
    let fence = lease(&store, "red", "s1").await;
    say(&store, "s1", fence, &["a smew", "a teal 绿翅鸭", "a scoter"]).await;
    assert_eq!(found(&store, "smew").await, 1);
    let sound = store.soundness();
    // It was mended once: what is damaged again is not made anew by whoever searches.
    let told = Error::damaged("as a test has it");
    assert!(store.mend(&team("red"), &told).await && !store.mend(&team("red"), &told).await);
    let file = store.team(&team("red")).await.unwrap().unwrap();
    let broken = file.update(|db| db.execute("DELETE FROM message_index_data WHERE id = 10", ()));
    broken.await.unwrap();
    assert!(
        !store
            .check_integrity(&team("red"), false)
            .await
            .unwrap()
            .problems
            .is_empty()
    );
    assert!(!*sound.borrow(), "health tells of it");
    for (words, hits) in [
        ("smew", 1),
        ("翅鸭", 1),
        ("\"a teal\"", 1),
        ("garganey", 0),
        ("teal NOT 绿", 0),
    ] {
        assert_eq!(found(&store, words).await, hits, "{words}");
    }
    assert!(store.index_trouble(&team("red")).unwrap().contains("damaged"));
    store.check_integrity(&team("red"), true).await.unwrap();
    assert!(*sound.borrow() && store.index_trouble(&team("red")).is_none());
    assert_eq!(found(&store, "smew").await, 1);
}

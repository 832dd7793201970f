//! Many teams, many callers, many requests.

use futures::future::join_all;
use steward_recall_core::append_messages::ANSWER_RETENTION;

use super::*;

/// `T-7`: of writers who expect the same end, one wins, and the others leave nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_appends_at_the_same_place_one_is_kept() {
    let folder = TempDir::new("recall-race");
    let store = open_store(&folder, 2).await.unwrap();
    create(&store, "red", "s1").await;
    let fence = lease(&store, "red", "s1").await;
    for seq in 0..5 {
        let texts: Vec<String> = (0..8).map(|writer| format!("word{seq}x{writer}")).collect();
        let writes = texts
            .iter()
            .map(|text| store.append(append("red", "s1", fence, seq, text), at(1)));
        let outcomes = join_all(writes).await;
        let kept = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        let refused = |outcome: &&Result<Appended, Error>| matches!(outcome, Err(Error::SequenceMismatch { .. }));
        assert_eq!((kept, outcomes.iter().filter(refused).count()), (1, 7));
        let mut hits = 0;
        for text in &texts {
            hits += store.hits(&hits_for("red", text)).await.unwrap().len();
        }
        assert_eq!(hits, 1);
    }
    assert!(
        store
            .check_integrity(&team("red"), false)
            .await
            .unwrap()
            .problems
            .is_empty()
    );
}

/// Appends, searches, rebuilds and evictions at once, with fewer open files than teams: nothing fails or is missed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn everything_at_once_on_few_open_files_agrees_in_the_end() {
    const TEAMS: [&str; 5] = ["ant", "bee", "cat", "dog", "eel"];
    const MESSAGES: u64 = 12;
    let folder = TempDir::new("recall-storm");
    let store = open_store(&folder, 2).await.unwrap();
    join_all(TEAMS.map(|of| create(&store, of, "s1"))).await;
    let write = async |of: &'static str| {
        let fence = lease(&store, of, "s1").await;
        for seq in 0..MESSAGES {
            let text = format!("merganser number{seq}of{of}");
            store.append(append(of, "s1", fence, seq, &text), at(1)).await.unwrap();
            let own = store.hits(&hits_for(of, &format!("number{seq}of{of}"))).await.unwrap();
            assert_eq!(own.len(), 1, "an acknowledged message is found");
        }
    };
    let disturb = async |of: &'static str| {
        for round in 0..6 {
            let report = store.check_integrity(&team(of), round % 2 == 0).await.unwrap();
            assert_eq!(report.problems, Vec::<String>::new());
            store.hits(&hits_for(of, "merganser")).await.unwrap();
        }
    };
    tokio::join!(join_all(TEAMS.map(write)), join_all(TEAMS.map(disturb)));
    assert!(store.teams.open_count() <= 2 + TEAMS.len());
    store.close().await;
    drop(store);
    let store = open_store(&folder, 2).await.unwrap();
    for of in TEAMS {
        let report = store.check_integrity(&team(of), false).await.unwrap();
        assert_eq!((report.problems, report.messages), (Vec::new(), MESSAGES));
    }
    assert!(store.teams.open_count() <= 2);
}

/// Neither descriptors nor anything else grows with the number of teams.
#[tokio::test]
async fn open_files_are_bounded_however_many_teams_there_are() {
    const TEAMS: usize = 60;
    let descriptors = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let folder = TempDir::new("recall-many");
    let store = open_store(&folder, 3).await.unwrap();
    let before = descriptors();
    for number in 0..TEAMS {
        let of = format!("team{number}");
        create(&store, &of, "s1").await;
        let fence = lease(&store, &of, "s1").await;
        store
            .append(append(&of, "s1", fence, 0, "merganser"), at(1))
            .await
            .unwrap();
        assert!(store.teams.open_count() <= 3);
    }
    // Each open file has a writer and up to four readers of three descriptors, and a lock.
    assert!(
        descriptors() <= before + 3 * 16 + 8,
        "{} descriptors, {before} before",
        descriptors()
    );
    store.close().await;
    drop(store);
    let store = open_store(&folder, 3).await.unwrap();
    assert!(store.teams.open_count() <= 3);
    for number in 0..TEAMS {
        let found = store
            .hits(&hits_for(&format!("team{number}"), "merganser"))
            .await
            .unwrap();
        assert_eq!(found.len(), 1);
    }
}

/// A folder has one owner: a second process would have its own idea of which files are open.
#[tokio::test]
async fn a_team_that_is_open_elsewhere_is_not_opened_twice() {
    let folder = TempDir::new("recall-twice");
    let store = open_store(&folder, 2).await.unwrap();
    create(&store, "red", "s1").await;
    let second = open_store(&folder, 2).await;
    assert!(matches!(second, Err(Error::StoreUnavailable { .. })));
    store.close().await;
    assert!(open_store(&folder, 2).await.is_ok());
}

/// `T-9`: they go a few at a time, with the writes that come later.
#[tokio::test]
async fn old_answers_are_removed_in_small_steps() {
    let folder = TempDir::new("recall-answers");
    let store = open_store(&folder, 2).await.unwrap();
    create(&store, "red", "s1").await;
    let fence = lease(&store, "red", "s1").await;
    for seq in 0..40 {
        store.append(append("red", "s1", fence, seq, "x"), at(1)).await.unwrap();
    }
    let later = at(2).plus(ANSWER_RETENTION);
    let mut kept: Vec<i64> = Vec::new();
    for seq in 40..72 {
        store.append(append("red", "s1", fence, seq, "x"), later).await.unwrap();
        let sqlite = store.team(&team("red")).await.unwrap().unwrap();
        let count = sqlite.view(|db| db.value("SELECT count(*) FROM answered", ()));
        kept.push(count.await.unwrap());
    }
    // 41 are old, and each write adds one; every eighth takes out sixteen.
    assert_eq!((kept[0], kept.iter().max(), kept.last()), (42, Some(&47), Some(&32)));
    assert!(kept.windows(2).all(|two| two[1] + 15 >= two[0]));
}

/// A query of the greatest length in one run of Han is one long phrase, and is answered.
#[tokio::test]
async fn a_phrase_of_a_thousand_characters_is_answered() {
    let folder = TempDir::new("recall-long");
    let store = open_store(&folder, 2).await.unwrap();
    create(&store, "red", "s1").await;
    let fence = lease(&store, "red", "s1").await;
    let text: String = (0..1_000_u32)
        .filter_map(|number| char::from_u32(0x4e00 + number * 7))
        .collect();
    store
        .append(append("red", "s1", fence, 0, &format!("前{text}后")), at(1))
        .await
        .unwrap();
    assert_eq!(store.hits(&hits_for("red", &text)).await.unwrap().len(), 1);
    let nested = format!("{}{}", "(".repeat(12), "a OR b) ".repeat(12));
    assert!(store.hits(&hits_for("red", &nested)).await.is_ok());
    let steps: Vec<String> = (0..32).map(|number| format!("w{number}")).collect();
    for operator in [" NOT ", " OR ", " AND "] {
        assert!(store.hits(&hits_for("red", &steps.join(operator))).await.is_ok());
    }
}

/// 300 teams on 16 open files: each is served, and the bound holds after each call.
#[tokio::test]
async fn hundreds_of_teams_share_a_few_open_files() {
    let folder = TempDir::new("recall-hundreds");
    let store = open_store(&folder, 16).await.unwrap();
    let teams: Vec<String> = (0..300).map(|number| format!("team{number}")).collect();
    for of in &teams {
        create(&store, of, "s1").await;
        assert!(store.teams.open_count() <= 16);
    }
    // Those that were closed long ago open again, whoever was used last stays open.
    for of in teams.iter().step_by(37) {
        let fence = lease(&store, of, "s1").await;
        let text = format!("garganey of {of}");
        store.append(append(of, "s1", fence, 0, &text), at(1)).await.unwrap();
        assert_eq!(store.hits(&hits_for(of, "garganey")).await.unwrap().len(), 1);
        assert!(store.teams.open_count() <= 16);
    }
    assert!(store.hits(&hits_for("team1", "garganey")).await.unwrap().is_empty());
}

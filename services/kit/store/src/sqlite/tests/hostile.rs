//! A second process, backups that meet writes and each other, and operations that end in odd ways.

use std::process::{Command, Output};

use super::*;

/// Tells the test that plays the second process which database to open.
const PATH: &str = "STEWARD_TEST_SECOND_PROCESS";
const SECOND: &str = "sqlite::tests::hostile::a_second_process";

/// Opens the database as another process would, by running this test program again.
fn from_another_process(path: &std::path::Path) -> Output {
    let program = std::env::current_exe().expect("a test program");
    let mut command = Command::new(program);
    command.args(["--exact", SECOND, "--nocapture"]).env(PATH, path);
    command.output().expect("it runs")
}

/// By itself it does nothing; with a path it succeeds if it may open the database.
#[tokio::test]
async fn a_second_process() {
    let Some(path) = std::env::var_os(PATH) else { return };
    match Sqlite::open(PathBuf::from(path), options()).await {
        Ok(sqlite) => add(&sqlite, "second").await.expect("a write"),
        Err(StoreError::InUse { .. }) => panic!("in use"),
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_second_process_is_refused_until_the_first_has_closed() {
    let rig = rig().await;
    add(&rig.sqlite, "first").await.expect("a write");
    let refused = from_another_process(&rig.path);
    let said = String::from_utf8_lossy(&refused.stderr) + String::from_utf8_lossy(&refused.stdout);
    assert!(!refused.status.success() && said.contains("in use"), "{said}");
    add(&rig.sqlite, "undisturbed").await.expect("a write");

    rig.sqlite.close().await;
    let free = from_another_process(&rig.path);
    assert!(free.status.success(), "{}", String::from_utf8_lossy(&free.stdout));
    let again = Sqlite::open(&rig.path, options())
        .await
        .expect("its end freed the database");
    assert_eq!(ids(&again).await, ["first", "second", "undisturbed"]);
}

/// `O-4`: a backup holds the writes up to one moment, all of them.
#[tokio::test]
async fn a_backup_in_the_midst_of_writes_is_a_moment_of_the_database() {
    let rig = rig().await;
    let writes = async {
        for number in 0..60 {
            let both = rig.sqlite.update(move |db| {
                insert(db, &format!("{number:03}-a"))?;
                insert(db, &format!("{number:03}-b"))
            });
            both.await.expect("a write");
        }
    };
    let target = |number: usize| rig.path.with_file_name(format!("copy-{number}.db"));
    let backups = async {
        for number in 0..3 {
            rig.sqlite.backup(target(number)).await.expect("a backup");
        }
    };
    tokio::join!(writes, backups);
    let all = ids(&rig.sqlite).await;
    for number in 0..3 {
        let copy = Sqlite::open(target(number), options()).await.expect("it opens");
        let held = ids(&copy).await;
        assert_eq!(held.len() % 2, 0, "no half of a write");
        assert_eq!(held, all[..held.len()], "no hole");
        assert_eq!(copy.integrity_check().await.expect("a check"), Vec::<String>::new());
    }
}

#[tokio::test]
async fn of_two_backups_to_one_place_one_is_made_and_the_other_refused() {
    let rig = rig().await;
    let big = "INSERT INTO entry (id, text) VALUES ('big', hex(zeroblob(2000000)))";
    rig.sqlite.update(move |db| db.execute(big, ())).await.expect("a write");
    let target = rig.path.with_file_name("copy.db");
    let (one, two) = tokio::join!(rig.sqlite.backup(&target), rig.sqlite.backup(&target));
    let refused = [one, two].into_iter().filter_map(Result::err).collect::<Vec<_>>();
    assert!(
        matches!(refused.as_slice(), [StoreError::TargetExists { .. }]),
        "{refused:?}"
    );
    let copy = Sqlite::open(&target, options()).await.expect("it opens");
    assert_eq!(copy.integrity_check().await.expect("a check"), Vec::<String>::new());
}

/// A caller that leaves does not leave a copy that SQLite goes on writing under the feet of the next one.
#[tokio::test]
async fn a_backup_whose_caller_left_is_finished() {
    let rig = rig().await;
    add(&rig.sqlite, "a").await.expect("a write");
    let target = rig.path.with_file_name("copy.db");
    let mut callers = JoinSet::new();
    let (sqlite, to) = (rig.sqlite.clone(), target.clone());
    callers.spawn(async move { sqlite.backup(to).await });
    tokio::task::yield_now().await;
    callers.abort_all();
    while callers.join_next().await.is_some() {}
    // Waits for the one before, whether or not it began before its caller left.
    match rig.sqlite.backup(&target).await {
        Ok(()) | Err(StoreError::TargetExists { .. }) => {}
        Err(other) => panic!("{other:?}"),
    }
    let copy = Sqlite::open(&target, options()).await.expect("it opens");
    assert_eq!(ids(&copy).await, ["a"]);
}

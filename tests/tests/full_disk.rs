//! A disk that is really full: the data of an installation lies in a file system of some MiB. What is asked then is answered
//! with STORAGE_FULL, what was answered before is still there, and once there is room everything goes on.
//!
//! Mounting takes rights that not every machine gives. Where it is not permitted, the scenarios say so and end.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says when it cannot be run"
)]

mod common;

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use steward_base::ErrorKind;
use steward_client::ClientError;
use steward_testkit::ModelServer;
use steward_tests::person::{Ended, fresh_id};
use steward_tests::{Person, SERVICES, Shape, Stack, script};

/// Size of the file system: room for the five stores and not much more.
const SIZE: &str = "size=24m";
/// Turns after which a disk of that size must have been found full.
const MOST: usize = 200;

/// A small file system, which goes with the test.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None`, with the reason printed, where mounting is not permitted.
    fn mount(at: &Path) -> Option<Self> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", SIZE, "tmpfs"])
            .arg(at)
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(at.to_owned())),
            Ok(output) => {
                eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr).trim());
                None
            }
            Err(error) => {
                eprintln!("skipped: no program to mount with: {error}");
                None
            }
        }
    }

    /// Takes all room that is left.
    fn fill(&self) {
        let mut filler = File::create(self.filler()).unwrap();
        let mut block = vec![b'x'; 1 << 16];
        while !block.is_empty() {
            if filler.write_all(&block).is_err() {
                block.truncate(block.len() / 2);
            }
        }
    }

    fn make_room(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Also while a process still holds a file there, which a test that failed may leave.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Moves the data of a running installation to a small disk.
async fn on_a_small_disk(stack: &mut Stack) -> Option<SmallDisk> {
    match stack.shape() {
        Shape::One => stack.stop("recall-service").await,
        Shape::Split => {
            for service in SERVICES.iter().rev() {
                stack.stop(service).await;
            }
        }
    }
    let data = stack.data();
    let aside = data.with_file_name("data-before");
    std::fs::rename(&data, &aside).unwrap();
    std::fs::create_dir(&data).unwrap();
    let disk = SmallDisk::mount(&data)?;
    let copied = Command::new("cp").arg("-a").arg(aside.join(".")).arg(&data).status();
    assert!(copied.unwrap().success());
    stack.start_all();
    Some(disk)
}

/// Texts of what the person said, as they are kept.
async fn kept(person: &Person, session: &str) -> Vec<String> {
    let messages = person.messages(session).await;
    let said = messages.into_iter().filter(|message| message.role == "user");
    said.map(|message| message.text).collect()
}

fn assert_full(error: &ClientError) {
    assert_eq!(
        (error.kind, error.reason),
        (ErrorKind::Exhausted, "STORAGE_FULL"),
        "{error:?}"
    );
}

/// Says something. `false` when the answer is that the disk is full: at once, or in the midst of the turn.
async fn was_taken(person: &Person, session: &str, text: &str, id: &str) -> bool {
    match person.say_as(session, text, id).await {
        Ok(segment) => match segment.ended {
            Ended::Completed(_) => true,
            Ended::Failed(failed) => {
                assert_eq!(failed.reason, "STORAGE_FULL", "{failed:?}");
                false
            }
            other => panic!("{other:?}"),
        },
        Err(error) => {
            assert_full(&error);
            false
        }
    }
}

both_shapes!(a_full_disk_is_said_loses_nothing_and_is_over_when_there_is_room);

async fn a_full_disk_is_said_loses_nothing_and_is_over_when_there_is_room(shape: Shape) {
    let model = ModelServer::scripted(script::learner).await;
    let mut stack = Stack::start("full-disk", shape, common::no_reviews(&model));
    let Some(disk) = on_a_small_disk(&mut stack).await else {
        return;
    };
    let owner = stack.owner().await;
    let session = owner.session(Vec::new()).await;
    owner.say(&session, "there is room").await;
    disk.fill();

    // Files have room left in pages that are theirs already, so that it may take some turns.
    let long = "a long message of some kind ".repeat(1_000);
    let mut acknowledged = vec!["there is room".to_owned()];
    let mut refused = None;
    while refused.is_none() && acknowledged.len() < MOST {
        let (text, id) = (format!("{}: {long}", acknowledged.len()), fresh_id());
        if was_taken(&owner, &session, &text, &id).await {
            acknowledged.push(text);
        } else {
            refused = Some((text, id));
        }
    }
    let (text, id) = refused.expect("the disk is full");
    let mut skills = Vec::new();
    let error = loop {
        let name = format!("skill-{}", skills.len());
        match owner.create_skill(&name, &script::skill_text(&name, &long)).await {
            Ok(_) => skills.push(name),
            Err(error) => break error,
        }
        assert!(skills.len() < MOST, "the disk is full");
    };
    assert_full(&error);
    // Reading goes on, and everything that was answered is there; of the refused turn perhaps its beginning.
    for skill in &skills {
        assert!(owner.view_skill(skill).await.unwrap().content.contains(long.trim_end()));
    }
    let said = kept(&owner, &session).await;
    assert!(
        said.starts_with(&acknowledged),
        "{} of {}",
        said.len(),
        acknowledged.len()
    );
    assert!(said.len() <= acknowledged.len() + 1);

    disk.make_room();
    assert!(was_taken(&owner, &session, &text, &id).await, "the same request again");
    acknowledged.push(text);
    owner.say(&session, "there is room again").await;
    acknowledged.push("there is room again".to_owned());
    owner.remember("there is room again").await.unwrap();
    stack.kill_all();
    stack.start_all();
    let owner = stack.owner().await;
    assert_eq!(kept(&owner, &session).await, acknowledged);
    let listed: Vec<_> = owner.skills().await.into_iter().map(|skill| skill.name).collect();
    for skill in &skills {
        assert!(
            listed.iter().any(|name| name.ends_with(&format!("/{skill}"))),
            "{skill}: {listed:?}"
        );
    }
    assert!(owner.notes().await.contains(&"there is room again".to_owned()));
    let check = steward_proto::recall::v1::CheckIntegrityRequest {
        parent: owner.team.clone(),
        rebuild: false,
    };
    let found = owner.client.store.check_integrity(check).await.unwrap();
    assert!(found.consistent, "{:?}", found.problems);
    drop(stack);
    drop(disk);
}

//! `steward recall backup`, `backups`, `restore`: a team's conversations as one file on the server, for admins.

use std::time::Duration;

use anyhow::ensure;
use steward_proto::recall::v1 as pb;

use crate::connect::Session;
use crate::output::{Cell, Output, counted, gather, short, size, time};
use crate::verbs::permitted;

/// A whole file is copied, read and checked.
const PATIENCE: Duration = Duration::from_mins(30);

pub(super) async fn backup(session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let request = pb::BackupTeamRequest {
        parent: session.team.clone(),
    };
    output.progress("copying and checking the team's messages");
    let answer = session
        .client
        .store
        .clone()
        .with_timeout(Some(PATIENCE))
        .backup_team(request)
        .await;
    output.progress("");
    output.answer(&answer?, |output, answer| {
        let backup = answer.backup.clone().unwrap_or_default();
        output.line(&format!(
            "{}: {}, {}, checked.",
            backup.name,
            counted(usize::try_from(backup.messages).unwrap_or(usize::MAX), "message"),
            size(backup.size_bytes)
        ));
    })
}

pub(super) async fn list(limit: usize, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let answer = gather(limit, |page_size, page_token| {
        session.client.store.list_backups(pb::ListBackupsRequest {
            parent: session.team.clone(),
            page_size,
            page_token,
        })
    });
    output.answer(&answer.await?, |output, answer| {
        let rows = answer.backups.iter().map(|backup| {
            vec![
                Cell::name(short(&backup.name)),
                Cell::side(time(backup.create_time.as_ref())),
                size(backup.size_bytes).into(),
            ]
        });
        output.table(&["backup", "made", "size"], rows.collect(), "No backups yet.");
        output.more(answer);
    })
}

pub(super) async fn restore(given: &str, yes: bool, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let name = if given.contains('/') {
        given.to_owned()
    } else {
        format!("{}/backups/{given}", session.team)
    };
    let question = format!("put {name} in the place of all conversations of the team? What is there now is set aside");
    ensure!(permitted(yes, &question, output), "nothing was put back");
    output.progress("checking the backup and putting it back");
    let request = pb::RestoreTeamRequest { name };
    let answer = session
        .client
        .store
        .clone()
        .with_timeout(Some(PATIENCE))
        .restore_team(request)
        .await;
    output.progress("");
    output.answer(&answer?, |output, answer| {
        let messages = counted(usize::try_from(answer.messages).unwrap_or(usize::MAX), "message");
        let conversations = counted(usize::try_from(answer.sessions).unwrap_or(usize::MAX), "conversation");
        output.line(&format!("Restored: {messages} in {conversations}."));
        if !answer.set_aside.is_empty() {
            output.aside(&format!("what was there is {}", answer.set_aside));
        }
    })
}

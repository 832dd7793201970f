//! Withdrawing trees, overruling that, and asking whether someone else did.

use steward_proto::hub::v1 as pb;

use super::{show, skill_name};
use crate::connect::Session;
use crate::output::{ALL, Output, counted, gather, short};

/// The withdrawal that a person means: by a digest, or by an installed skill.
async fn named(tree: &str, session: &Session) -> anyhow::Result<String> {
    let is_digest = tree.len() == 64 && tree.bytes().all(|byte| byte.is_ascii_hexdigit());
    let digest = if is_digest {
        tree.to_ascii_lowercase()
    } else if tree.contains("/hubWithdrawals/") {
        return Ok(tree.to_owned());
    } else {
        let name = skill_name(session, tree);
        let answer = session
            .client
            .hub
            .get_hub_skill(pb::GetHubSkillRequest { name })
            .await?;
        answer.skill.unwrap_or_default().tree_sha256
    };
    Ok(session.child("hubWithdrawals", &digest))
}

pub(super) async fn revoke(
    tree: &str,
    reason: String,
    yank: bool,
    session: &Session,
    output: &mut Output,
) -> anyhow::Result<()> {
    let standing = if yank {
        pb::HubStanding::Yanked
    } else {
        pb::HubStanding::Revoked
    };
    let request = pb::WithdrawHubTreeRequest {
        name: named(tree, session).await?,
        standing: standing.into(),
        reason,
    };
    output.answer(
        &session.client.hub.withdraw_hub_tree(request).await?,
        |output, answer| {
            let skill = answer
                .withdrawal
                .as_ref()
                .map_or("", |withdrawal| short(&withdrawal.skill));
            output.line(match (yank, skill.is_empty()) {
                (true, _) => "Yanked: nobody installs it any more; where it is installed it stays.",
                (false, true) => "Revoked: nobody installs it any more. It is not installed here.",
                (false, false) => "Revoked: nobody installs it any more, and agents no longer see it.",
            });
        },
    )
}

pub(super) async fn reinstate(
    tree: &str,
    reason: String,
    session: &Session,
    output: &mut Output,
) -> anyhow::Result<()> {
    let name = named(tree, session).await?;
    let request = pb::ReinstateHubTreeRequest { name, reason };
    output.answer(&session.client.hub.reinstate_hub_tree(request).await?, |output, _| {
        output.line("Reinstated: it can be installed again, and is in use again where it was installed.");
    })
}

pub(super) async fn list(session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let answer = gather(ALL, |page_size, page_token| {
        session.client.hub.list_hub_withdrawals(pb::ListHubWithdrawalsRequest {
            parent: session.team.clone(),
            page_size,
            page_token,
        })
    });
    output.answer(&answer.await?, show::withdrawals)
}

pub(super) async fn check(session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let request = pb::CheckHubSkillsRequest {
        parent: session.team.clone(),
    };
    let mut stream = session.client.hub.check_hub_skills(request).await?;
    let (mut count, mut unheard, mut withdrawn) = (0, 0, false);
    while let Some(answer) = stream.message().await? {
        count += 1;
        output.progress(&format!("{} of {}", answer.position, answer.total));
        let standing = answer.withdrawal.as_ref().map(pb::HubWithdrawal::standing);
        let in_force = matches!(standing, Some(pb::HubStanding::Yanked | pb::HubStanding::Revoked));
        withdrawn |= in_force;
        unheard += usize::from(!answer.problem.is_empty());
        if !in_force && !answer.changed && answer.problem.is_empty() && !output.is_json() {
            continue;
        }
        output.progress("");
        output.item(&answer, |output, answer| {
            output.head(short(&answer.name));
            show::withdrawal(output, answer.withdrawal.as_ref());
            if !answer.problem.is_empty() {
                output.warn(&format!("not everyone was heard: {}", answer.problem));
            }
        })?;
    }
    output.progress("");
    if withdrawn {
        return Err(crate::Said.into());
    }
    if !output.is_json() {
        output.line(&nothing_withdrawn(count, unheard));
    }
    // Where nobody was heard nothing was checked.
    if count > 0 && unheard == count {
        return Err(crate::Said.into());
    }
    Ok(())
}

fn nothing_withdrawn(count: usize, unheard: usize) -> String {
    let all = counted(count, "skill");
    match unheard {
        0 => format!("{all} checked; nothing is withdrawn."),
        _ => format!("{all} checked, {unheard} of them without everyone's answer; nothing is known to be withdrawn."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_not_told_as_all_is_well() {
        assert_eq!(nothing_withdrawn(2, 0), "2 skills checked; nothing is withdrawn.");
        let said = nothing_withdrawn(2, 1);
        assert!(said.contains("1 of them without everyone's answer"), "{said}");
    }
}

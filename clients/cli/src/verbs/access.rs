//! `steward access`: whoami, teams, users, tokens.

use clap::{Subcommand, ValueEnum};
use steward_proto::access::v1 as pb;
use steward_proto::common::v1 as common;

use crate::connect::{Session, request_id};
use crate::output::{ALL, Cell, Output, Tone, gather, short, time, word};

/// What a person may do.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Role {
    /// Reads what the team shares.
    Viewer,
    /// Talks to the agent.
    Member,
    /// Decides what the team shares.
    Maintainer,
    /// Manages users and tokens.
    Admin,
}

impl From<Role> for common::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::Viewer => Self::Viewer,
            Role::Member => Self::Member,
            Role::Maintainer => Self::Maintainer,
            Role::Admin => Self::Admin,
        }
    }
}

/// Verbs of `steward access`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show who your token speaks for.
    Whoami,
    /// List teams.
    Teams,
    /// Create a team with its first admin (admins of the home team).
    CreateTeam {
        /// Id of the team.
        team: String,
        /// Id of its first admin.
        admin: String,
    },
    /// List the users of your team.
    Users,
    /// Create a user in your team.
    CreateUser {
        /// Id of the user.
        user: String,
        /// What the user may do.
        #[arg(long, value_enum, default_value_t = Role::Member)]
        role: Role,
    },
    /// Change a user's role, disable or enable a user.
    UpdateUser {
        /// Id or full name.
        user: String,
        /// New role.
        #[arg(long, value_enum)]
        role: Option<Role>,
        /// Take access away (true) or give it back (false).
        #[arg(long)]
        disabled: Option<bool>,
    },
    /// Make a token; its text is shown once.
    CreateToken {
        /// User id or full name; yourself by default.
        #[arg(long)]
        user: Option<String>,
        /// What it is for.
        #[arg(long, default_value = "")]
        label: String,
        /// Days until it ends.
        #[arg(long, default_value_t = 90)]
        days: u32,
    },
    /// List tokens.
    Tokens {
        /// User id or full name, `-` for the whole team; yourself by default.
        #[arg(long)]
        user: Option<String>,
    },
    /// Revoke a token for good.
    RevokeToken {
        /// Full name, as `tokens` shows it.
        #[arg(value_name = "TOKEN")]
        name: String,
    },
}

/// Runs a verb.
pub async fn run(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let access = &session.client.access;
    match verb {
        Verb::Whoami => output.answer(&access.who_am_i(pb::WhoAmIRequest {}).await?, |output, me| {
            let role = word(me.role().as_str_name(), "ROLE_");
            output.line(&format!(
                "{} ({role}), token good until {}",
                me.user,
                time(me.expire_time.as_ref())
            ));
        }),
        Verb::Teams => {
            let answer = gather(ALL, |page_size, page_token| {
                access.list_teams(pb::ListTeamsRequest { page_size, page_token })
            });
            output.answer(&answer.await?, |output, answer| {
                let rows = answer.teams.iter().map(|team| {
                    vec![
                        Cell::name(short(&team.name)),
                        team.display_name.as_str().into(),
                        Cell::side(time(team.create_time.as_ref())),
                    ]
                });
                output.table(&["team", "title", "created"], rows.collect(), "No teams.");
            })
        }
        Verb::CreateTeam { team, admin } => {
            let request = pb::CreateTeamRequest {
                team_id: team,
                display_name: String::new(),
                admin_user_id: admin,
                request_id: request_id(),
            };
            output.answer(&access.create_team(request).await?, |output, answer| {
                let admin = answer.admin.as_ref().map(|user| user.name.as_str()).unwrap_or_default();
                output.line(&format!(
                    "Created, with {admin} as its admin; give that user a token next."
                ));
            })
        }
        Verb::Users => {
            let answer = gather(ALL, |page_size, page_token| {
                access.list_users(pb::ListUsersRequest {
                    parent: session.team.clone(),
                    page_size,
                    page_token,
                })
            });
            output.answer(&answer.await?, |output, answer| {
                let rows = answer.users.iter().map(user_row).collect();
                output.table(&["user", "role", "state", "created"], rows, "No users.");
            })
        }
        Verb::CreateUser { user, role } => {
            let request = pb::CreateUserRequest {
                parent: session.team.clone(),
                user_id: user,
                user: Some(pb::User {
                    role: common::Role::from(role).into(),
                    ..pb::User::default()
                }),
                request_id: request_id(),
            };
            output.answer(&access.create_user(request).await?, |output, _| output.line("Created."))
        }
        Verb::UpdateUser { user, role, disabled } => {
            let request = pb::UpdateUserRequest {
                name: session.child("users", &user),
                role: role.map_or(common::Role::Unspecified, common::Role::from).into(),
                disabled,
            };
            output.answer(&access.update_user(request).await?, |output, answer| {
                let rows = answer.user.iter().map(user_row).collect();
                output.table(&["user", "role", "state", "created"], rows, "");
            })
        }
        verb => tokens(verb, session, output).await,
    }
}

async fn tokens(verb: Verb, session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let access = &session.client.access;
    match verb {
        Verb::CreateToken { user, label, days } => {
            let ttl = prost_types::Duration {
                seconds: i64::from(days) * 86_400,
                nanos: 0,
            };
            let parent = session.user_name(user.as_deref());
            let request = pb::CreateTokenRequest {
                parent,
                label,
                ttl: Some(ttl),
            };
            output.answer(&access.create_token(request).await?, |output, answer| {
                output.aside("shown once; keep it in a file that only you can read");
                output.line(&answer.credential);
            })
        }
        Verb::Tokens { user } => {
            let parent = session.user_name(user.as_deref());
            let answer = gather(ALL, |page_size, page_token| {
                access.list_tokens(pb::ListTokensRequest {
                    parent: parent.clone(),
                    page_size,
                    page_token,
                })
            });
            output.answer(&answer.await?, |output, answer| {
                let rows = answer.tokens.iter().map(|token| {
                    let state = if token.revoke_time.is_some() { "revoked" } else { "" };
                    vec![
                        token.label.as_str().into(),
                        time(token.expire_time.as_ref()).into(),
                        Cell::state(state),
                        Cell::name(token.name.as_str()),
                    ]
                });
                output.table(&["label", "ends", "state", "name"], rows.collect(), "No tokens.");
            })
        }
        Verb::RevokeToken { name } => {
            let answer = access.revoke_token(pb::RevokeTokenRequest { name }).await?;
            output.answer(&answer, |output, _| output.line("Revoked."))
        }
        _ => Ok(()),
    }
}

fn user_row(user: &pb::User) -> Vec<Cell> {
    let (state, tone) = if user.disabled {
        ("disabled", Tone::Bad)
    } else {
        ("", Tone::Plain)
    };
    vec![
        Cell::name(short(&user.name)),
        word(user.role().as_str_name(), "ROLE_").into(),
        Cell::toned(state, tone),
        Cell::side(time(user.create_time.as_ref())),
    ]
}

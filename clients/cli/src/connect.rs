//! How the command line finds its server and its token.
//!
//! Endpoint: `--endpoint`, else `STEWARD_ENDPOINT`, else 127.0.0.1:7400. A split installation maps packages to endpoints
//! with `--service memory=http://…`. Token: `--token-file`, else `STEWARD_TOKEN`, else the owner's token that the first
//! start left in the data folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::Args;
use steward_client::{Client, Credentials, ErrorOrigin, Wire, check_endpoint};
use steward_proto::access::v1::WhoAmIRequest;

use crate::fault::Fault;

/// Where the single binary listens unless told otherwise.
pub const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:7400";

/// The packages that `--service` can send elsewhere, each with a service by which its server is known.
pub const PACKAGES: [(&str, &str); 6] = [
    ("access", "steward.access.v1.AccessService"),
    ("agent", "steward.agent.v1.AgentService"),
    ("learning", "steward.learning.v1.ReviewService"),
    ("memory", "steward.memory.v1.MemoryService"),
    ("recall", "steward.recall.v1.RecallService"),
    ("skill", "steward.skill.v1.SkillService"),
];

/// Options of every verb that talks to a server.
#[derive(Debug, Clone, Args)]
pub struct Connection {
    /// Address of the server.
    #[arg(long, global = true, env = "STEWARD_ENDPOINT", default_value = DEFAULT_ENDPOINT, value_name = "URL")]
    pub endpoint: String,
    /// Another address for one package, for example `memory=http://10.0.0.7:7403`. May be repeated.
    #[arg(
        long = "service",
        global = true,
        env = "STEWARD_SERVICES",
        value_delimiter = ',',
        value_name = "PACKAGE=URL"
    )]
    pub services: Vec<String>,
    /// File that holds the access token.
    #[arg(long, global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The access token itself, for environments without files.
    #[arg(long, global = true, env = "STEWARD_TOKEN", hide_env_values = true, hide = true)]
    pub token: Option<String>,
    /// Folder with Steward's data, where the first start leaves the owner's token.
    #[arg(long, global = true, env = "STEWARD_DATA_DIR", value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// Print one JSON document instead of tables.
    #[arg(long, global = true)]
    pub json: bool,
}

/// An authenticated connection.
#[derive(Debug, Clone)]
pub struct Session {
    /// Typed clients of all services.
    pub client: Client,
    /// `teams/{team}`.
    pub team: String,
    /// `teams/{team}/users/{user}`.
    pub user: String,
}

/// The data folder of this user's machine, where none is given.
pub fn default_data_dir() -> PathBuf {
    directories::ProjectDirs::from("dev", "steward", "steward")
        .map_or_else(|| PathBuf::from(".steward"), |folders| folders.data_dir().to_owned())
}

/// Where the first start leaves the owner's token.
pub fn owner_token_file(data_dir: &Path) -> PathBuf {
    data_dir.join("agent").join("owner.token")
}

impl Connection {
    /// Connects, and asks the server who the token speaks for.
    pub async fn open(&self) -> anyhow::Result<Session> {
        let client = self.client()?;
        let me = client.access.who_am_i(WhoAmIRequest {}).await.map_err(|error| {
            let said = if error.origin == ErrorOrigin::Server {
                format!("the server at {} does not take this token", self.endpoint)
            } else {
                format!(
                    "no Steward answers at {}; start one with `steward` or give --endpoint",
                    self.endpoint
                )
            };
            anyhow::Error::from(error).context(said)
        })?;
        let team = me.user.split("/users/").next().unwrap_or_default().to_owned();
        Ok(Session {
            client,
            team,
            user: me.user,
        })
    }

    /// Address of each package, by its name. An address that cannot be one is wrong usage.
    pub fn endpoints(&self) -> anyhow::Result<BTreeMap<&'static str, String>> {
        checked("--endpoint", &self.endpoint)?;
        let mut endpoints: BTreeMap<_, _> = PACKAGES.map(|(package, _)| (package, self.endpoint.clone())).into();
        for mapping in self.services.iter().filter(|mapping| !mapping.is_empty()) {
            let (package, url) = mapping
                .split_once('=')
                .ok_or_else(|| Fault::usage("--service takes PACKAGE=URL"))?;
            let Some(endpoint) = endpoints.get_mut(package) else {
                let known = PACKAGES.map(|(package, _)| package).join(", ");
                let wrong = format!("--service {package}: no such package; there are {known}");
                return Err(Fault::usage(wrong).into());
            };
            checked(&format!("--service {package}"), url)?;
            url.clone_into(endpoint);
        }
        Ok(endpoints)
    }

    /// The data folder in effect for this command line.
    pub fn data_dir(&self) -> PathBuf {
        self.data_dir.clone().unwrap_or_else(default_data_dir)
    }

    /// An authenticated wire to one address.
    pub fn wire(&self, endpoint: &str) -> anyhow::Result<Wire> {
        Ok(Wire::connect(endpoint)?.with_credentials(Credentials::token(&self.token()?)?))
    }

    fn client(&self) -> anyhow::Result<Client> {
        let endpoints = self.endpoints()?;
        let credentials = Credentials::token(&self.token()?)?;
        // One connection per address, however many packages are there.
        let mut wires: BTreeMap<String, Wire> = BTreeMap::new();
        let mut by_package = BTreeMap::new();
        for (package, endpoint) in endpoints {
            let wire = match wires.get(&endpoint) {
                Some(wire) => wire.clone(),
                None => Wire::connect(&endpoint)?.with_credentials(credentials.clone()),
            };
            wires.insert(endpoint, wire.clone());
            by_package.insert(package, wire);
        }
        let default = Wire::connect(&self.endpoint)?.with_credentials(credentials);
        Ok(Client::by_package(|package| {
            by_package.get(package).unwrap_or(&default).clone()
        }))
    }

    /// The token in effect, wherever it comes from.
    pub fn token(&self) -> anyhow::Result<String> {
        if let Some(file) = &self.token_file {
            return read(file);
        }
        if let Some(token) = &self.token {
            return Ok(token.trim().to_owned());
        }
        let file = owner_token_file(&self.data_dir());
        read(&file).map_err(|error| {
            anyhow!("{error:#}; start `steward` once on this machine, or give --token-file or STEWARD_TOKEN")
        })
    }
}

/// An address, or what is wrong with it and which option it came from.
fn checked(option: &str, url: &str) -> Result<(), Fault> {
    check_endpoint(url).map_err(|error| Fault::usage(format!("{option}: {error}")))
}

fn read(file: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read the token in {}", file.display()))?;
    Ok(text.trim().to_owned())
}

impl Session {
    /// Full name of a session given as an id or a full name.
    pub fn session_name(&self, given: &str) -> String {
        self.child("sessions", given)
    }

    /// Full name of a review given as an id or a full name.
    pub fn review_name(&self, given: &str) -> String {
        self.child("reviews", given)
    }

    /// Full name of a child of the team given as an id or a full name.
    pub fn child(&self, collection: &str, given: &str) -> String {
        if given.contains('/') {
            given.to_owned()
        } else {
            format!("{}/{collection}/{given}", self.team)
        }
    }

    /// Full name of a user given as an id or a full name; empty means the caller.
    pub fn user_name(&self, given: Option<&str>) -> String {
        given.map_or_else(|| self.user.clone(), |given| self.child("users", given))
    }
}

/// An id for a request that may be repeated: new for each run of the command.
#[expect(
    clippy::disallowed_methods,
    reason = "the command line is where requests of a person begin"
)]
pub fn request_id() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(endpoint: &str, service: &str) -> Connection {
        Connection {
            endpoint: endpoint.to_owned(),
            services: vec![service.to_owned()],
            token_file: None,
            token: Some("stw_x".to_owned()),
            data_dir: None,
            json: false,
        }
    }

    /// The option is named before a token is looked for and before anybody is asked.
    #[tokio::test]
    async fn an_address_that_is_none_is_wrong_usage_and_its_option_is_named() {
        for (endpoint, service, option) in [
            ("nonsense", "", "--endpoint: `nonsense`"),
            ("localhost:7400", "", "--endpoint: `localhost:7400`"),
            ("http://", "", "--endpoint: `http://`"),
            (DEFAULT_ENDPOINT, "memory=nonsense", "--service memory: `nonsense`"),
        ] {
            let error = connection(endpoint, service).open().await.unwrap_err();
            let fault = Fault::in_chain(&error).expect("a fault of the command line");
            assert_eq!(fault.reason, crate::fault::USAGE, "{endpoint}");
            assert!(fault.to_string().starts_with(option), "{fault}");
        }
        let good = connection("https://steward.example", "memory=unix:///run/steward.sock");
        assert_eq!(good.endpoints().unwrap()["memory"], "unix:///run/steward.sock");
    }
}

//! The hub inside this process: its settings, its tables and library as one port, one hub per team that trusts others
//! than the rest. The rules are `steward-skill-hub`'s.

pub(crate) mod config;
mod library;
mod official;
mod rescan;
pub(crate) mod signing;
mod standing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use steward_fetch::{Cached, Fetch, Guarded, SystemResolver};
use steward_runtime::{Boot, StartError};
use steward_skill_core::Skills;
use steward_skill_hub::advisories::Advisories;
use steward_skill_hub::hub::{Hub, Parts};
use steward_skill_hub::policy::TrustList;
use steward_skill_hub::sources;
use steward_skill_hub::store::HubStore;
use steward_skill_scanner::Scanner;
use steward_skill_scanner::structure::Limits;

use crate::Config;
use crate::sqlite::SqliteSkillStore;
use library::LibraryHubStore;

pub(crate) use library::files_of;
pub(crate) use rescan::Rescan;
pub(crate) use standing::Standings;

/// The hubs of all teams. They share everything but whom they trust.
#[derive(Debug, Clone)]
pub(crate) struct Hubs {
    usual: Hub,
    teams: BTreeMap<String, Hub>,
}

/// What the service is put together of.
#[derive(Debug)]
pub(crate) struct Parted {
    /// For the RPCs.
    pub(crate) hubs: Hubs,
    /// For the background.
    pub(crate) rescan: Rescan,
    /// For the background; nothing where it is switched off.
    pub(crate) standings: Option<Standings>,
}

impl Hubs {
    /// The team's.
    pub(crate) fn of(&self, team: &str) -> &Hub {
        self.teams.get(team).unwrap_or(&self.usual)
    }
}

/// Puts the hubs together; asks nobody anything yet.
pub(crate) fn build(
    config: &Config,
    store: SqliteSkillStore,
    skills: Arc<Skills>,
    boot: &Boot,
) -> Result<Parted, StartError> {
    let hub = &config.hub;
    steward_runtime::tls::install_provider();
    let guarded = Guarded::new(
        hub.fetch_settings(),
        hub.tokens(),
        Arc::clone(&boot.clock),
        Arc::new(SystemResolver),
    )
    .map_err(|error| StartError::new("set up the way out to the internet", error))?;
    let fetch: Arc<dyn Fetch> = Arc::new(Cached::new(guarded, u64::from(hub.cache_megabytes) << 20));
    let scanner = Scanner::deferred();
    let rule_set: Arc<str> = scanner.rule_set().into();
    let tables = store.clone();
    let store: Arc<dyn HubStore> = Arc::new(LibraryHubStore::new(store, skills));
    let settings = hub.source_settings();
    let lists = hub.advisories.clone();
    let advisories = (!lists.is_empty()).then(|| Advisories::new(&fetch, &boot.clock, lists));
    let official = official::read(&hub.official, &limits(config))?;
    let signing = hub.signatures.policy()?;
    let with = |trust: &TrustList| {
        let sources = if hub.enabled {
            sources::all(&settings, official.clone(), trust, &fetch, &boot.clock)
        } else {
            Vec::new()
        };
        Hub::new(Parts {
            sources,
            store: Arc::clone(&store),
            scanner: scanner.clone(),
            clock: Arc::clone(&boot.clock),
            ids: Arc::clone(&boot.ids),
            limits: limits(config),
            search_deadline: Duration::from_secs(hub.search_seconds.into()),
            open_items: hub.quarantine_items,
            advisories: advisories.clone(),
        })
        .with_signing(signing.clone())
    };
    let hubs = Hubs {
        usual: with(&hub.trusted.iter().collect()),
        teams: hub
            .teams
            .iter()
            .map(|team| (team.team.clone(), with(&team.trusted.iter().collect())))
            .collect(),
    };
    let standings = (hub.check_hours > 0).then(|| Standings::new(hubs.clone(), tables.clone()));
    let rescan = Rescan::new(hubs.clone(), tables, rule_set);
    Ok(Parted {
        hubs,
        rescan,
        standings,
    })
}

/// What the library would refuse is refused in quarantine; its paths have at most eight parts.
fn limits(config: &Config) -> Limits {
    let bytes = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
    let default = Limits::default();
    Limits {
        files: config.files.min(default.files),
        bytes: bytes(config.skill_bytes).min(default.bytes),
        file_bytes: bytes(config.file_bytes).min(default.file_bytes),
        // Of characters, which have up to four bytes; the library counts them.
        skill_bytes: bytes(config.skill_md_chars.saturating_mul(4)).min(default.skill_bytes),
        depth: 8,
    }
}

//! The sources of `H-1`, each with its own wire format and nothing else. Addresses are settings; the defaults are the
//! public ones.

mod browse_sh;
mod clawhub;
mod github;
mod index;
mod lobehub;
mod marketplace;
mod official;
mod skills_sh;
mod web;
mod well_known;
pub(crate) mod wire;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use steward_base::Clock;
use steward_fetch::Fetch;
use steward_skill_scanner::Tree;

pub use browse_sh::BrowseSh;
pub use clawhub::ClawHub;
pub use github::GitHub;
pub use index::Index;
pub use lobehub::LobeHub;
pub use marketplace::Marketplaces;
pub use official::Official;
pub use skills_sh::SkillsSh;
pub use web::Web;
pub use well_known::WellKnown;

use crate::policy::TrustList;
use crate::source::Source;

/// Which sources are asked, and where they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Names of sources that are switched off.
    pub disabled: Vec<String>,
    /// A central index: an address of a JSON file; empty for none.
    pub index: String,
    /// The API of GitHub or of a host that speaks it.
    pub github_api: String,
    /// The name of that host, as trust lists write it.
    pub github_host: String,
    /// Repositories that are searched.
    pub repositories: Vec<String>,
    /// Repositories that hold a marketplace file.
    pub marketplaces: Vec<String>,
    /// skills.sh.
    pub skills_sh: String,
    /// Its partners' audits; empty to leave them out.
    pub skills_sh_audit: String,
    /// ClawHub.
    pub clawhub: String,
    /// LobeHub's market.
    pub lobehub: String,
    /// browse.sh.
    pub browse_sh: String,
}

impl Default for Settings {
    fn default() -> Self {
        let trusted = [
            "openai/skills",
            "anthropics/skills",
            "huggingface/skills",
            "NVIDIA/skills",
        ];
        Self {
            disabled: Vec::new(),
            index: String::new(),
            github_api: "https://api.github.com".to_owned(),
            github_host: "github.com".to_owned(),
            repositories: trusted.into_iter().map(str::to_owned).collect(),
            marketplaces: vec!["anthropics/skills".to_owned()],
            skills_sh: "https://skills.sh".to_owned(),
            skills_sh_audit: "https://add-skill.vercel.sh".to_owned(),
            clawhub: "https://clawhub.ai".to_owned(),
            lobehub: "https://market.lobehub.com".to_owned(),
            browse_sh: "https://browse.sh".to_owned(),
        }
    }
}

/// All enabled sources in the order of their priority. `official` are the optional skills that Steward ships.
pub fn all(
    settings: &Settings,
    official: Vec<(String, Tree)>,
    trust: &TrustList,
    fetch: &Arc<dyn Fetch>,
    clock: &Arc<dyn Clock>,
) -> Vec<Arc<dyn Source>> {
    let wire = wire::Wire::new(Arc::clone(fetch), Arc::clone(clock));
    let github = Arc::new(GitHub::new(wire.clone(), settings, trust.clone()));
    let mut sources: Vec<Arc<dyn Source>> = vec![Arc::new(Official::new(official))];
    if !settings.index.is_empty() {
        sources.push(Arc::new(Index::new(wire.clone(), &settings.index, Arc::clone(&github))));
    }
    let others: [Arc<dyn Source>; 8] = [
        Arc::clone(&github) as Arc<dyn Source>,
        Arc::new(SkillsSh::new(wire.clone(), settings)),
        Arc::new(ClawHub::new(wire.clone(), &settings.clawhub, Arc::clone(&github))),
        Arc::new(Marketplaces::new(settings, github)),
        Arc::new(LobeHub::new(wire.clone(), &settings.lobehub)),
        Arc::new(BrowseSh::new(wire.clone(), &settings.browse_sh)),
        Arc::new(WellKnown::new(wire.clone())),
        Arc::new(Web::new(wire)),
    ];
    sources.extend(others);
    sources.retain(|source| !settings.disabled.iter().any(|disabled| disabled == source.name()));
    sources
}

#[cfg(test)]
mod tests;

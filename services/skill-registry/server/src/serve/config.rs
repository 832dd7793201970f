//! Settings of what is given out: the section `skills.serve`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use steward_runtime::Problem;

/// Settings of what teams give out over HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServeConfig {
    /// Address to serve published skills at, `host:port`, without TLS; empty to serve nothing.
    pub listen: String,
    /// Whether everyone may read what teams publish. Otherwise it takes a token of a person of the team.
    pub public: bool,
}

impl ServeConfig {
    /// Everything that is wrong with the settings.
    pub(crate) fn validate(&self) -> Vec<Problem> {
        let port = self
            .listen
            .rsplit_once(':')
            .map(|(host, port)| (host, port.parse::<u16>()));
        let fine = self.listen.is_empty() || matches!(port, Some((host, Ok(_))) if !host.is_empty());
        if fine {
            Vec::new()
        } else {
            vec![Problem::new("serve.listen", "must be host:port, or empty")]
        }
    }
}

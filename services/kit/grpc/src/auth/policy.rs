//! Who may call which method, as the contract declares it. What has no policy is denied.

use steward_base::{Caller, Identity, Role};
use steward_proto::methods;

/// The policy of one method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Lowest role of a person; `None`: persons may not call.
    pub min_role: Option<Role>,
    /// Capability of a restricted credential; `None`: restricted credentials may not call.
    pub capability: Option<&'static str>,
    /// Whether services may call.
    pub service: bool,
    /// Whether anyone may call.
    pub public: bool,
}

/// Health and reflection tell nothing about anyone, and probes have no credential.
const OPEN: [&str; 2] = ["/grpc.health.v1.Health/", "/grpc.reflection.v1.ServerReflection/"];

/// The policy for a path, `/package.Service/Method`.
pub fn find(path: &str) -> Option<Policy> {
    if OPEN.iter().any(|open| path.starts_with(open)) {
        return Some(Policy {
            min_role: None,
            capability: None,
            service: false,
            public: true,
        });
    }
    methods::find(path).map(|method| Policy {
        min_role: role(method.min_role),
        capability: Some(method.capability).filter(|capability| !capability.is_empty()),
        service: method.service,
        public: method.public,
    })
}

/// The role with this number in the contract; `None` for unspecified or unknown.
pub const fn role(number: i32) -> Option<Role> {
    match number {
        1 => Some(Role::Viewer),
        2 => Some(Role::Member),
        3 => Some(Role::Maintainer),
        4 => Some(Role::Admin),
        _ => None,
    }
}

impl Policy {
    /// Whether a verified caller may call. Each kind of credential has exactly one way in.
    pub fn permits(&self, caller: &Caller) -> bool {
        match &caller.identity {
            Identity::User => self.min_role.is_some_and(|lowest| caller.role >= lowest),
            Identity::Turn { .. } | Identity::Job { .. } => {
                self.capability.is_some_and(|capability| caller.permits(capability))
            }
            Identity::Service { .. } => self.service,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_of_the_contract_has_someone_who_may_call_it() {
        for method in methods::METHODS {
            let policy = find(method.path).unwrap();
            let reachable = policy.min_role.is_some() || policy.capability.is_some() || policy.service || policy.public;
            assert!(reachable, "{} has no policy: nobody could call it", method.path);
        }
    }

    #[test]
    fn what_is_not_in_the_contract_has_no_policy() {
        for path in [
            "",
            "/",
            "/steward.memory.v1.MemoryService/Nothing",
            "/grpc.health.v1.HealthX/Check",
            "Apply",
        ] {
            assert_eq!(find(path), None, "{path}");
        }
    }
}

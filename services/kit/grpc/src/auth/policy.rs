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

/// What every server has besides its own methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builtin {
    /// Whether the server is up.
    Health,
    /// What the server serves.
    Reflection,
}

/// Which of the services that every server has a path belongs to.
pub fn builtin(path: &str) -> Option<Builtin> {
    if path.starts_with("/grpc.health.v1.Health/") {
        Some(Builtin::Health)
    } else if path.starts_with("/grpc.reflection.v1.ServerReflection/") {
        Some(Builtin::Reflection)
    } else {
        None
    }
}

/// The policy for a path, `/package.Service/Method`. Health and reflection tell nothing about anyone and are public; a
/// server may be set to ask for a credential there too ([`super::AuthConfig`]).
pub fn find(path: &str) -> Option<Policy> {
    if builtin(path).is_some() {
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
    /// Persons and services, whoever they are; no restricted credential.
    pub const KNOWN: Self = Self {
        min_role: Some(Role::Viewer),
        capability: None,
        service: true,
        public: false,
    };

    /// Whether a verified caller may call. Each kind of credential has exactly one way in. A restricted one narrows what
    /// the person it acts for may do and never widens it: it needs the capability, and the person the role.
    pub fn permits(&self, caller: &Caller) -> bool {
        match &caller.identity {
            Identity::User => self.min_role.is_some_and(|lowest| caller.role >= lowest),
            Identity::Turn { .. } | Identity::Job { .. } => {
                self.capability.is_some_and(|capability| caller.permits(capability))
                    && self.min_role.is_none_or(|lowest| caller.role >= lowest)
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

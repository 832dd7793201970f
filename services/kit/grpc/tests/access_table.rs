//! `services/ACCESS.md`: who may call what, written from the contract, so that what people read is what servers do.
//!
//! After a change of a policy: `cargo test -p steward-grpc --test access_table -- --ignored`.

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Write as _;
    use std::path::PathBuf;

    use prost::Message as _;
    use steward_grpc::auth::policy;
    use steward_proto::methods::{METHODS, Method};

    const HEAD: &str = "\
# Access

<!-- Written by `cargo test -p steward-grpc --test access_table -- --ignored`; a test fails when it is stale. -->

Who may call which RPC. Every server decides by this table, which it takes from the contract; what is not in it is denied
to everyone. The decision comes before the handler; what a caller may see or change inside its team is the handler's.

- **Person**: the lowest role with which a person's own token may call. Higher roles include lower ones: viewer, member,
  maintainer, admin. `-`: no person may.
- **Capability**: what a restricted token, of one turn or of one claim of a job, must include. It must also act for a
  person with the role in the first column, if there is one. `-`: no restricted token may.
- **Service**: whether one of the services may call as itself.
- Health and reflection are open to everyone; `auth.open_health` and `auth.open_reflection` change that to persons and
  services with any valid token. `ApplyRevocations` takes agent-orchestrator only.
";

    fn path() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../ACCESS.md")
    }

    fn written() -> String {
        let mut services: BTreeMap<&str, Vec<&Method>> = BTreeMap::new();
        for method in METHODS {
            let service = method.path.trim_start_matches('/').split('/').next().unwrap();
            services.entry(service).or_default().push(method);
        }
        let mut text = HEAD.to_owned();
        for (service, methods) in services {
            write!(
                text,
                "\n## {service}\n\n| RPC | Person | Capability | Service |\n|---|---|---|---|\n"
            )
            .unwrap();
            for method in methods {
                let policy = policy::find(method.path).unwrap();
                let name = method.path.rsplit('/').next().unwrap();
                let person = if policy.public {
                    "anyone".to_owned()
                } else {
                    policy
                        .min_role
                        .map_or("-".to_owned(), |role| format!("{role:?}").to_lowercase())
                };
                let capability = policy.capability.map_or("-".to_owned(), |name| format!("`{name}`"));
                let service = if policy.service { "yes" } else { "-" };
                writeln!(text, "| {name} | {person} | {capability} | {service} |").unwrap();
            }
        }
        text
    }

    #[test]
    fn the_table_in_the_documents_is_what_servers_decide_by() {
        let kept = std::fs::read_to_string(path()).unwrap_or_default();
        assert!(
            kept == written(),
            "services/ACCESS.md is stale: run `cargo test -p steward-grpc --test access_table -- --ignored`"
        );
    }

    #[test]
    #[ignore = "writes services/ACCESS.md"]
    fn write_the_table() {
        std::fs::write(path(), written()).unwrap();
    }

    /// `steward_grpc::request_hash` hashes the encoded message, and a map has no stable encoding.
    #[test]
    fn no_request_with_a_request_id_holds_a_map() {
        let set = prost_types::FileDescriptorSet::decode(steward_proto::FILE_DESCRIPTOR_SET).unwrap();
        let mut messages = BTreeMap::new();
        for file in &set.file {
            for message in &file.message_type {
                collect(&format!(".{}", file.package()), message, &mut messages);
            }
        }
        let guarded: Vec<_> = messages
            .iter()
            .filter(|(_, message)| message.field.iter().any(|field| field.name() == "request_id"))
            .map(|(name, _)| name.clone())
            .collect();
        assert!(guarded.len() > 5, "only {guarded:?}");
        for name in guarded {
            assert_eq!(map_in(&name, &messages, &mut Vec::new()), None, "{name}");
        }
    }

    type Messages = BTreeMap<String, prost_types::DescriptorProto>;

    fn collect(parent: &str, message: &prost_types::DescriptorProto, messages: &mut Messages) {
        let name = format!("{parent}.{}", message.name());
        for nested in &message.nested_type {
            collect(&name, nested, messages);
        }
        messages.insert(name, message.clone());
    }

    /// The first map below a message. `Struct` is kept in order by the generated code.
    fn map_in(name: &str, messages: &Messages, seen: &mut Vec<String>) -> Option<String> {
        if name.starts_with(".google.protobuf.") || seen.iter().any(|seen| seen == name) {
            return None;
        }
        seen.push(name.to_owned());
        let message = messages.get(name)?;
        if message
            .options
            .as_ref()
            .is_some_and(prost_types::MessageOptions::map_entry)
        {
            return Some(name.to_owned());
        }
        message
            .field
            .iter()
            .find_map(|field| map_in(field.type_name.as_deref()?, messages, seen))
    }
}

//! The rules of `STYLE.md`, checked on the descriptors.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use prost_reflect::prost_types::FileDescriptorProto;
use prost_reflect::{DescriptorPool, Kind};
use steward_proto::methods::{Idempotency, METHODS};

fn pool() -> DescriptorPool {
    DescriptorPool::decode(steward_proto::FILE_DESCRIPTOR_SET).unwrap()
}

fn own_files(pool: &DescriptorPool) -> Vec<FileDescriptorProto> {
    pool.files()
        .filter(|file| file.package_name().starts_with("steward."))
        .map(|file| file.file_descriptor_proto().clone())
        .collect()
}

#[test]
fn every_element_has_a_comment() {
    let mut bare = Vec::new();
    for file in own_files(&pool()) {
        let commented: Vec<Vec<i32>> = file
            .source_code_info
            .iter()
            .flat_map(|info| &info.location)
            .filter(|location| {
                location
                    .leading_comments
                    .as_deref()
                    .is_some_and(|text| text.trim().len() > 3)
            })
            .map(|location| location.path.clone())
            .collect();
        let mut check = |path: Vec<i32>, what: String| {
            if !commented.contains(&path) {
                bare.push(format!("{}: {what}", file.name()));
            }
        };
        for (index, message) in (0i32..).zip(&file.message_type) {
            check_message(&mut check, &[4, index], message.name(), message);
        }
        for (index, definition) in (0i32..).zip(&file.enum_type) {
            check(vec![5, index], definition.name().to_owned());
            for (value, name) in (0i32..).zip(&definition.value) {
                check(vec![5, index, 2, value], name.name().to_owned());
            }
        }
        for (index, service) in (0i32..).zip(&file.service) {
            check(vec![6, index], service.name().to_owned());
            for (method, definition) in (0i32..).zip(&service.method) {
                check(
                    vec![6, index, 2, method],
                    format!("{}.{}", service.name(), definition.name()),
                );
            }
        }
    }
    assert!(bare.is_empty(), "without a comment:\n{}", bare.join("\n"));
}

fn check_message(
    check: &mut impl FnMut(Vec<i32>, String),
    path: &[i32],
    name: &str,
    message: &prost_reflect::prost_types::DescriptorProto,
) {
    let below = |tail: &[i32]| [path, tail].concat();
    check(path.to_vec(), name.to_owned());
    for (index, field) in (0i32..).zip(&message.field) {
        check(below(&[2, index]), format!("{name}.{}", field.name()));
    }
    for (index, oneof) in (0i32..).zip(&message.oneof_decl) {
        if !oneof.name().starts_with('_') {
            check(below(&[8, index]), format!("{name}.{}", oneof.name()));
        }
    }
    for (index, definition) in (0i32..).zip(&message.enum_type) {
        check(below(&[4, index]), format!("{name}.{}", definition.name()));
        for (value, item) in (0i32..).zip(&definition.value) {
            check(below(&[4, index, 2, value]), format!("{name}.{}", item.name()));
        }
    }
    for (index, nested) in (0i32..).zip(&message.nested_type) {
        check_message(check, &below(&[3, index]), &format!("{name}.{}", nested.name()), nested);
    }
}

#[test]
fn names_follow_the_package_folder_and_suffix_rules() {
    for file in own_files(&pool()) {
        let folder = file.package().replace('.', "/");
        assert!(file.name().starts_with(&folder), "{} is not in {folder}", file.name());
        assert!(
            file.package().rsplit('.').next() == Some("v1"),
            "{} has no version",
            file.package()
        );
        for service in &file.service {
            assert!(
                service.name().ends_with("Service"),
                "{} does not end in Service",
                service.name()
            );
            for method in &service.method {
                let request = format!(".{}.{}Request", file.package(), method.name());
                let response = format!(".{}.{}Response", file.package(), method.name());
                assert_eq!(method.input_type(), request);
                assert_eq!(method.output_type(), response);
            }
        }
    }
}

#[test]
fn enums_start_at_unspecified_and_carry_their_prefix() {
    for definition in pool()
        .all_enums()
        .filter(|definition| definition.full_name().starts_with("steward."))
    {
        let mut prefix = String::new();
        for (index, letter) in definition.name().char_indices() {
            if letter.is_uppercase() && index > 0 {
                prefix.push('_');
            }
            prefix.push(letter.to_ascii_uppercase());
        }
        for value in definition.values() {
            assert!(
                value.name().starts_with(&prefix),
                "{} lacks the prefix {prefix}",
                value.full_name()
            );
        }
        let zero = definition.get_value(0).unwrap();
        assert_eq!(zero.name(), format!("{prefix}_UNSPECIFIED"));
    }
}

#[test]
fn lists_are_paged_and_writes_can_be_repeated_safely() {
    for service in pool()
        .services()
        .filter(|service| service.full_name().starts_with("steward."))
    {
        for method in service.methods() {
            let path = format!("/{}/{}", service.full_name(), method.name());
            let entry = steward_proto::methods::find(&path).unwrap();
            let input = method.input();
            if let Some(size) = input.get_field_by_name("page_size") {
                assert_eq!(size.kind(), Kind::Int32, "{path}: page_size");
            }
            if input.get_field_by_name("page_token").is_some() {
                assert!(
                    method.output().get_field_by_name("next_page_token").is_some(),
                    "{path}: next_page_token"
                );
            }
            if input.get_field_by_name("request_id").is_some() && path != "/steward.access.v1.AccessService/CreateTeam"
            {
                let repeatable = entry.idempotency == Idempotency::Idempotent || method.name().starts_with("Create");
                assert!(repeatable, "{path} takes a request id but is not declared idempotent");
            }
        }
    }
}

#[test]
fn every_rpc_says_who_may_call_it() {
    assert!(METHODS.len() > 50, "the table is nearly empty");
    let undecided: Vec<_> = METHODS
        .iter()
        .filter(|method| method.min_role == 0 && method.capability.is_empty() && !method.service && !method.public)
        .map(|method| method.path)
        .collect();
    assert!(undecided.is_empty(), "denied to everyone: {undecided:?}");
    let public: Vec<_> = METHODS
        .iter()
        .filter(|method| method.public)
        .map(|method| method.path)
        .collect();
    assert!(
        public.is_empty(),
        "no RPC of ours is open without a credential, but: {public:?}"
    );
}

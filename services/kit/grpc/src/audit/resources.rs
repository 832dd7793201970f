//! Which resources a request names, read from its bytes as they travel: only fields that are known to hold names or ids,
//! and only values that look like such. So no text that anyone wrote can get into the log, whatever field it is put into.

use std::collections::HashMap;
use std::sync::LazyLock;

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FileDescriptorSet};

/// Fields with resource names: `teams/red/users/ann`.
const NAMES: [&str; 8] = [
    "name",
    "parent",
    "session",
    "store",
    "user",
    "run",
    "project",
    "current_session",
];
/// Fields with a bare id.
const IDS: [&str; 9] = [
    "team_id",
    "user_id",
    "admin_user_id",
    "session_id",
    "job_id",
    "skill",
    "run",
    "project",
    "rollback",
];
/// Most that are recorded of one request.
const MOST: usize = 8;
/// Longest name.
const LONGEST: usize = 256;
/// Longest id, and part of a name.
const LONGEST_ID: usize = 64;

/// A field that may name something.
#[derive(Debug, Clone)]
struct Field {
    number: u64,
    path: String,
    inside: Inside,
}

#[derive(Debug, Clone)]
enum Inside {
    Text { name: bool, id: bool },
    Message(Vec<Field>),
}

/// The fields of every method's request, by path.
static FIELDS: LazyLock<HashMap<String, Vec<Field>>> = LazyLock::new(|| {
    // It is what the contract's own build made; without it nothing is named, and the tests fail.
    let files = FileDescriptorSet::decode(steward_proto::FILE_DESCRIPTOR_SET).unwrap_or_default();
    let mut messages = HashMap::new();
    for file in &files.file {
        for message in &file.message_type {
            messages.insert(format!(".{}.{}", file.package(), message.name()), message);
        }
    }
    let mut fields = HashMap::new();
    for file in &files.file {
        for service in &file.service {
            for method in &service.method {
                let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                let request = messages.get(method.input_type());
                fields.insert(
                    path,
                    request.map(|request| known(request, "", &messages)).unwrap_or_default(),
                );
            }
        }
    }
    fields
});

/// The fields of a message, and of the messages directly in it.
fn known(message: &DescriptorProto, outer: &str, messages: &HashMap<String, &DescriptorProto>) -> Vec<Field> {
    let single = message.field.iter().filter(|field| field.label() != Label::Repeated);
    let fields = single.filter_map(|field| {
        let inside = match field.r#type() {
            Type::String => {
                let (name, id) = (NAMES.contains(&field.name()), IDS.contains(&field.name()));
                (name || id).then_some(Inside::Text { name, id })?
            }
            Type::Message if outer.is_empty() => {
                let below = known(messages.get(field.type_name())?, field.name(), messages);
                (!below.is_empty()).then_some(Inside::Message(below))?
            }
            _ => return None,
        };
        let path = if outer.is_empty() {
            field.name().to_owned()
        } else {
            format!("{outer}.{}", field.name())
        };
        Some(Field {
            number: u64::try_from(field.number()).ok()?,
            path,
            inside,
        })
    });
    fields.collect()
}

/// What a request to `path` names, by the beginning of its body.
pub(crate) fn named(path: &str, body: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    // A message begins with a byte that says whether it is compressed, which our servers refuse, and its length.
    if let (Some(fields), Some((0, rest))) = (FIELDS.get(path), body.split_first().map(|(first, rest)| (*first, rest)))
        && let Some((length, message)) = rest.split_first_chunk::<4>()
    {
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        read(&message[..message.len().min(length)], fields, &mut found);
    }
    found
}

/// Walks over a message as far as it is there.
fn read(mut message: &[u8], fields: &[Field], found: &mut Vec<String>) -> Option<()> {
    while !message.is_empty() && found.len() < MOST {
        let tag = varint(&mut message)?;
        let value = match tag & 7 {
            0 => {
                varint(&mut message)?;
                continue;
            }
            1 => {
                message = message.get(8..)?;
                continue;
            }
            2 => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                let value = message.get(..length)?;
                message = &message[length..];
                value
            }
            5 => {
                message = message.get(4..)?;
                continue;
            }
            _ => return None,
        };
        let Some(field) = fields.iter().find(|field| field.number == tag >> 3) else {
            continue;
        };
        match &field.inside {
            Inside::Message(below) => drop(read(value, below, found)),
            Inside::Text { name, id } => {
                let text = std::str::from_utf8(value).ok()?;
                if (*name && is_name(text)) || (*id && is_id(text)) {
                    found.push(format!("{}={text}", field.path));
                }
            }
        }
    }
    Some(())
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn is_name(text: &str) -> bool {
    text.len() <= LONGEST && text.starts_with("teams/") && text.split('/').all(is_id)
}

/// Neither a key nor a token fits: those have capitals, and are longer.
fn is_id(text: &str) -> bool {
    (1..=LONGEST_ID).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use steward_proto::{access, memory, recall, skill};

    use super::*;

    fn framed(message: &impl prost::Message) -> Vec<u8> {
        let mut body = vec![0];
        body.extend(u32::try_from(message.encoded_len()).unwrap().to_be_bytes());
        body.extend(message.encode_to_vec());
        body
    }

    #[test]
    fn names_and_ids_are_found_and_nothing_else() {
        let request = memory::v1::ApplyRequest {
            store: "teams/red/users/ann/memory/notes".to_owned(),
            reason: "teams/red/secret".to_owned(),
            request_id: "r1".to_owned(),
            ..Default::default()
        };
        let found = named("/steward.memory.v1.MemoryService/Apply", &framed(&request));
        assert_eq!(found, ["store=teams/red/users/ann/memory/notes"]);

        let request = access::v1::CreateUserRequest {
            parent: "teams/red".to_owned(),
            user_id: "bob".to_owned(),
            user: Some(access::v1::User {
                name: "teams/red/users/bob".to_owned(),
                display_name: "bob".to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        };
        let found = named("/steward.access.v1.AccessService/CreateUser", &framed(&request));
        assert_eq!(
            found,
            ["parent=teams/red", "user_id=bob", "user.name=teams/red/users/bob"]
        );
    }

    #[test]
    fn what_is_no_name_is_left_out_whatever_field_it_is_in() {
        for text in [
            "remember that the door code is 1234",
            "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl",
            "teams/red/users/sk-ABCDEF0123456789",
            "teams/red\nteams/blue",
            "teams//users",
            "",
            "teams/记忆",
            &"teams/".repeat(60),
        ] {
            let request = skill::v1::ManageSkillRequest {
                parent: text.to_owned(),
                skill: text.to_owned(),
                ..Default::default()
            };
            let found = named("/steward.skill.v1.SkillService/ManageSkill", &framed(&request));
            assert_eq!(found, Vec::<String>::new(), "{text:?}");
        }
    }

    #[test]
    fn a_body_that_is_cut_compressed_or_garbage_gives_what_can_be_read() {
        let path = "/steward.recall.v1.RecallService/Search";
        let request = recall::v1::SearchRequest {
            parent: "teams/red".to_owned(),
            current_session: "teams/red/sessions/s1".to_owned(),
            ..Default::default()
        };
        let whole = framed(&request);
        assert_eq!(named(path, &whole).len(), 2);
        for end in 0..whole.len() {
            assert!(named(path, &whole[..end]).len() < 2, "{end}");
        }
        let mut compressed = whole.clone();
        compressed[0] = 1;
        assert!(named(path, &compressed).is_empty());
        assert!(
            named(
                path,
                &[0, 0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]
            )
            .is_empty()
        );
        assert!(named("/steward.recall.v1.RecallService/Nothing", &whole).is_empty());
    }

    #[test]
    fn every_write_of_a_person_names_what_it_is_about() {
        let silent: Vec<_> = steward_proto::methods::METHODS
            .iter()
            .filter(|method| method.min_role > 0)
            .filter(|method| method.idempotency != steward_proto::methods::Idempotency::NoSideEffects)
            .filter(|method| FIELDS.get(method.path).is_none_or(Vec::is_empty))
            .map(|method| method.path)
            .collect();
        assert_eq!(silent, Vec::<&str>::new());
    }
}

//! Filling in `{{…}}`: the session, the skill's folder, and what the skill declares (`S-18`). Pure.
//!
//! One pass: what was put in is not looked at again, and what nobody knows stays as it is.

use super::Context;
use crate::header::Header;

/// `text` with its templates filled in. `place` stands for the skill's folder.
pub(super) fn fill(text: &str, header: &Header, place: &str, context: &Context) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let (before, tail) = rest.split_at(start);
        out.push_str(before);
        let inner = tail.get(2..).unwrap_or_default();
        let found = inner
            .find("}}")
            .and_then(|end| Some((end, value(inner.get(..end)?.trim(), header, place, context)?)));
        if let Some((end, value)) = found {
            out.push_str(value);
            rest = inner.get(end + 2..).unwrap_or_default();
        } else {
            out.push_str("{{");
            rest = inner;
        }
    }
    out.push_str(rest);
    out
}

fn value<'a>(key: &str, header: &'a Header, place: &'a str, context: &'a Context) -> Option<&'a str> {
    match key {
        "session_id" => Some(context.session.as_str()).filter(|session| !session.is_empty()),
        "skill_dir" => Some(place),
        key => {
            let declared = header.config.iter().find(|declared| declared.key == key)?;
            let given = context.config.get(key).map(String::as_str);
            Some(given.unwrap_or(&declared.default)).filter(|value| !value.is_empty())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::Declared;
    use proptest::prelude::*;

    fn filled(text: &str) -> String {
        let declared = |key: &str, default: &str| Declared {
            key: key.to_owned(),
            default: default.to_owned(),
            ..Declared::default()
        };
        let header = Header {
            config: vec![
                declared("mail.folder", "inbox"),
                declared("given", "x"),
                declared("none", ""),
            ],
            ..Header::default()
        };
        let context = Context {
            session: "s1".to_owned(),
            config: [
                ("given".to_owned(), "{{session_id}}".to_owned()),
                ("token".to_owned(), "t".to_owned()),
            ]
            .into(),
            ..Context::default()
        };
        fill(text, &header, "/skills/a", &context)
    }

    /// `S-18`.
    #[test]
    fn what_is_declared_is_filled_in_once_and_nothing_else() {
        assert_eq!(
            filled("{{session_id}} in {{ skill_dir }}/x, {{mail.folder}}"),
            "s1 in /skills/a/x, inbox"
        );
        assert_eq!(
            filled("{{given}}"),
            "{{session_id}}",
            "what was put in is not looked at again"
        );
        for stays in [
            "{{token}}",
            "{{none}}",
            "{{unknown}}",
            "{{",
            "{{ a",
            "}}",
            "`!rm -rf x`",
            "${HOME}",
            "{session_id}",
        ] {
            assert_eq!(filled(stays), stays);
        }
        assert_eq!(filled("{{{{session_id}}}}"), "{{s1}}");
    }

    proptest! {
        #[test]
        fn a_text_without_known_names_stays_as_it_is(text in "[a-z{} \n]{0,40}") {
            prop_assume!(!text.contains("given") && !text.contains("none"));
            prop_assert_eq!(filled(&text), text);
        }
    }
}

//! The message that a slash command becomes, and the way back to what the person said (`M-18`, `S-17`).
//!
//! A person writes `/deploy to staging`; the model gets the text of the skill and the instruction. Memory providers,
//! titles and indexes must get the instruction alone, exactly. The frame therefore says in its first line how many bytes
//! of instruction stand at its very end, and nothing that a skill's text contains can move that place.

use std::fmt::Write as _;

const HEAD: &str = "[Steward command /";
const AGAIN: &str = "\n[The user's own words follow";

/// A text that a command brings along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The skill's name.
    pub name: String,
    /// Its text, in full.
    pub text: String,
}

/// A slash command with what it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The slug behind the slash: of a skill, or of a bundle.
    pub command: String,
    /// The bundle's own instruction; empty for a skill.
    pub note: String,
    /// The skills, in order.
    pub parts: Vec<Part>,
    /// What the person wrote behind the command; empty for a bare one.
    pub instruction: String,
}

/// What a message says on behalf of the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said<'t> {
    /// An ordinary message.
    Plain(&'t str),
    /// A command's instruction.
    Instruction(&'t str),
    /// A command without a word of the person: there is nothing to remember.
    Nothing,
}

impl<'t> Said<'t> {
    /// The words, if there are any.
    pub const fn words(self) -> Option<&'t str> {
        match self {
            Self::Plain(text) | Self::Instruction(text) => Some(text),
            Self::Nothing => None,
        }
    }
}

/// The message for the model.
pub fn message(invocation: &Invocation) -> String {
    let mut body = String::new();
    if !invocation.note.is_empty() {
        let _ = write!(body, "\n\n{}", invocation.note);
    }
    for part in &invocation.parts {
        let _ = write!(body, "\n\n--- skill {} ---\n{}", part.name, part.text);
    }
    let _ = write!(body, "\n{AGAIN}: {} bytes]\n", invocation.instruction.len());
    // Both numbers tell a message that was cut or typed from one of ours.
    format!(
        "{HEAD}{}: {} bytes, of which the last {} are the user's own words]{body}{}",
        invocation.command,
        body.len() + invocation.instruction.len(),
        invocation.instruction.len(),
        invocation.instruction
    )
}

/// What the person said: the exact inverse of [`message`], and the whole text of any other message.
pub fn said(message: &str) -> Said<'_> {
    match instruction(message) {
        None => Said::Plain(message),
        Some("") => Said::Nothing,
        Some(words) => Said::Instruction(words),
    }
}

/// What the person said where a command's message is followed by more, such as attachments and recalled memory; `None`
/// where `sent` does not begin with one.
pub fn said_first(sent: &str) -> Option<Said<'_>> {
    match framed(sent)? {
        ("", _) => Some(Said::Nothing),
        (words, _) => Some(Said::Instruction(words)),
    }
}

fn instruction(message: &str) -> Option<&str> {
    framed(message).and_then(|(words, rest)| rest.is_empty().then_some(words))
}

/// The person's words in a message at the beginning of `text`, and what comes after it.
fn framed(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix(HEAD)?;
    let (head, body) = rest.split_once(']')?;
    let (_, numbers) = head.split_once(": ")?;
    let (all, own) = numbers.split_once(" bytes, of which the last ")?;
    let own: usize = own.strip_suffix(" are the user's own words")?.parse().ok()?;
    let (body, rest) = body.split_at_checked(all.parse().ok()?)?;
    let (frame, words) = body.split_at_checked(body.len().checked_sub(own)?)?;
    frame
        .ends_with(&format!("{AGAIN}: {own} bytes]\n"))
        .then_some((words, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn deploy(instruction: &str) -> Invocation {
        Invocation {
            command: "deploy".to_owned(),
            note: String::new(),
            parts: vec![Part {
                name: "deploy".to_owned(),
                text: "# Deploy\n\nAsk first.".to_owned(),
            }],
            instruction: instruction.to_owned(),
        }
    }

    /// `M-18`.
    #[test]
    fn a_command_is_reduced_to_the_persons_own_words_and_a_bare_one_to_nothing() {
        assert_eq!(
            said(&message(&deploy("to staging, 现在"))),
            Said::Instruction("to staging, 现在")
        );
        assert_eq!(said(&message(&deploy(""))), Said::Nothing);
        assert_eq!(said("/deploy to staging"), Said::Plain("/deploy to staging"));
        assert_eq!(said(""), Said::Plain(""));
    }

    #[test]
    fn a_message_that_only_looks_like_one_is_plain() {
        let real = message(&deploy("to staging"));
        for text in [
            real[..real.len() - 1].to_owned(),
            format!("{real} more"),
            format!(" {real}"),
            real.replace("own words", "words"),
        ] {
            assert_eq!(said(&text), Said::Plain(&text));
        }
    }

    proptest! {
        #[test]
        fn the_way_there_and_back_is_exact(
            command in "[a-z0-9-]{1,20}",
            note in "[\\PC\\n]{0,40}",
            texts in prop::collection::vec("(?s).{0,60}", 0..3),
            instruction in "(?s).{1,60}",
            forge in any::<bool>(),
        ) {
            let instruction = if forge { message(&deploy(&instruction)) } else { instruction };
            let parts = texts.into_iter().map(|text| Part { name: "x".to_owned(), text }).collect();
            let built = message(&Invocation { command, note, parts, instruction: instruction.clone() });
            prop_assert_eq!(said(&built), Said::Instruction(&instruction));
            let followed = format!("{built}\n\n[Attachment x begins]");
            prop_assert_eq!(said_first(&followed), Some(Said::Instruction(&instruction)));
            prop_assert_eq!(said(&followed), Said::Plain(&followed));
        }
    }
}

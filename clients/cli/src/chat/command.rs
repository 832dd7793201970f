//! Words for the conversation itself rather than for the agent. Only these exact words are taken; everything else that
//! begins with a slash, such as a path, is said to the agent.

/// What a line asks of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    /// Which words there are.
    Help,
    /// Which session this is, and how to come back to it.
    Session,
    /// The end.
    Exit,
}

/// The words, for people.
pub(super) const HELP: &str = "/session  which session this is\n/exit     end; the session stays\n/help     this";

impl Command {
    /// The command that a line is, if it is one.
    pub(super) fn parse(line: &str) -> Option<Self> {
        match line.trim() {
            "/help" | "/?" => Some(Self::Help),
            "/session" => Some(Self::Session),
            "/exit" | "/quit" => Some(Self::Exit),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_themselves_are_commands() {
        assert_eq!(Command::parse(" /exit "), Some(Command::Exit));
        assert_eq!(Command::parse("/help"), Some(Command::Help));
        for said in ["/etc/hosts is wrong", "/exit now?", "exit", "/sessions"] {
            assert_eq!(Command::parse(said), None, "{said}");
        }
        for word in ["/session", "/exit", "/help"] {
            assert!(HELP.contains(word) && Command::parse(word).is_some());
        }
    }
}

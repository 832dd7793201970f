//! Words for the conversation itself rather than for the agent. Only these exact words are taken; everything else that
//! begins with a slash, such as a path or a skill, is said to the agent.

/// What a line asks of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// Which words there are.
    Help,
    /// Which session this is, and how to come back to it.
    Session,
    /// Which models there are.
    Models,
    /// Another model from the next turn on.
    Model(String),
    /// Another title.
    Title(String),
    /// The end.
    Exit,
}

/// The words, for people.
pub(super) const HELP: &str = "\
/model NAME   go on with another model
/models       which models there are
/title TEXT   give the session a title
/session      which session this is
/exit         end; the session stays
/help         this";

impl Command {
    /// The command that a line is, if it is one.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let line = line.trim();
        match line {
            "/help" | "/?" => return Some(Self::Help),
            "/session" => return Some(Self::Session),
            "/models" | "/model" => return Some(Self::Models),
            "/exit" | "/quit" => return Some(Self::Exit),
            _ => {}
        }
        let (word, rest) = line.split_once(char::is_whitespace)?;
        let rest = rest.trim();
        match word {
            // The name of a model is one word; more of them are a sentence.
            "/model" if !rest.contains(char::is_whitespace) => Some(Self::Model(rest.to_owned())),
            "/title" => Some(Self::Title(rest.to_owned())),
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
        for said in [
            "/etc/hosts is wrong",
            "/exit now?",
            "exit",
            "/sessions",
            "/title",
            "/modelling",
        ] {
            assert_eq!(Command::parse(said), None, "{said}");
        }
        for word in ["/session", "/exit", "/help", "/models"] {
            assert!(HELP.contains(word) && Command::parse(word).is_some());
        }
    }

    #[test]
    fn a_model_is_one_word_and_a_title_is_the_rest_of_the_line() {
        assert_eq!(
            Command::parse("/model  a/b:c "),
            Some(Command::Model("a/b:c".to_owned()))
        );
        assert_eq!(Command::parse("/model"), Some(Command::Models));
        assert_eq!(Command::parse("/model the harbour in clay"), None);
        assert_eq!(
            Command::parse("/title the harbour, again"),
            Some(Command::Title("the harbour, again".to_owned()))
        );
    }
}

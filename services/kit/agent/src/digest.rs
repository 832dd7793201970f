//! A long conversation made short for another model: the last messages as they are, the older ones folded into one
//! (`R-3`).

use steward_model::Message;

/// Messages that are kept as they are.
pub const KEPT_MESSAGES: usize = 24;
const USER_CHARACTERS: usize = 300;
const ASSISTANT_CHARACTERS: usize = 200;

/// Folds all but the last `keep` messages into one user message. The kept part never begins with a tool result, so that
/// no call is parted from its results.
pub fn fold(messages: &[Message], keep: usize) -> Vec<Message> {
    let mut start = messages.len().saturating_sub(keep);
    while start > 0 && matches!(messages[start], Message::Tool { .. }) {
        start -= 1;
    }
    if start == 0 {
        return messages.to_vec();
    }
    let lines: Vec<String> = messages[..start].iter().filter_map(line).collect();
    let folded = format!("Earlier in this conversation, shortened:\n{}", lines.join("\n"));
    let mut digest = vec![Message::User { content: folded }];
    digest.extend_from_slice(&messages[start..]);
    digest
}

fn line(message: &Message) -> Option<String> {
    match message {
        Message::User { content } => Some(format!("- user: {}", cut(content, USER_CHARACTERS))),
        Message::Assistant { content, tool_calls } => {
            let mut line = format!("- assistant: {}", cut(content, ASSISTANT_CHARACTERS));
            if !tool_calls.is_empty() {
                let names: Vec<&str> = tool_calls.iter().map(|call| call.name.as_str()).collect();
                line = format!("{line} [called {}]", names.join(", "));
            }
            Some(line)
        }
        // The names stand with the calls; the results of old calls are left out.
        Message::Tool { .. } => None,
    }
}

/// At most `limit` characters on one line.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(limit) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use steward_model::ToolCall;

    use super::*;
    use crate::kernel::pairing;

    fn conversation(turns: usize) -> Vec<Message> {
        let mut messages = Vec::new();
        for turn in 0..turns {
            let id = format!("c{turn}");
            let call = ToolCall {
                id: id.clone(),
                name: "shell".to_owned(),
                arguments: "{}".to_owned(),
            };
            messages.push(Message::user(format!("question {turn} {}", "x".repeat(400))));
            messages.push(Message::Assistant {
                content: "y".repeat(300),
                tool_calls: vec![call],
            });
            messages.push(Message::Tool {
                call_id: id,
                name: "shell".to_owned(),
                content: "secret output".to_owned(),
            });
            messages.push(Message::assistant(format!("answer {turn}")));
        }
        messages
    }

    #[test]
    fn a_short_conversation_stays_as_it_is() {
        let messages = conversation(6);
        assert_eq!(fold(&messages, KEPT_MESSAGES), messages);
    }

    #[test]
    fn every_cut_keeps_calls_with_their_results() {
        let messages = conversation(8);
        for keep in 1..messages.len() {
            let digest = fold(&messages, keep);
            assert_eq!(pairing(&digest), Ok(()), "{keep}");
            assert_eq!(digest.last(), messages.last());
        }
    }

    #[test]
    fn the_folded_part_is_short_and_names_tools_only() {
        let digest = fold(&conversation(10), 4);
        let folded = digest[0].content();
        assert!(folded.contains("[called shell]") && !folded.contains("secret output"));
        let longest = folded.lines().map(|line| line.chars().count()).max();
        assert_eq!(longest, Some("- user: ".len() + USER_CHARACTERS + 3));
    }
}

//! Reads a history from a file of JSON lines. The README describes the format.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use anyhow::{Context as _, bail};
use serde::Deserialize;

use super::{Call, Class, Corpus, Message, Query, Role, Session, Source};

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Session {
        id: String,
        source: String,
        parent: Option<String>,
    },
    Message {
        session_id: String,
        role: String,
        content: Option<String>,
        tool_name: Option<String>,
        tool_calls: Option<Vec<DumpedCall>>,
    },
}

#[derive(Debug, Deserialize)]
struct DumpedCall {
    id: String,
    function: DumpedFunction,
}

#[derive(Debug, Deserialize)]
struct DumpedFunction {
    name: String,
    arguments: String,
}

#[derive(Debug, Deserialize)]
struct DumpedQuery {
    class: String,
    query: String,
}

/// The history in `file`.
pub(super) fn read(file: &Path) -> anyhow::Result<Corpus> {
    let mut sessions: Vec<Session> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for_each_line(file, |line| {
        match line {
            Line::Session { id, source, parent } => {
                let parent = parent.and_then(|parent| places.get(&parent).copied());
                places.insert(id, sessions.len());
                sessions.push(Session {
                    source: source_of(&source),
                    parent,
                    messages: Vec::new(),
                });
            }
            Line::Message {
                session_id,
                role,
                content,
                tool_name,
                tool_calls,
            } => {
                let place = places.get(&session_id);
                let session = place.and_then(|place| sessions.get_mut(*place));
                let session = session.with_context(|| format!("no session {session_id} before its message"))?;
                session.messages.push(Message {
                    role: role_of(&role)?,
                    text: content.unwrap_or_default(),
                    tool_name,
                    calls: tool_calls.unwrap_or_default().into_iter().map(call).collect(),
                });
            }
        }
        Ok(())
    })?;
    Ok(Corpus { sessions })
}

/// The queries in `file`.
pub(super) fn read_queries(file: &Path) -> anyhow::Result<Vec<Query>> {
    let mut queries = Vec::new();
    for_each_line(file, |line: DumpedQuery| {
        let class = Class::ALL.into_iter().find(|class| class.name() == line.class);
        let class = class.with_context(|| format!("unknown class {}", line.class))?;
        queries.push(Query {
            class,
            text: line.query,
        });
        Ok(())
    })?;
    Ok(queries)
}

fn for_each_line<T: for<'de> Deserialize<'de>>(
    file: &Path,
    mut take: impl FnMut(T) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let open = File::open(file).with_context(|| format!("open {}", file.display()))?;
    for (number, line) in BufReader::new(open).lines().enumerate() {
        let at = || format!("line {} of {}", number + 1, file.display());
        let line = line.with_context(at)?;
        if !line.trim().is_empty() {
            take(serde_json::from_str(&line).with_context(at)?).with_context(at)?;
        }
    }
    Ok(())
}

fn source_of(name: &str) -> Source {
    match name {
        "cron" | "schedule" => Source::Schedule,
        "subagent" | "delegate" => Source::Delegate,
        "import" => Source::Import,
        _ => Source::Chat,
    }
}

fn role_of(name: &str) -> anyhow::Result<Role> {
    Ok(match name {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        other => bail!("unknown role {other}"),
    })
}

fn call(call: DumpedCall) -> Call {
    Call {
        id: call.id,
        name: call.function.name,
        arguments: call.function.arguments,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_is_read_with_its_lineage_calls_and_queries() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.jsonl");
        let lines = concat!(
            r#"{"type":"session","id":"a","source":"telegram","parent":null,"started_at":1.5}"#,
            "\n",
            r#"{"type":"message","session_id":"a","seq":0,"role":"assistant","content":"看看","tool_name":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"run","arguments":"{}"}}],"ts":2.5}"#,
            "\n",
            r#"{"type":"session","id":"b","source":"subagent","parent":"a","started_at":3}"#,
            "\n",
            r#"{"type":"message","session_id":"b","seq":0,"role":"tool","content":"out","tool_name":"run","tool_calls":null,"ts":4}"#,
            "\n",
        );
        std::fs::write(&file, lines).unwrap();
        let corpus = read(&file).unwrap();
        assert_eq!(corpus.roots(), [0, 0]);
        assert_eq!(corpus.sessions[0].messages[0].searchable(), "看看\nrun {}");
        assert_eq!(corpus.sessions[1].source, Source::Delegate);
        assert_eq!(corpus.sessions[1].messages[0].tool_name.as_deref(), Some("run"));

        let queries = folder.path().join("queries.jsonl");
        std::fs::write(&queries, r#"{"class":"cjk2","query":"看看","truth_sessions":1}"#).unwrap();
        let read = read_queries(&queries).unwrap();
        assert_eq!((read[0].class, read[0].text.as_str()), (Class::Cjk2, "看看"));
        std::fs::write(&queries, r#"{"class":"en9","query":"x"}"#).unwrap();
        let error = format!("{:#}", read_queries(&queries).unwrap_err());
        assert!(error.contains("line 1 of") && error.contains("en9"), "{error}");
    }
}

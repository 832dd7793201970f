//! A Mem0 server as a provider, through the REST API that its open-source server documents: `POST /memories` takes in a
//! conversation, `POST /search` finds what has to do with a text, `DELETE /memories` erases all of a person. Chosen since it is the most widely deployed memory server
//! that people run themselves and that needs nothing of ours on its side.
//!
//! A person is known there as `{team}/{user}`, so that people of two teams never meet. The session is metadata: what was
//! said in one session is found in the next.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use steward_base::names::{TeamId, UserId};
use steward_memory_core::provider::{Erasing, Event, Hello, Provider, ProviderError, Scope, ToolCall, ToolReply, Turn};

/// The tool that is offered: what the block before a message holds is what the message itself recalls.
const TOOL: &str = "mem0_search";
/// Largest answer, in bytes.
const MOST_BYTES: usize = 1_048_576;
/// Longest text that is sent to be remembered, in characters.
const MOST_TEXT: usize = 20_000;
/// How long one call may take. Callers set shorter limits of their own.
const CALL_TIME: Duration = Duration::from_secs(20);

/// A Mem0 server.
#[derive(Debug, Clone)]
pub(crate) struct Mem0Provider {
    client: Client,
    memories: Url,
    search: Url,
    key: Option<steward_runtime::Secret<String>>,
}

#[derive(Debug, Deserialize)]
struct Found {
    memory: String,
}

/// Newer servers answer with an object, older ones with a bare list.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Results {
    Object { results: Vec<Found> },
    List(Vec<Found>),
}

impl Mem0Provider {
    /// At `http(s)://host[:port][/path]`, with an API key if `key` is not empty.
    pub(crate) fn connect(url: &str, key: &str) -> Result<Self, String> {
        let mut base = url.trim_end_matches('/').to_owned();
        base.push('/');
        let base = Url::parse(&base).map_err(|error| error.to_string())?;
        let client = Client::builder()
            .timeout(CALL_TIME)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| error.to_string())?;
        let at = |path| base.join(path).map_err(|error| error.to_string());
        Ok(Self {
            client,
            memories: at("memories")?,
            search: at("search")?,
            key: (!key.is_empty()).then(|| steward_runtime::Secret::new(key.to_owned())),
        })
    }

    async fn post(&self, url: &Url, body: &Value) -> Result<Vec<u8>, ProviderError> {
        let answer = self.send(self.client.post(url.clone()).json(body)).await?;
        if !answer.status().is_success() {
            return Err(ProviderError(format!("answered {}", answer.status())));
        }
        read(answer).await
    }

    async fn send(&self, mut request: RequestBuilder) -> Result<Response, ProviderError> {
        if let Some(key) = &self.key {
            request = request.header("X-API-Key", key.reveal());
        }
        // Neither the address with its path nor what was sent belongs in an error.
        let sent = request.send().await;
        sent.map_err(|error| ProviderError(error.without_url().to_string()))
    }

    async fn found(&self, scope: &Scope, query: &str, limit: usize) -> Result<Vec<String>, ProviderError> {
        let body = json!({ "query": shortened(query), "user_id": person(&scope.team, &scope.user) });
        let bytes = self.post(&self.search, &body).await?;
        let results: Results = serde_json::from_slice(&bytes)
            .map_err(|_| ProviderError("answered something else than results".to_owned()))?;
        let (Results::Object { results } | Results::List(results)) = results;
        Ok(results.into_iter().take(limit).map(|found| found.memory).collect())
    }
}

async fn read(mut answer: Response) -> Result<Vec<u8>, ProviderError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer
        .chunk()
        .await
        .map_err(|error| ProviderError(error.without_url().to_string()))?
    {
        if bytes.len() + chunk.len() > MOST_BYTES {
            return Err(ProviderError("the answer is too large".to_owned()));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn person(team: &TeamId, user: &UserId) -> String {
    format!("{team}/{user}")
}

fn shortened(text: &str) -> String {
    text.chars().take(MOST_TEXT).collect()
}

#[async_trait]
impl Provider for Mem0Provider {
    async fn initialize(&self, _scope: &Scope) -> Result<Hello, ProviderError> {
        let tool = json!({
            "name": TOOL,
            "description": "Searches what was remembered of earlier conversations with this person.",
            "parameters": {
                "type": "object",
                "properties": { "query": { "type": "string", "description": "What to look for." } },
                "required": ["query"],
            },
        });
        Ok(Hello {
            block: String::new(),
            tools: vec![tool.to_string()],
        })
    }

    async fn prefetch(&self, scope: &Scope, query: &str, limit: usize) -> Result<Vec<String>, ProviderError> {
        self.found(scope, query, limit).await
    }

    async fn sync_turn(&self, scope: &Scope, turn: &Turn) -> Result<(), ProviderError> {
        let body = json!({
            "messages": [
                { "role": "user", "content": shortened(&turn.user) },
                { "role": "assistant", "content": shortened(&turn.assistant) },
            ],
            "user_id": person(&scope.team, &scope.user),
            "metadata": { "session": scope.session.to_string(), "turn": turn.id },
        });
        self.post(&self.memories, &body).await.map(drop)
    }

    async fn call_tool(&self, scope: &Scope, call: &ToolCall) -> Result<ToolReply, ProviderError> {
        let arguments: Value = serde_json::from_str(&call.arguments_json).unwrap_or_default();
        let query = arguments
            .get("query")
            .and_then(Value::as_str)
            .map(str::trim)
            .filter(|query| !query.is_empty());
        let (TOOL, Some(query)) = (call.tool.as_str(), query) else {
            return Ok(ToolReply {
                content: format!("`{TOOL}` needs `query`, a text."),
                is_error: true,
            });
        };
        let found = self.found(scope, query, 10).await?;
        let lines: Vec<String> = found.iter().map(|one| format!("- {one}")).collect();
        Ok(ToolReply {
            content: if lines.is_empty() {
                "Nothing was found.".to_owned()
            } else {
                lines.join("\n")
            },
            is_error: false,
        })
    }

    /// The server learns from conversations; events say nothing more to it.
    async fn observe(&self, _scope: &Scope, _event: &Event, _id: &str) -> Result<String, ProviderError> {
        Ok(String::new())
    }

    /// A server that does not know the call says so with its status.
    async fn erase_person(&self, team: &TeamId, user: &UserId) -> Result<Erasing, ProviderError> {
        let mut url = self.memories.clone();
        url.query_pairs_mut().append_pair("user_id", &person(team, user));
        let answer = self.send(self.client.delete(url)).await?;
        match answer.status() {
            status if status.is_success() => Ok(Erasing::Erased),
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => Ok(Erasing::Unsupported),
            status => Err(ProviderError(format!("answered {status}"))),
        }
    }

    async fn shutdown(&self) -> Result<(), ProviderError> {
        Ok(())
    }
}

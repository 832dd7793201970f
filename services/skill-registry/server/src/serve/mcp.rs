//! The Model Context Protocol over HTTP, as far as giving out skills takes: `initialize`, `ping`, the skills extension
//! (`io.modelcontextprotocol/skills`: `skills/list`, `skills/get`) and resources for hosts without it. Each question is
//! answered by itself; there are no sessions, no streams and nothing that a client could change.

use std::fmt::Write as _;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use steward_base::hash::sha256_hex;
use steward_skill_hub::archive::{Limits, Selection, unpack};
use steward_skill_hub::publish::Publication;
use steward_skill_scanner::Tree;

use super::{Refused, Shelf};

/// Versions of the protocol that are spoken, newest first.
const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
const EXTENSION: &str = "io.modelcontextprotocol/skills";
/// Skills of one page.
const PAGE: usize = 50;

const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
const NO_METHOD: i32 = -32_601;
const INVALID_PARAMS: i32 = -32_602;
const INTERNAL: i32 = -32_603;
/// What hosts without the extension expect for a resource that is not there.
const NO_RESOURCE: i32 = -32_002;

#[derive(Debug, Deserialize)]
struct Question {
    jsonrpc: String,
    /// None for a notification, which has no answer.
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
}

#[derive(Debug, PartialEq)]
struct Fault {
    code: i32,
    message: String,
}

fn fault(code: i32, message: impl Into<String>) -> Fault {
    Fault {
        code,
        message: message.into(),
    }
}

pub(super) async fn answer(
    State(shelf): State<Shelf>,
    Path(team): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    // A page of another site must not speak for whoever looks at it.
    if !is_own_origin(&headers) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let served = match shelf.served(&team, &headers).await {
        Ok(served) => served,
        Err(refused) => return refused.answer(),
    };
    let version = headers
        .get("mcp-protocol-version")
        .map(|version| version.to_str().unwrap_or_default());
    if version.is_some_and(|version| !VERSIONS.contains(&version)) {
        let problem = fault(INVALID_REQUEST, format!("this server speaks {}", VERSIONS.join(", ")));
        return (StatusCode::BAD_REQUEST, wrapped(&Value::Null, Err(problem))).into_response();
    }
    let question: Question = match serde_json::from_slice(&body) {
        Ok(question) => question,
        Err(error) => {
            let code = if error.is_data() { INVALID_REQUEST } else { PARSE_ERROR };
            let problem = fault(code, "not one JSON-RPC message");
            return (StatusCode::BAD_REQUEST, wrapped(&Value::Null, Err(problem))).into_response();
        }
    };
    let Some(id) = question.id.filter(|id| !id.is_null()) else {
        return StatusCode::ACCEPTED.into_response();
    };
    // What answers a question of ours, which there are none of.
    let Some(method) = question.method else {
        return StatusCode::ACCEPTED.into_response();
    };
    if question.jsonrpc != "2.0" {
        return wrapped(&id, Err(fault(INVALID_REQUEST, "jsonrpc must be 2.0"))).into_response();
    }
    let desk = Desk {
        shelf: &shelf,
        team: &team,
        served: &served,
    };
    wrapped(&id, desk.result(&method, &question.params).await).into_response()
}

/// Whether no browser asks, or one that shows a page from here.
fn is_own_origin(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let origin = origin.to_str().unwrap_or_default();
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let of_origin = origin.split_once("://").map(|(_, host)| host);
    of_origin.is_some() && of_origin == host
}

fn wrapped(id: &Value, result: Result<Value, Fault>) -> axum::Json<Value> {
    axum::Json(match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(fault) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": fault.code, "message": fault.message } })
        }
    })
}

/// What one team gives out, at the moment of a question.
struct Desk<'a> {
    shelf: &'a Shelf,
    team: &'a str,
    served: &'a [Publication],
}

impl Desk<'_> {
    async fn result(&self, method: &str, params: &Value) -> Result<Value, Fault> {
        match method {
            "initialize" => Ok(initialized(params)),
            "ping" => Ok(json!({})),
            "skills/list" => {
                let (page, next) = self.page(params)?;
                let mut skills = Vec::new();
                for publication in page {
                    skills.push(self.skill(publication).await?);
                }
                Ok(paged("skills", &skills, next))
            }
            "skills/get" => {
                let uri = uri(params)?;
                let found = self.served.iter().find(|publication| skill_uri(publication) == uri);
                let publication = found.ok_or_else(|| fault(INVALID_PARAMS, "no such skill"))?;
                Ok(json!({ "skill": self.skill(publication).await? }))
            }
            "resources/list" => {
                let (page, next) = self.page(params)?;
                let resources = page.iter().map(|publication| {
                    json!({
                        "uri": skill_uri(publication),
                        "name": publication.name,
                        "description": publication.description,
                        "mimeType": "text/markdown",
                    })
                });
                Ok(paged("resources", &resources.collect::<Vec<_>>(), next))
            }
            "resources/templates/list" => Ok(json!({ "resourceTemplates": [] })),
            "resources/read" => self.read(uri(params)?).await,
            _ => Err(fault(NO_METHOD, format!("no method {method:?}"))),
        }
    }

    /// The skills after the cursor, which is a name, and the cursor of the next page.
    fn page(&self, params: &Value) -> Result<(&[Publication], Option<&str>), Fault> {
        let cursor = match params.get("cursor") {
            None | Some(Value::Null) => "",
            Some(Value::String(cursor)) => cursor,
            Some(_) => return Err(fault(INVALID_PARAMS, "cursor must be a text")),
        };
        let start = self
            .served
            .partition_point(|publication| publication.name.as_str() <= cursor);
        let rest = self.served.get(start..).unwrap_or_default();
        let page = rest.get(..PAGE).unwrap_or(rest);
        let next = page.last().filter(|_| page.len() < rest.len());
        Ok((page, next.map(|last| last.name.as_str())))
    }

    async fn tree(&self, publication: &Publication) -> Result<Tree, Fault> {
        let unreadable = || fault(INTERNAL, "the skill cannot be read now");
        let archive = self.shelf.hubs.of(self.team).archive(self.team, publication).await;
        let archive = archive.map_err(|error| {
            Refused::failed(error);
            unreadable()
        })?;
        // Packed here, from a tree that passed the same limits.
        let archive = archive.ok_or_else(unreadable)?;
        unpack(&archive, Selection::default(), &Limits::default(), &|| true).map_err(|_| unreadable())
    }

    /// The skill with the digests of all its files.
    async fn skill(&self, publication: &Publication) -> Result<Value, Fault> {
        let tree = self.tree(publication).await?;
        let resources = tree.iter().map(|(path, file)| {
            json!({ "uri": file_uri(publication, path), "digest": format!("sha256:{}", sha256_hex(&file.bytes)) })
        });
        Ok(json!({
            "uri": skill_uri(publication),
            "frontmatter": front_matter(publication),
            "resources": resources.collect::<Vec<_>>(),
        }))
    }

    async fn read(&self, uri: &str) -> Result<Value, Fault> {
        let missing = || fault(NO_RESOURCE, "no such resource");
        let rest = uri.strip_prefix("skill://").ok_or_else(missing)?;
        let (name, _) = rest.split_once('/').ok_or_else(missing)?;
        let mut named = self.served.iter().filter(|publication| publication.name == name);
        let publication = named.next().ok_or_else(missing)?;
        let tree = self.tree(publication).await?;
        let mut files = tree.iter();
        let (path, file) = files
            .find(|(path, _)| file_uri(publication, path) == uri)
            .ok_or_else(missing)?;
        let content = match std::str::from_utf8(&file.bytes) {
            Ok(text) => json!({ "uri": uri, "mimeType": kind(path), "text": text }),
            Err(_) => {
                json!({ "uri": uri, "mimeType": "application/octet-stream", "blob": STANDARD.encode(&*file.bytes) })
            }
        };
        Ok(json!({ "contents": [content] }))
    }
}

fn initialized(params: &Value) -> Value {
    let asked = params
        .get("protocolVersion")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let version = VERSIONS
        .iter()
        .find(|version| **version == asked)
        .unwrap_or(&VERSIONS[0]);
    json!({
        "protocolVersion": version,
        "capabilities": { "resources": {}, "extensions": { EXTENSION: {} } },
        "serverInfo": { "name": "steward", "version": env!("CARGO_PKG_VERSION") },
        "instructions": "Skills that a team publishes. Hold each file against its digest, and let a person approve a skill \
                         before it is used.",
    })
}

fn uri(params: &Value) -> Result<&str, Fault> {
    let uri = params.get("uri").and_then(Value::as_str);
    uri.ok_or_else(|| fault(INVALID_PARAMS, "uri must be a text"))
}

fn paged(field: &str, rows: &[Value], next: Option<&str>) -> Value {
    let mut result = json!({ field: rows });
    if let (Some(next), Some(result)) = (next, result.as_object_mut()) {
        result.insert("nextCursor".to_owned(), next.into());
    }
    result
}

fn skill_uri(publication: &Publication) -> String {
    file_uri(publication, "SKILL.md")
}

/// Names of skills are plain; paths of files may have any letters.
fn file_uri(publication: &Publication, path: &str) -> String {
    let mut uri = format!("skill://{}", publication.name);
    for part in path.split('/') {
        uri.push('/');
        for byte in part.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                uri.push(char::from(byte));
            } else {
                // Writing to a text does not fail.
                _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

/// The front matter as it stands in the file, as JSON; name and description where it has no such form.
fn front_matter(publication: &Publication) -> Value {
    let read: Option<Value> = serde_saphyr::from_str(&publication.front_matter).ok();
    read.filter(Value::is_object)
        .unwrap_or_else(|| json!({ "name": publication.name, "description": publication.description }))
}

fn kind(path: &str) -> &'static str {
    let extension = path
        .rsplit_once('.')
        .map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("md" | "markdown") => "text/markdown",
        Some("json") => "application/json",
        _ => "text/plain",
    }
}

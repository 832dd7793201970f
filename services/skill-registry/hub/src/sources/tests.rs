//! Each source against a local server that answers in its recorded shapes. No live host is asked.

mod directories;
mod repositories;
mod sites;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::{StatusCode, Uri, header};
use axum::response::IntoResponse as _;
use serde_json::{Value, json};
use sha1::{Digest as _, Sha1};
use steward_fetch::{Cached, Guarded, Settings as FetchSettings, SystemResolver};
use steward_testkit::MockClock;

use super::*;
use crate::source::SourceError;

pub(super) const SKILL: &str = "---\nname: tidy\ndescription: Tidies folders.\n---\n# Tidy\n\nSee `references/a.md`.\n";

type Pages = Arc<Mutex<BTreeMap<String, (u16, &'static str, Vec<u8>)>>>;

/// A server that says what it was told to, by path and query.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub(super) base: String,
    pages: Pages,
}

impl Server {
    pub(super) async fn start() -> Self {
        let pages: Pages = Arc::default();
        let served = Arc::clone(&pages);
        let answer = move |uri: Uri| {
            let key = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
            let pages = served.lock().unwrap();
            let page = pages.get(&key).or_else(|| pages.get(uri.path())).cloned();
            async move {
                match page {
                    Some((status, kind, body)) => (
                        StatusCode::from_u16(status).unwrap(),
                        [(header::CONTENT_TYPE, kind)],
                        Bytes::from(body),
                    )
                        .into_response(),
                    None => StatusCode::NOT_FOUND.into_response(),
                }
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let router = Router::new().fallback(answer);
        #[expect(clippy::disallowed_methods, reason = "a test's own server")]
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { base, pages }
    }

    pub(super) fn page(&self, path: &str, status: u16, kind: &'static str, body: impl Into<Vec<u8>>) {
        self.pages
            .lock()
            .unwrap()
            .insert(path.to_owned(), (status, kind, body.into()));
    }

    pub(super) fn json(&self, path: &str, value: &Value) {
        self.page(path, 200, "application/json", value.to_string());
    }

    pub(super) fn gone(&self, path: &str) {
        self.pages.lock().unwrap().remove(path);
    }

    pub(super) fn settings(&self) -> Settings {
        let base = self.base.clone();
        Settings {
            disabled: Vec::new(),
            index: format!("{base}/index.json"),
            github_api: format!("{base}/gh"),
            github_host: "github.com".to_owned(),
            repositories: vec!["acme/skills".to_owned()],
            marketplaces: vec!["acme/skills".to_owned()],
            skills_sh: base.clone(),
            skills_sh_audit: base.clone(),
            clawhub: base.clone(),
            lobehub: base.clone(),
            browse_sh: base,
        }
    }

    /// All sources, which may ask this server and nobody else.
    pub(super) fn sources(&self) -> Vec<Arc<dyn Source>> {
        steward_runtime::tls::install_provider();
        let clock: Arc<dyn Clock> = Arc::new(MockClock::default());
        let settings = FetchSettings {
            permitted_origins: [self.base.clone()].into_iter().collect(),
            requests_per_minute: 10_000,
            burst: 10_000,
            ..FetchSettings::default()
        };
        let guarded =
            Guarded::new(settings, Vec::new(), Arc::clone(&clock), Arc::new(SystemResolver)).expect("a fetcher");
        let fetch: Arc<dyn Fetch> = Arc::new(Cached::new(guarded, 1 << 20));
        let trust: TrustList = ["acme/skills"].into_iter().collect();
        all(&self.settings(), Vec::new(), &trust, &fetch, &clock)
    }

    pub(super) fn source(&self, name: &str) -> Arc<dyn Source> {
        let found = self.sources().into_iter().find(|source| source.name() == name);
        found.expect("an enabled source")
    }
}

/// Resolves and fetches in one go.
pub(super) async fn bring(
    source: &dyn Source,
    reference: &str,
) -> Result<(crate::source::Resolved, Tree), SourceError> {
    let resolved = source.resolve(reference).await?;
    let tree = source.fetch(&resolved).await?;
    Ok((resolved, tree))
}

pub(super) fn paths(tree: &Tree) -> Vec<&str> {
    tree.iter().map(|(path, _)| path).collect()
}

pub(super) fn zipped(files: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in files {
        writer
            .start_file(*name, zip::write::SimpleFileOptions::default())
            .expect("started");
        writer.write_all(content.as_bytes()).expect("written");
    }
    writer.finish().expect("finished").into_inner()
}

pub(super) fn tarred(files: &[(&str, &str)]) -> Vec<u8> {
    let encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let mut builder = tar::Builder::new(encoder);
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_entry_type(tar::EntryType::Regular);
        builder
            .append_data(&mut header, name, content.as_bytes())
            .expect("appended");
    }
    builder
        .into_inner()
        .and_then(flate2::write::GzEncoder::finish)
        .expect("finished")
}

pub(super) fn blob(path: &str, content: &str) -> Value {
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {}\0{content}", content.len()));
    json!({"path": path, "mode": "100644", "type": "blob", "sha": hex::encode(hasher.finalize()), "size": content.len()})
}

#[tokio::test]
async fn h_1_the_sources_stand_in_the_order_of_their_priority_and_can_be_switched_off() {
    let server = Server::start().await;
    let names: Vec<&str> = server.sources().iter().map(|source| source.name()).collect();
    assert_eq!(
        names,
        [
            "official",
            "index",
            "github",
            "skills.sh",
            "clawhub",
            "claude-marketplace",
            "lobehub",
            "browse.sh",
            "well-known",
            "url"
        ]
    );
    let clock: Arc<dyn Clock> = Arc::new(MockClock::default());
    let settings = Settings {
        disabled: vec!["clawhub".to_owned(), "official".to_owned()],
        index: String::new(),
        ..server.settings()
    };
    steward_runtime::tls::install_provider();
    let guarded = Guarded::new(
        FetchSettings::default(),
        Vec::new(),
        Arc::clone(&clock),
        Arc::new(SystemResolver),
    )
    .expect("a fetcher");
    let fetch: Arc<dyn Fetch> = Arc::new(guarded);
    let left = all(&settings, Vec::new(), &TrustList::default(), &fetch, &clock);
    assert!(
        left.iter()
            .all(|source| !["clawhub", "official", "index"].contains(&source.name()))
    );
}

#[tokio::test]
async fn a_server_that_speaks_another_language_is_told_as_such() {
    let server = Server::start().await;
    server.page("/api/v1/search", 200, "text/html", "<html>");
    server.page("/api/search", 500, "text/plain", "broken");
    for name in ["clawhub", "skills.sh"] {
        let error = server
            .source(name)
            .search("x", 5)
            .await
            .expect_err("no answer of its kind");
        assert!(matches!(error, SourceError::Answer { .. }), "{name}: {error}");
    }
}

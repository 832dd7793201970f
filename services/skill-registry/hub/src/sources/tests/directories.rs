use sha2::{Digest as _, Sha256};

use super::*;
use crate::policy::Trust;

fn sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

#[tokio::test]
async fn skills_sh_delivers_files_with_a_digest_over_them() {
    let server = Server::start().await;
    server.json(
        "/api/search",
        &json!({"query": "tidy", "searchType": "fuzzy", "count": 1, "duration_ms": 3, "skills": [
            {"id": "acme/skills/tidy", "skillId": "tidy", "name": "tidy", "installs": 120, "source": "acme/skills"},
        ]}),
    );
    let digest = sha256(&format!("SKILL.md{SKILL}references/a.mdnotes"));
    let download = |hash: &str| {
        json!({"hash": hash, "files": [
            {"path": "references/a.md", "contents": "notes"},
            {"path": "SKILL.md", "contents": SKILL},
        ]})
    };
    server.json("/api/download/acme/skills/tidy", &download(&digest));
    server.json(
        "/audit",
        &json!({"tidy": {"ath": {"risk": "low"}, "socket": {"alerts": 2}, "snyk": {"risk": "HIGH"}}}),
    );
    let source = server.source("skills.sh");
    let found = source.search("tidy", 5).await.expect("found");
    assert_eq!(
        (found[0].reference.as_str(), found[0].installs, found[0].trust),
        ("acme/skills/tidy", Some(120), Trust::Community)
    );
    let (resolved, tree) = bring(&*source, "acme/skills/tidy").await.expect("brought");
    assert_eq!(resolved.revision, format!("sha256:{digest}"));
    assert_eq!(resolved.warnings, ["socket has 2 alerts", "snyk rates it HIGH"]);
    assert_eq!(paths(&tree), ["SKILL.md", "references/a.md"]);
    server.json("/api/download/acme/skills/tidy", &download(&"0".repeat(64)));
    assert!(matches!(
        source.resolve("acme/skills/tidy").await,
        Err(SourceError::Incomplete { .. })
    ));
    server.json(
        "/api/download/acme/skills/tidy",
        &json!({"files": [{"path": "../../evil.md", "contents": "x"}]}),
    );
    assert!(matches!(
        source.resolve("acme/skills/tidy").await,
        Err(SourceError::Incomplete { .. })
    ));
    server.json(
        "/api/download/acme/skills/tidy",
        &json!({"files": [{"path": "SKILL.md", "contents": "changed"}]}),
    );
    assert!(matches!(
        source.fetch(&resolved).await,
        Err(SourceError::Incomplete { .. })
    ));
    assert!(matches!(
        source.resolve("tidy").await,
        Err(SourceError::Reference { .. })
    ));
}

fn clawhub_skill(server: &Server, moderation: &Value) {
    server.json(
        "/api/v1/skills/tidy",
        &json!({
            "skill": {"slug": "tidy", "displayName": "Tidy", "summary": "Tidies."},
            "latestVersion": {"version": "1.2.0", "createdAt": 1_793_000_000_000_i64},
            "owner": {"handle": "acme", "id": "u1"},
            "moderation": moderation,
        }),
    );
}

#[tokio::test]
async fn clawhub_delivers_a_version_and_its_listing_is_held_against_it() {
    let server = Server::start().await;
    server.json(
        "/api/v1/search",
        &json!({"results": [
            {"score": 1.0, "slug": "tidy", "displayName": "Tidy", "summary": "Tidies.", "version": "1.2.0", "ownerHandle": "acme"},
            {"score": 0.5, "slug": "mirrored", "summary": "From elsewhere.", "version": null},
        ]}),
    );
    clawhub_skill(
        &server,
        &json!({"isSuspicious": true, "isMalwareBlocked": false, "summary": "Odd host."}),
    );
    server.page(
        "/api/v1/download",
        200,
        "application/zip",
        zipped(&[("SKILL.md", SKILL), ("references/a.md", "notes")]),
    );
    server.json(
        "/api/v1/skills/tidy/versions/1.2.0",
        &json!({"version": {"version": "1.2.0", "files": [{"path": "SKILL.md", "size": SKILL.len(), "sha256": sha256(SKILL)}]}}),
    );
    let source = server.source("clawhub");
    let found = source.search("tidy", 5).await.expect("found");
    assert_eq!((found[0].reference.as_str(), found[0].installable), ("acme/tidy", true));
    assert_eq!((found[1].reference.as_str(), found[1].installable), ("mirrored", false));
    let (resolved, tree) = bring(&*source, "acme/tidy").await.expect("brought");
    assert_eq!(
        (resolved.revision.as_str(), resolved.pins.owner.as_deref()),
        ("1.2.0", Some("u1"))
    );
    assert_eq!(resolved.warnings, ["ClawHub calls it suspicious. Odd host."]);
    assert_eq!(paths(&tree), ["SKILL.md", "references/a.md"]);
    server.json(
        "/api/v1/skills/tidy/versions/1.2.0",
        &json!({"files": [{"path": "SKILL.md", "size": SKILL.len() + 1}]}),
    );
    assert!(matches!(
        source.fetch(&resolved).await,
        Err(SourceError::Incomplete { .. })
    ));
    server.page("/api/v1/download", 410, "text/plain", "revoked");
    assert!(matches!(
        source.fetch(&resolved).await,
        Err(SourceError::Withheld { .. })
    ));
}

#[tokio::test]
async fn clawhub_withholds_what_it_blocks_and_asks_whose_slug_is_meant() {
    let server = Server::start().await;
    clawhub_skill(&server, &json!({"isMalwareBlocked": true, "summary": "Steals keys."}));
    let source = server.source("clawhub");
    let error = source.resolve("tidy").await.expect_err("blocked");
    assert!(matches!(error, SourceError::Withheld { reason, .. } if reason == "Steals keys."));
    server.page("/api/v1/skills/tidy", 409, "text/plain", "ambiguous");
    assert!(matches!(
        source.resolve("tidy").await,
        Err(SourceError::Ambiguous { .. })
    ));
    server.gone("/api/v1/skills/tidy");
    assert!(matches!(source.resolve("tidy").await, Err(SourceError::Gone { .. })));
}

#[tokio::test]
async fn clawhub_hands_off_to_a_fixed_commit_and_to_nothing_else() {
    let server = Server::start().await;
    clawhub_skill(&server, &json!({}));
    let commit = "3".repeat(40);
    server.json(
        "/api/v1/download",
        &json!({"sourceRef": "public-github", "repo": "acme/skills", "commit": commit, "path": "tidy"}),
    );
    server.json(
        &format!("/gh/repos/acme/skills/git/trees/{commit}"),
        &json!({"truncated": false, "tree": [{"path": "tidy", "mode": "040000", "type": "tree", "sha": "ttt"}]}),
    );
    server.json(
        "/gh/repos/acme/skills/git/trees/ttt",
        &json!({"truncated": false, "tree": [blob("SKILL.md", SKILL)]}),
    );
    server.page(
        &format!("/gh/repos/acme/skills/tarball/{commit}"),
        200,
        "application/x-gzip",
        tarred(&[("top/tidy/SKILL.md", SKILL)]),
    );
    let source = server.source("clawhub");
    let (resolved, tree) = bring(&*source, "tidy").await.expect("brought");
    assert_eq!(paths(&tree), ["SKILL.md"]);
    server.json(
        "/api/v1/download",
        &json!({"sourceRef": "public-github", "repo": "acme/skills", "commit": "main", "path": "tidy"}),
    );
    assert!(matches!(source.fetch(&resolved).await, Err(SourceError::Answer { .. })));
}

#[tokio::test]
async fn lobehub_delivers_a_zip_that_its_listing_describes() {
    let server = Server::start().await;
    server.json(
        "/api/v1/skills",
        &json!({"items": [{"identifier": "github.acme.tidy", "name": "tidy", "description": "Tidies.", "installCount": 4}], "currentPage": 1, "pageSize": 5, "totalCount": 1, "totalPages": 1}),
    );
    let detail = |hash: &str| {
        json!({"identifier": "github.acme.tidy", "name": "tidy", "version": "2.0.0", "updatedAt": "2026-10-02T00:00:00Z", "author": {"id": 11},
            "manifest": {"repository": "acme/skills"}, "resources": {"references/a.md": {"fileHash": hash, "size": 5}}})
    };
    server.json("/api/v1/skills/github.acme.tidy", &detail(&sha256("notes")));
    server.page(
        "/api/v1/skills/github.acme.tidy/download",
        200,
        "application/zip",
        zipped(&[("SKILL.md", SKILL), ("references/a.md", "notes")]),
    );
    let source = server.source("lobehub");
    assert_eq!(source.search("tidy", 5).await.expect("found")[0].installs, Some(4));
    let (resolved, tree) = bring(&*source, "github.acme.tidy").await.expect("brought");
    assert_eq!(
        (resolved.revision.as_str(), resolved.pins.owner.as_deref()),
        ("2.0.0", Some("11"))
    );
    assert_eq!(paths(&tree), ["SKILL.md", "references/a.md"]);
    server.json("/api/v1/skills/github.acme.tidy", &detail(&sha256("other")));
    assert!(matches!(
        source.fetch(&resolved).await,
        Err(SourceError::Incomplete { .. })
    ));
    assert!(matches!(
        source.resolve("a/b").await,
        Err(SourceError::Reference { .. })
    ));
}

#[tokio::test]
async fn browse_sh_delivers_one_file_that_stays_what_it_was() {
    let server = Server::start().await;
    server.json(
        "/api/skills",
        &json!({"skills": [
            {"slug": "shop.example/order-1", "name": "order", "title": "Order", "description": "Orders things.", "installCount": 0},
            {"slug": "mail.example/read-2", "name": "read", "title": "Read", "description": "Reads mail.", "installCount": 3},
        ]}),
    );
    server.json(
        "/api/skills/shop.example/order-1",
        &json!({"skillMdUrl": "/files/order.md"}),
    );
    server.page("/files/order.md", 200, "text/markdown", SKILL);
    let source = server.source("browse.sh");
    let found = source.search("orders", 5).await.expect("found");
    assert_eq!((found.len(), found[0].installs), (1, None));
    let (resolved, tree) = bring(&*source, "shop.example/order-1").await.expect("brought");
    assert_eq!(paths(&tree), ["SKILL.md"]);
    server.page("/files/order.md", 200, "text/markdown", "changed");
    assert!(matches!(
        source.fetch(&resolved).await,
        Err(SourceError::Incomplete { .. })
    ));
}

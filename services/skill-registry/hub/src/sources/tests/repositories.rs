use super::*;

const COMMIT: &str = "1111111111111111111111111111111111111111";
const LAST: &str = "2222222222222222222222222222222222222222";

/// `acme/skills` with one skill below `skills/tidy`, at two commits.
async fn acme() -> Server {
    let server = Server::start().await;
    server.json(
        "/gh/repos/acme/skills",
        &json!({"id": 42, "full_name": "acme/skills", "default_branch": "main", "owner": {"id": 7, "login": "acme"}}),
    );
    server.json("/gh/repos/acme/skills/commits/main", &json!({"sha": COMMIT}));
    server.json(
        "/gh/repos/acme/skills/commits",
        &json!([{"sha": LAST, "commit": {"committer": {"date": "2026-11-01T10:00:00Z"}}}]),
    );
    for commit in [COMMIT, LAST, "HEAD"] {
        let trees = format!("/gh/repos/acme/skills/git/trees/{commit}");
        server.json(
            &trees,
            &json!({"sha": commit, "truncated": false, "tree": [{"path": "skills", "mode": "040000", "type": "tree", "sha": "aaa"}]}),
        );
        server.json(
            &format!("{trees}?recursive=1"),
            &json!({"sha": commit, "truncated": false, "tree": [
                {"path": "README.md", "mode": "100644", "type": "blob", "sha": "x"},
                {"path": "skills/tidy/SKILL.md", "mode": "100644", "type": "blob", "sha": "y"},
                {"path": "more/tidy/notes.md", "mode": "100644", "type": "blob", "sha": "z"},
            ]}),
        );
    }
    server.json(
        "/gh/repos/acme/skills/git/trees/aaa",
        &json!({"sha": "aaa", "truncated": false, "tree": [{"path": "tidy", "mode": "040000", "type": "tree", "sha": "bbb"}]}),
    );
    server.json(
        "/gh/repos/acme/skills/git/trees/bbb",
        &json!({"sha": "bbb", "truncated": false, "tree": [blob("SKILL.md", SKILL), blob("references/a.md", "notes")]}),
    );
    for commit in [COMMIT, LAST] {
        server.page(
            &format!("/gh/repos/acme/skills/tarball/{commit}"),
            200,
            "application/x-gzip",
            tarred(&[
                ("acme-skills-2222/README.md", "x"),
                ("acme-skills-2222/skills/tidy/SKILL.md", SKILL),
                ("acme-skills-2222/skills/tidy/references/a.md", "notes"),
            ]),
        );
    }
    server
}

#[tokio::test]
async fn github_resolves_to_the_last_commit_of_the_folder_and_takes_it_whole() {
    let server = acme().await;
    let github = server.source("github");
    for reference in ["acme/skills/skills/tidy", "acme/skills/tidy"] {
        let (resolved, tree) = bring(&*github, reference).await.expect("brought");
        assert_eq!(resolved.reference, "acme/skills/skills/tidy");
        assert_eq!((resolved.revision.as_str(), resolved.name.as_str()), (LAST, "tidy"));
        assert_eq!(resolved.trust, crate::policy::Trust::Trusted);
        assert_eq!(
            (resolved.pins.owner.as_deref(), resolved.pins.repository.as_deref()),
            (Some("7"), Some("42"))
        );
        assert_eq!(
            resolved.published_at.map(|at| at.to_string()).as_deref(),
            Some("2026-11-01T10:00:00Z")
        );
        assert_eq!(paths(&tree), ["SKILL.md", "references/a.md"]);
    }
    let found = github.search("tidy", 10).await.expect("found");
    assert_eq!(
        found.iter().map(|row| row.reference.as_str()).collect::<Vec<_>>(),
        ["acme/skills/skills/tidy"]
    );
}

#[tokio::test]
async fn d_59_github_takes_all_files_as_listed_or_none() {
    let server = acme().await;
    let github = server.source("github");
    let listing = "/gh/repos/acme/skills/git/trees/bbb";
    let cases = [
        (
            json!([
                blob("SKILL.md", SKILL),
                blob("references/a.md", "notes"),
                blob("references/b.md", "more")
            ]),
            "references/b.md",
        ),
        (
            json!([blob("SKILL.md", SKILL), blob("references/a.md", "other")]),
            "references/a.md",
        ),
        (json!([blob("SKILL.md", SKILL)]), "references/a.md"),
        (
            json!([blob("SKILL.md", SKILL), {"path": "link", "mode": "120000", "type": "blob", "sha": "x"}]),
            "link",
        ),
        (
            json!([blob("SKILL.md", SKILL), {"path": "module", "mode": "160000", "type": "commit", "sha": "x"}]),
            "module",
        ),
    ];
    for (rows, file) in cases {
        server.json(listing, &json!({"sha": "bbb", "truncated": false, "tree": rows}));
        let error = bring(&*github, "acme/skills/skills/tidy").await.expect_err("not whole");
        assert!(
            matches!(&error, SourceError::Incomplete { file: named, .. } if named == file),
            "{file}: {error}"
        );
    }
}

#[tokio::test]
async fn d_60_github_says_what_is_gone_ambiguous_or_renamed() {
    let server = acme().await;
    let github = server.source("github");
    assert!(matches!(
        github.resolve("acme/nothing/x/y").await,
        Err(SourceError::Gone { .. })
    ));
    assert!(matches!(
        github.resolve("acme/skills/absent").await,
        Err(SourceError::Gone { .. })
    ));
    assert!(matches!(
        github.resolve("../x/y").await,
        Err(SourceError::Reference { .. })
    ));
    server.json(
        &format!("/gh/repos/acme/skills/git/trees/{COMMIT}?recursive=1"),
        &json!({"sha": COMMIT, "truncated": false, "tree": [
            {"path": "a/tidy/SKILL.md", "mode": "100644", "type": "blob", "sha": "y"},
            {"path": "b/tidy/SKILL.md", "mode": "100644", "type": "blob", "sha": "y"},
        ]}),
    );
    let error = github.resolve("acme/skills/tidy").await.expect_err("two of them");
    assert!(
        matches!(error, SourceError::Ambiguous { candidates, .. } if candidates == ["acme/skills/a/tidy", "acme/skills/b/tidy"])
    );
    server.json(
        "/gh/repos/old/name",
        &json!({"id": 42, "full_name": "acme/skills", "default_branch": "main", "owner": {"id": 7}}),
    );
    let resolved = github.resolve("old/name/skills/tidy").await.expect("renamed");
    assert_eq!(resolved.reference, "acme/skills/skills/tidy");
    assert_eq!(resolved.warnings, ["old/name is acme/skills now"]);
}

#[tokio::test]
async fn the_index_withholds_a_repository_whose_id_is_not_the_listed_one() {
    let server = acme().await;
    let row = |listed: u64| json!({"skills": [{"name": "tidy", "description": "Tidies.", "identifier": "acme/skills/skills/tidy", "resolved_github_id": listed, "installs": 9}]});
    server.json("/index.json", &row(42));
    let index = server.source("index");
    let found = index.search("tidies", 5).await.expect("found");
    assert_eq!(
        (found[0].reference.as_str(), found[0].installs),
        ("acme/skills/skills/tidy", Some(9))
    );
    let (resolved, tree) = bring(&*index, "acme/skills/skills/tidy").await.expect("brought");
    assert_eq!((resolved.source.as_str(), paths(&tree).len()), ("index", 2));
    server.json("/index.json", &row(43));
    assert!(matches!(
        index.resolve("acme/skills/skills/tidy").await,
        Err(SourceError::Withheld { .. })
    ));
    assert!(matches!(
        index.resolve("acme/skills/skills/other").await,
        Err(SourceError::Gone { .. })
    ));
}

#[tokio::test]
async fn a_marketplace_is_read_for_its_skills_only() {
    let server = acme().await;
    server.json(
        "/gh/repos/acme/skills/contents/.claude-plugin/marketplace.json",
        &json!({"name": "acme", "owner": {"name": "Acme"}, "plugins": [
            {"name": "listed", "source": "./", "description": "House work.", "skills": ["./skills/tidy", "../../etc"], "hooks": "x"},
            {"name": "scanned", "source": "./", "description": "All of it."},
            {"name": "elsewhere", "source": {"source": "github", "repo": "other/repo", "sha": COMMIT}, "skills": ["./a"]},
            {"name": "package", "source": {"source": "npm", "package": "x"}},
            {"name": "absolute", "source": "/etc", "skills": ["./a"]},
        ]}),
    );
    let market = server.source("claude-marketplace");
    let found = market.search("", 10).await.expect("found");
    let references: Vec<&str> = found.iter().map(|row| row.reference.as_str()).collect();
    assert_eq!(
        references,
        [
            "acme/skills/skills/tidy",
            "acme/skills/skills/tidy",
            &format!("other/repo/a@{COMMIT}")
        ]
    );
    let (resolved, tree) = bring(&*market, references[0]).await.expect("brought");
    assert_eq!(
        (resolved.source.as_str(), paths(&tree).len()),
        ("claude-marketplace", 2)
    );
}

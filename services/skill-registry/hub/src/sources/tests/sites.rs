use sha2::{Digest as _, Sha256};

use super::*;

fn sha256(bytes: impl AsRef<[u8]>) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

#[tokio::test]
async fn a_site_with_digests_is_believed_for_the_bytes_that_match() {
    let server = Server::start().await;
    let archive = tarred(&[("SKILL.md", SKILL), ("references/a.md", "notes")]);
    let index = |digest: &str| {
        json!({"$schema": "https://schemas.agentskills.io/discovery/0.2.0/schema.json", "skills": [
            {"name": "tidy", "type": "archive", "description": "Tidies.", "url": "tidy.tar.gz", "digest": digest},
            {"name": "single", "type": "skill-md", "description": "One file.", "url": "single.md", "digest": sha256(SKILL)},
        ]})
    };
    server.json("/.well-known/agent-skills/index.json", &index(&sha256(&archive)));
    server.page(
        "/.well-known/agent-skills/tidy.tar.gz",
        200,
        "application/gzip",
        archive,
    );
    server.page("/.well-known/agent-skills/single.md", 200, "text/markdown", SKILL);
    let source = server.source("well-known");
    let base = server.base.clone();
    assert!(source.claims(&base) && !source.claims("acme/skills/x") && !source.claims(&format!("{base}/a.md")));
    let found = source.search(&base, 10).await.expect("found");
    assert_eq!(found[0].reference, format!("{base}/#tidy"));
    assert!(source.search("tidy", 10).await.expect("nothing").is_empty());
    let (resolved, tree) = bring(&*source, &found[0].reference).await.expect("brought");
    assert_eq!(paths(&tree), ["SKILL.md", "references/a.md"]);
    assert!(resolved.warnings.is_empty());
    let (_, single) = bring(&*source, &format!("{base}#single")).await.expect("brought");
    assert_eq!(paths(&single), ["SKILL.md"]);
    assert!(matches!(
        source.resolve(&base).await,
        Err(SourceError::Ambiguous { .. })
    ));
    assert!(matches!(
        source.resolve(&format!("{base}#other")).await,
        Err(SourceError::Gone { .. })
    ));
    server.json("/.well-known/agent-skills/index.json", &index(&sha256("other")));
    assert!(matches!(
        source.fetch(&resolved).await,
        Err(SourceError::Incomplete { .. })
    ));
}

#[tokio::test]
async fn d_59_a_site_that_lists_files_delivers_each_or_none() {
    let server = Server::start().await;
    let plain =
        json!({"skills": [{"name": "tidy", "description": "Tidies.", "files": ["SKILL.md", "references/a.md"]}]});
    server.json("/.well-known/skills/index.json", &plain);
    server.page("/.well-known/skills/tidy/SKILL.md", 200, "text/markdown", SKILL);
    let source = server.source("well-known");
    let reference = format!("{}#tidy", server.base);
    let error = source.resolve(&reference).await.expect_err("one is missing");
    assert!(
        matches!(&error, SourceError::Incomplete { file, .. } if file == "references/a.md"),
        "{error}"
    );
    server.page(
        "/.well-known/skills/tidy/references/a.md",
        200,
        "text/markdown",
        "notes",
    );
    let (resolved, tree) = bring(&*source, &reference).await.expect("brought");
    assert_eq!(paths(&tree), ["SKILL.md", "references/a.md"]);
    assert_eq!(resolved.warnings, ["the site states no digest"]);
    server.json(
        "/.well-known/skills/index.json",
        &json!({"skills": [{"name": "tidy", "files": ["SKILL.md", "../../secret"]}]}),
    );
    assert!(matches!(
        source.resolve(&reference).await,
        Err(SourceError::Incomplete { .. })
    ));
    let lines = format!("SKILL.md\0{}\n", sha256(SKILL).trim_start_matches("sha256:"));
    let draft = |digest: String| json!({"version": "0.2.0", "skills": [{"name": "tidy", "digest": digest, "files": [{"path": "SKILL.md", "digest": sha256(SKILL)}]}]});
    server.json("/.well-known/skills/index.json", &draft(sha256(&lines)));
    bring(&*source, &reference)
        .await
        .expect("the draft's digest over all files");
    server.json("/.well-known/skills/index.json", &draft(sha256("x")));
    assert!(matches!(
        source.resolve(&reference).await,
        Err(SourceError::Incomplete { .. })
    ));
}

#[tokio::test]
async fn d_59_a_page_brings_the_files_that_it_names_or_nothing() {
    let server = Server::start().await;
    server.page("/skills/tidy/SKILL.md", 200, "text/markdown", SKILL);
    let source = server.source("url");
    let reference = format!("{}/skills/tidy/SKILL.md", server.base);
    assert!(source.claims(&reference));
    let error = source.resolve(&reference).await.expect_err("a file is missing");
    assert!(
        matches!(&error, SourceError::Incomplete { file, .. } if file == "references/a.md"),
        "{error}"
    );
    server.page("/skills/tidy/references/a.md", 200, "text/markdown", "notes");
    let (resolved, tree) = bring(&*source, &reference).await.expect("brought");
    assert_eq!(
        (resolved.name.as_str(), paths(&tree)),
        ("tidy", vec!["SKILL.md", "references/a.md"])
    );
    server.page("/skills/tidy/references/a.md", 200, "text/markdown", "changed");
    assert!(matches!(
        source.fetch(&resolved).await,
        Err(SourceError::Incomplete { .. })
    ));
    server.gone("/skills/tidy/SKILL.md");
    assert!(matches!(
        source.resolve(&reference).await,
        Err(SourceError::Gone { .. })
    ));
    assert!(source.search("tidy", 5).await.expect("nothing").is_empty());
}

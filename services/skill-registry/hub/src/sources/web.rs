//! A plain address of a Markdown file, with the support files that it names on the same site.

use std::collections::BTreeSet;

use steward_skill_scanner::{Tree, path};
use url::Url;

use super::wire::{Wire, incomplete, no_reference, same_as_resolved, tree_of};
use crate::policy::Trust;
use crate::source::{Found, Pins, Resolved, Source, SourceError};

const NAME: &str = "url";
/// Folders whose files are taken when the text names them.
const FOLDERS: [&str; 5] = ["references/", "templates/", "scripts/", "assets/", "examples/"];
/// Most support files.
const MOST: usize = 60;

/// Any address that ends in `.md`.
#[derive(Debug)]
pub struct Web {
    wire: Wire,
}

impl Web {
    pub(crate) fn new(wire: Wire) -> Self {
        Self { wire }
    }

    async fn content(&self, reference: &str) -> Result<Tree, SourceError> {
        let url = parse(reference)?;
        let main = self.wire.bytes(NAME, reference, url.clone()).await?;
        let named = match std::str::from_utf8(&main) {
            Ok(text) => support_files(text),
            Err(_) => return Err(incomplete("SKILL.md", "is not text")),
        };
        if named.len() > MOST {
            return Err(incomplete("SKILL.md", format!("names more than {MOST} support files")));
        }
        let mut files = vec![("SKILL.md".to_owned(), main)];
        for name in named {
            let target = url
                .join(&name)
                .map_err(|_| incomplete(&name, "has no usable address"))?;
            if target.origin() != url.origin() {
                return Err(incomplete(&name, "lies on another site"));
            }
            let bytes = match self.wire.bytes(NAME, &name, target).await {
                Err(SourceError::Gone { .. }) => return Err(incomplete(&name, "is named and is not there")),
                other => other?,
            };
            files.push((name, bytes));
        }
        tree_of(files)
    }
}

fn parse(reference: &str) -> Result<Url, SourceError> {
    let wrong = || no_reference(NAME, reference, "write the https address of a Markdown file");
    let url = Url::parse(reference).map_err(|_| wrong())?;
    let fits = matches!(url.scheme(), "https" | "http") && url.path().to_ascii_lowercase().ends_with(".md");
    if fits { Ok(url) } else { Err(wrong()) }
}

/// Paths of support files that a text links to or shows as code.
fn support_files(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for piece in text.split(|sign: char| {
        sign.is_whitespace() || matches!(sign, '(' | ')' | '`' | '"' | '\'' | '<' | '>' | '[' | ']')
    }) {
        let piece = piece.trim_start_matches("./").trim_end_matches(['.', ',', ';', ':']);
        let is_file = piece
            .rsplit('/')
            .next()
            .is_some_and(|name| name.contains('.') && !name.starts_with('.'));
        if FOLDERS.iter().any(|folder| piece.starts_with(folder)) && is_file && path::problem(piece, 16).is_none() {
            found.insert(piece.to_owned());
        }
    }
    found
}

#[async_trait::async_trait]
impl Source for Web {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claims(&self, reference: &str) -> bool {
        parse(reference).is_ok()
    }

    async fn search(&self, _query: &str, _limit: usize) -> Result<Vec<Found>, SourceError> {
        Ok(Vec::new())
    }

    async fn resolve(&self, reference: &str) -> Result<Resolved, SourceError> {
        let url = parse(reference)?;
        let tree = self.content(reference).await?;
        let folder = url
            .path_segments()
            .and_then(|parts| parts.rev().nth(1).map(str::to_owned));
        Ok(Resolved {
            source: NAME.to_owned(),
            reference: reference.to_owned(),
            name: folder.unwrap_or_default(),
            revision: format!("sha256:{}", tree.digest()),
            pins: Pins {
                owner: url.host_str().map(str::to_owned),
                repository: None,
            },
            trust: Trust::Community,
            published_at: None,
            warnings: vec!["a page states no digest and may change at any time".to_owned()],
            locator: reference.to_owned(),
        })
    }

    async fn fetch(&self, resolved: &Resolved) -> Result<Tree, SourceError> {
        same_as_resolved(self.content(&resolved.locator).await?, &resolved.revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn support_files_are_those_that_the_text_names() {
        let text = "See [a](references/a.md) and `./scripts/run.sh`, not references/ nor ../x.md or references/../../b.md; https://a.example/references/c.md.";
        assert_eq!(
            support_files(text).into_iter().collect::<Vec<_>>(),
            ["references/a.md", "scripts/run.sh"]
        );
    }
}

//! ClawHub: skills by slug, with versions, moderation, and for some a hand-off to a repository instead of bytes.

use std::sync::Arc;

use serde_json::Value;
use steward_base::Timestamp;
use steward_base::hash::sha256_hex;
use steward_fetch::Request;
use steward_skill_scanner::Tree;

use super::github::{GitHub, Place};
use super::wire::{Wire, address, checked, id, incomplete, list, no_reference, not_understood, parsed, text};
use crate::archive::{Limits, Selection};
use crate::policy::Trust;
use crate::source::{Found, Pins, Resolved, Source, SourceError};

const NAME: &str = "clawhub";

/// ClawHub. A skill is `slug` or `owner/slug`, optionally with `@version`.
#[derive(Debug)]
pub struct ClawHub {
    wire: Wire,
    base: String,
    github: Arc<GitHub>,
}

struct Reference<'r> {
    owner: Option<&'r str>,
    slug: &'r str,
    version: Option<&'r str>,
}

impl<'r> Reference<'r> {
    fn parse(reference: &'r str) -> Result<Self, SourceError> {
        let (path, version) = match reference.rsplit_once('@') {
            Some((path, version)) if !path.is_empty() => (path, Some(version)),
            _ => (reference, None),
        };
        let (owner, slug) = match path.split_once('/') {
            Some((owner, slug)) => (Some(owner.trim_start_matches('@')), slug),
            None => (None, path),
        };
        if slug.is_empty() || slug.contains('/') || owner == Some("") {
            return Err(no_reference(
                NAME,
                reference,
                "write slug or owner/slug, with @version if you like",
            ));
        }
        Ok(Self { owner, slug, version })
    }

    fn query(&self) -> Vec<(&'r str, &'r str)> {
        self.owner.map(|owner| ("ownerHandle", owner)).into_iter().collect()
    }
}

impl ClawHub {
    pub(crate) fn new(wire: Wire, base: &str, github: Arc<GitHub>) -> Self {
        Self {
            wire,
            base: base.to_owned(),
            github,
        }
    }

    async fn skill(&self, reference: &str, parsed_reference: &Reference<'_>) -> Result<Value, SourceError> {
        let url = address(
            NAME,
            &self.base,
            &["api", "v1", "skills", parsed_reference.slug],
            &parsed_reference.query(),
        )?;
        let answer = self
            .wire
            .ask(Request::get(url).accept("application/json").limit(1 << 20))
            .await?;
        if answer.status == 409 {
            return Err(SourceError::Ambiguous {
                reference: reference.to_owned(),
                candidates: vec![format!("owner/{}", parsed_reference.slug)],
            });
        }
        parsed(NAME, reference, &answer)
    }

    /// Holds the files against the version's own list, where it has digests or sizes.
    async fn verify(&self, reference: &Reference<'_>, version: &str, tree: &Tree) -> Result<(), SourceError> {
        let url = address(
            NAME,
            &self.base,
            &["api", "v1", "skills", reference.slug, "versions", version],
            &reference.query(),
        )?;
        let value = self.wire.json(NAME, reference.slug, url).await?;
        let files = value
            .get("files")
            .or_else(|| value.pointer("/version/files"))
            .and_then(Value::as_array);
        for file in files.into_iter().flatten() {
            let path = text(file, "path");
            let Some(found) = tree.get(&path) else {
                return Err(incomplete(&path, "is listed and was not delivered"));
            };
            let size = file.get("size").and_then(Value::as_u64);
            let digest = id(file, "sha256");
            if size.is_some_and(|size| size != found.bytes.len() as u64)
                || digest.is_some_and(|digest| digest != sha256_hex(&found.bytes))
            {
                return Err(incomplete(&path, "is not what the version lists"));
            }
        }
        Ok(())
    }

    async fn hand_off(&self, reference: &str, value: &Value) -> Result<Tree, SourceError> {
        let (repository, commit, path) = (text(value, "repo"), text(value, "commit"), text(value, "path"));
        let fixed = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        if text(value, "sourceRef") != "public-github" || !fixed {
            return Err(not_understood(
                NAME,
                format!("{reference} is handed off to nowhere fixed"),
            ));
        }
        let place = Place::parse(&format!("{repository}/{path}"))?;
        let folder = place.folder.clone();
        self.github.fetch_at(&place, &commit, &folder).await
    }
}

#[async_trait::async_trait]
impl Source for ClawHub {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claims(&self, _reference: &str) -> bool {
        false
    }

    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Found>, SourceError> {
        let most = limit.to_string();
        let url = address(
            NAME,
            &self.base,
            &["api", "v1", "search"],
            &[("q", query), ("limit", &most)],
        )?;
        let value = self.wire.json(NAME, query, url).await?;
        let rows = list(NAME, &value, "results")?;
        Ok(rows
            .iter()
            .filter_map(|row| {
                let slug = id(row, "slug")?;
                let owner = id(row, "ownerHandle").or_else(|| row.get("owner").and_then(|owner| id(owner, "handle")));
                Some(Found {
                    source: NAME.to_owned(),
                    // Rows that are mirrored from elsewhere have no version here and cannot be delivered.
                    installable: id(row, "version").is_some(),
                    reference: owner.map_or_else(|| slug.clone(), |owner| format!("{owner}/{slug}")),
                    name: slug,
                    description: text(row, "summary"),
                    trust: Trust::Community,
                    installs: None,
                })
            })
            .take(limit)
            .collect())
    }

    async fn resolve(&self, reference: &str) -> Result<Resolved, SourceError> {
        let wanted = Reference::parse(reference)?;
        let answer = self.skill(reference, &wanted).await?;
        let skill = answer.get("skill").unwrap_or(&answer);
        let moderation = answer.get("moderation").or_else(|| skill.get("moderation"));
        let is = |flag: &str| {
            moderation
                .and_then(|moderation| moderation.get(flag))
                .and_then(Value::as_bool)
                == Some(true)
        };
        let summary = moderation
            .map(|moderation| text(moderation, "summary"))
            .unwrap_or_default();
        if is("isMalwareBlocked") {
            return Err(SourceError::Withheld {
                reference: reference.to_owned(),
                reason: if summary.is_empty() {
                    "it is blocked as malware".to_owned()
                } else {
                    summary
                },
            });
        }
        let latest = answer.get("latestVersion").or_else(|| skill.get("latestVersion"));
        let version = match wanted.version {
            Some(version) => version.to_owned(),
            None => latest
                .and_then(|latest| id(latest, "version"))
                .ok_or_else(|| SourceError::Gone {
                    reference: reference.to_owned(),
                })?,
        };
        let owner = answer.get("owner").or_else(|| skill.get("owner"));
        let published = latest
            .and_then(|latest| latest.get("createdAt"))
            .and_then(Value::as_i64);
        let locator = match wanted.owner {
            Some(owner) => format!("{owner}/{}@{version}", wanted.slug),
            None => format!("{}@{version}", wanted.slug),
        };
        Ok(Resolved {
            source: NAME.to_owned(),
            reference: reference.to_owned(),
            name: wanted.slug.to_owned(),
            revision: version,
            pins: Pins {
                owner: owner.and_then(|owner| id(owner, "id").or_else(|| id(owner, "handle"))),
                repository: None,
            },
            trust: Trust::Community,
            published_at: published.map(|millis| Timestamp::from_micros(millis.saturating_mul(1_000))),
            warnings: if is("isSuspicious") {
                vec![format!("ClawHub calls it suspicious. {summary}").trim().to_owned()]
            } else {
                Vec::new()
            },
            locator,
        })
    }

    /// A version is taken back by itself, while the skill stays.
    async fn withdrawn(&self, reference: &str, revision: &str) -> Result<Option<String>, SourceError> {
        let told = match self.resolve(reference).await {
            Ok(_) => {
                let wanted = Reference::parse(reference)?;
                let path = ["api", "v1", "skills", wanted.slug, "versions", revision];
                let url = address(NAME, &self.base, &path, &wanted.query())?;
                self.wire.json(NAME, revision, url).await.map(|_| ())
            }
            Err(error) => Err(error),
        };
        match told {
            Ok(()) => Ok(None),
            Err(SourceError::Gone { reference: what } | SourceError::Withheld { reference: what, .. })
                if what == revision =>
            {
                Ok(Some(format!("ClawHub took version {revision} back")))
            }
            Err(SourceError::Gone { .. }) => Ok(Some("ClawHub no longer has it".to_owned())),
            Err(SourceError::Withheld { reason, .. }) => Ok(Some(reason)),
            Err(error) => Err(error),
        }
    }

    async fn fetch(&self, resolved: &Resolved) -> Result<Tree, SourceError> {
        let wanted = Reference::parse(&resolved.locator)?;
        let mut query = vec![("slug", wanted.slug), ("version", resolved.revision.as_str())];
        query.extend(wanted.query());
        let url = address(NAME, &self.base, &["api", "v1", "download"], &query)?;
        let answer = self.wire.ask(Request::get(url).limit(32 << 20)).await?;
        checked(NAME, &resolved.reference, &answer)?;
        let is_json = answer
            .content_type
            .as_deref()
            .is_some_and(|kind| kind.starts_with("application/json"));
        if is_json {
            let value = parsed(NAME, &resolved.reference, &answer)?;
            return self.hand_off(&resolved.reference, &value).await;
        }
        let tree = self
            .wire
            .unpack(&answer.body, Selection::default(), &Limits::default())?;
        self.verify(&wanted, &resolved.revision, &tree).await?;
        Ok(tree)
    }
}

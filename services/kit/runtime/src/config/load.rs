//! Merging the layers and reporting everything that is wrong with them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use figment::error::{Actual, Kind};
use figment::providers::{Format as _, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::secret::HIDDEN;
use super::{ENVIRONMENT_PREFIX, Problem, Validate};

/// More problems than this are not worth a reader's time.
const MAX_PROBLEMS: usize = 64;

/// Where settings come from, besides the defaults in code. Later fields win over earlier ones.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    /// A TOML file that must exist.
    pub file: Option<PathBuf>,
    /// Variables such as `STEWARD__MEMORY__LISTEN`; see [`super::environment`].
    pub environment: Vec<(String, String)>,
    /// Flags of the command line as dotted path and text: `("memory.listen", "127.0.0.1:0")`.
    pub flags: Vec<(String, String)>,
}

/// A configuration and how it came about.
#[derive(Debug, Clone)]
pub struct Loaded<C> {
    /// The effective configuration, valid.
    pub config: C,
    /// Every setting with its value and origin, by path.
    pub settings: Vec<Setting>,
}

/// One effective setting, for `config dump`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// `section.key`.
    pub path: String,
    /// As TOML; secrets hidden; `(unset)` for an optional one without a value.
    pub value: String,
    /// `default`, the file's path, the variable's name, or `flag`.
    pub origin: String,
}

impl<C> Loaded<C> {
    /// The settings as a table of lines: path, value, origin.
    pub fn dump(&self) -> String {
        let mut text = String::new();
        for setting in &self.settings {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{} = {}  # {}", setting.path, setting.value, setting.origin);
        }
        text
    }
}

/// Merges the layers over the defaults of `C`. The error lists all problems: unreadable file, unknown settings, wrong
/// types, and what [`Validate`] finds.
pub fn load<C>(layers: &Layers) -> Result<Loaded<C>, Vec<Problem>>
where
    C: Serialize + DeserializeOwned + Validate,
{
    let mut problems = Vec::new();
    let figment = merge(layers, &mut problems);
    let config: Option<C> = extract(&figment, &mut problems);
    let Some(config) = config else { return Err(problems) };
    // A setting with a wrong type was left out above; judging the rest as well spares a second round.
    problems.extend(config.validate());
    if !problems.is_empty() {
        return Err(problems);
    }
    let settings = settings(&figment, &config).map_err(|problem| vec![problem])?;
    Ok(Loaded { config, settings })
}

fn merge(layers: &Layers, problems: &mut Vec<Problem>) -> Figment {
    let mut figment = Figment::new();
    if let Some(path) = &layers.file {
        match read(path) {
            Ok(text) => figment = figment.merge(Named::file(path, &text)),
            Err(problem) => problems.push(problem),
        }
    }
    // In order of their names, so that a setting wins over the table it is in, whatever order the system has them in.
    let mut environment: Vec<_> = layers.environment.iter().collect();
    environment.sort();
    for (name, value) in environment {
        let Some(key) = name.strip_prefix(ENVIRONMENT_PREFIX) else {
            continue;
        };
        let path = key.to_ascii_lowercase().replace("__", ".");
        if path.split('.').any(str::is_empty) {
            problems.push(Problem::new(
                name,
                "does not name a setting: a part of the name is empty",
            ));
            continue;
        }
        figment = figment.merge(Named::text(name.clone(), &path, value));
    }
    for (path, value) in &layers.flags {
        figment = figment.merge(Named::text("flag".to_owned(), path, value));
    }
    figment
}

fn read(path: &Path) -> Result<String, Problem> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Problem::new("", format!("cannot read {}: {error}", path.display())))?;
    match toml::from_str::<toml::Table>(&text) {
        Ok(_) => Ok(text),
        Err(error) => {
            // The error's own text shows the line, and the line may hold a key.
            let message = format!(
                "{}{} is not TOML: {}",
                path.display(),
                line(&text, &error),
                error.message()
            );
            Err(Problem::new("", message))
        }
    }
}

fn line(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    before.map_or_else(String::new, |before| {
        format!(" line {}", before.bytes().filter(|byte| *byte == b'\n').count() + 1)
    })
}

/// Extracts as much as is right: a setting that is wrong is reported and left out, then the rest is tried again.
fn extract<C: DeserializeOwned>(figment: &Figment, problems: &mut Vec<Problem>) -> Option<C> {
    let profile = figment.profile().clone();
    let mut tree = match figment.data() {
        Ok(mut data) => {
            let mut tree = data.remove(&Profile::Default).unwrap_or_default();
            tree.extend(data.remove(&profile).unwrap_or_default());
            tree
        }
        Err(errors) => {
            problems.extend(errors.into_iter().map(|error| Problem::new("", error.kind.to_string())));
            return None;
        }
    };
    for _ in 0..MAX_PROBLEMS {
        let attempt = Figment::from(Named {
            name: String::new(),
            tree: Ok(tree.clone()),
        });
        let error = match attempt.extract_lossy::<C>() {
            Ok(config) => return Some(config),
            Err(error) => error,
        };
        let path = error_path(&error);
        let origin = figment
            .find_metadata(&path.join("."))
            .map(|metadata| metadata.name.to_string());
        let message = match origin {
            Some(origin) => format!("{} ({origin})", describe(&error.kind)),
            None => describe(&error.kind),
        };
        problems.push(Problem::new(path.join("."), message));
        if !remove(&mut tree, &path) {
            return None;
        }
    }
    None
}

fn error_path(error: &figment::Error) -> Vec<String> {
    let mut path = error.path.clone();
    if let Kind::UnknownField(field, _) = &error.kind
        && path.last() != Some(field)
    {
        path.push(field.clone());
    }
    path
}

fn describe(kind: &Kind) -> String {
    match kind {
        Kind::UnknownField(_, known) => format!("is not a setting; known here: {}", known.join(", ")),
        // Where a number or a section is expected, a text may be a key that was put in the wrong place.
        Kind::InvalidType(Actual::Str(_), expected) => format!("is text, {expected} is expected"),
        Kind::InvalidValue(Actual::Str(_), expected) => format!("is a text other than {expected}"),
        Kind::UnknownVariant(_, known) => format!("is not one of {}", known.join(", ")),
        other => other.to_string(),
    }
}

fn remove(tree: &mut Dict, path: &[String]) -> bool {
    let Some((key, rest)) = path.split_first() else {
        return false;
    };
    if rest.is_empty() {
        return tree.remove(key).is_some();
    }
    match tree.get_mut(key) {
        Some(Value::Dict(_, inner)) => remove(inner, rest),
        // Inside an array the whole array goes: half a list would be a setting that nobody made.
        Some(_) => tree.remove(key).is_some(),
        None => false,
    }
}

/// All leaves of the effective configuration.
fn settings<C: Serialize>(figment: &Figment, config: &C) -> Result<Vec<Setting>, Problem> {
    let value = serde_json::to_value(config).map_err(|error| Problem::new("", error.to_string()))?;
    let mut settings = Vec::new();
    collect(figment, String::new(), &value, &mut settings);
    Ok(settings)
}

fn collect(figment: &Figment, path: String, value: &serde_json::Value, settings: &mut Vec<Setting>) {
    match value {
        serde_json::Value::Object(fields) if !fields.is_empty() => {
            for (key, inner) in fields {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                collect(figment, path, inner, settings);
            }
        }
        leaf => {
            let value = if leaf.is_null() {
                "(unset)".to_owned()
            } else {
                without_password(&leaf.to_string())
            };
            let origin = figment
                .find_metadata(&path)
                .map_or("default".to_owned(), |found| found.name.to_string());
            settings.push(Setting { path, value, origin });
        }
    }
}

/// An address may carry a name and a password; a dump shows neither.
fn without_password(value: &str) -> String {
    let Some((scheme, rest)) = value.split_once("://") else {
        return value.to_owned();
    };
    let authority = rest.find(['/', '?', '#', '"']).unwrap_or(rest.len());
    match rest[..authority].rfind('@') {
        Some(at) => format!("{scheme}://{HIDDEN}{}", &rest[at..]),
        None => value.to_owned(),
    }
}

/// One layer under the name that a reader knows it by.
struct Named {
    name: String,
    tree: Result<Dict, figment::Error>,
}

impl Named {
    fn file(path: &Path, text: &str) -> Self {
        let tree = Toml::string(text)
            .data()
            .map(|mut data| data.remove(&Profile::Default).unwrap_or_default());
        Self {
            name: path.display().to_string(),
            tree,
        }
    }

    /// A setting given as text. Lists and tables are written as in TOML; everything else stays text until the type of
    /// the setting is known, so that a key made of digits stays a key.
    fn text(name: String, path: &str, value: &str) -> Self {
        let parsed = if value.starts_with(['[', '{']) {
            toml::from_str::<toml::Table>(&format!("value = {value}"))
                .ok()
                .and_then(|mut table| table.remove("value"))
                .and_then(|found| Value::serialize(found).ok())
        } else {
            None
        };
        let leaf = parsed.unwrap_or_else(|| Value::from(value));
        let tree = match figment::util::nest(path, leaf) {
            Value::Dict(_, tree) => tree,
            _ => Dict::new(),
        };
        Self { name, tree: Ok(tree) }
    }
}

impl Provider for Named {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let mut map = Map::new();
        map.insert(Profile::Default, self.tree.clone()?);
        Ok(map)
    }
}

#[cfg(test)]
mod tests;

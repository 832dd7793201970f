//! A value that is used but never shown.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What stands in place of a secret wherever a configuration is shown.
pub(super) const HIDDEN: &str = "<hidden>";

/// A setting that must not leave the process: a key, a password. `Debug` and `Serialize` show a placeholder only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself. Every use of this name is a place to look at in review.
    pub const fn reveal(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl<T> Serialize for Secret<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(HIDDEN)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Secret<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // An error of the inner type would quote the value.
        T::deserialize(deserializer)
            .map(Self)
            .map_err(|_| serde::de::Error::custom("is not of the expected type"))
    }
}

impl<T: JsonSchema> JsonSchema for Secret<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Secret_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let inner = T::json_schema(generator);
        json_schema!({ "allOf": [inner], "writeOnly": true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_shows_itself() {
        let secret: Secret<String> = serde_json::from_str("\"s3cr3t\"").unwrap();
        assert_eq!(secret.reveal(), "s3cr3t");
        assert_eq!(format!("{secret:?}"), HIDDEN);
        assert_eq!(serde_json::to_string(&secret).unwrap(), format!("\"{HIDDEN}\""));
        let error = serde_json::from_str::<Secret<u32>>("\"s3cr3t\"").unwrap_err();
        assert!(!error.to_string().contains("s3cr3t"));
    }
}

//! Where a call takes its bearer token from.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::HeaderValue;

use crate::error::BoxError;

type Provided = Pin<Box<dyn Future<Output = Result<String, BoxError>> + Send>>;

/// Gives each call its token. Never shown in `Debug`.
#[derive(Clone, Default)]
pub struct Credentials(Source);

#[derive(Clone, Default)]
enum Source {
    #[default]
    Anonymous,
    Fixed(HeaderValue),
    Provider(Arc<dyn Fn() -> Provided + Send + Sync>),
}

/// The text cannot be a bearer token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a token consists of visible ASCII characters")]
pub struct TokenSyntax;

impl Credentials {
    /// No token: for health checks.
    pub fn anonymous() -> Self {
        Self(Source::Anonymous)
    }

    /// One token for every call.
    pub fn token(token: &str) -> Result<Self, TokenSyntax> {
        Ok(Self(Source::Fixed(bearer(token)?)))
    }

    /// A token per call: minted, or renewed when the old one is about to end. The provider caches if that is costly.
    pub fn provider<F, Fut>(provider: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, BoxError>> + Send + 'static,
    {
        Self(Source::Provider(Arc::new(move || Box::pin(provider()))))
    }

    pub(crate) async fn header(&self) -> Result<Option<HeaderValue>, BoxError> {
        match &self.0 {
            Source::Anonymous => Ok(None),
            Source::Fixed(value) => Ok(Some(value.clone())),
            Source::Provider(provider) => Ok(Some(bearer(&provider().await?)?)),
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::Anonymous => "Credentials::anonymous",
            Source::Fixed(_) => "Credentials::token",
            Source::Provider(_) => "Credentials::provider",
        })
    }
}

fn bearer(token: &str) -> Result<HeaderValue, TokenSyntax> {
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(TokenSyntax);
    }
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| TokenSyntax)?;
    value.set_sensitive(true);
    Ok(value)
}

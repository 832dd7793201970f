//! What is asked and what comes back.

use bytes::Bytes;
use url::Url;

use crate::FetchError;

/// One question to one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The address.
    pub url: Url,
    /// The value of `Accept`, if it matters.
    pub accept: Option<&'static str>,
    /// A JSON body makes it a POST.
    pub json: Option<String>,
    /// The answer is wanted only if it differs from the one with this ETag.
    pub etag: Option<String>,
    /// Most bytes of the answer; the guard's own limit holds as well.
    pub limit: Option<u64>,
}

impl Request {
    /// A plain GET.
    pub fn get(url: Url) -> Self {
        Self {
            url,
            accept: None,
            json: None,
            etag: None,
            limit: None,
        }
    }

    /// A POST of JSON text.
    pub fn post_json(url: Url, json: String) -> Self {
        Self {
            json: Some(json),
            ..Self::get(url)
        }
    }

    /// Asks for a media type.
    #[must_use]
    pub fn accept(mut self, accept: &'static str) -> Self {
        self.accept = Some(accept);
        self
    }

    /// Takes at most this many bytes.
    #[must_use]
    pub fn limit(mut self, bytes: u64) -> Self {
        self.limit = Some(bytes);
        self
    }
}

/// What a host said. Any status: a missing page is an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The address that answered, after redirects.
    pub url: Url,
    /// The answer's ETag.
    pub etag: Option<String>,
    /// Its media type.
    pub content_type: Option<String>,
    /// The whole body; empty if it is the same as before.
    pub body: Bytes,
}

impl Answer {
    /// Whether it is the thing that was asked for.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether what the asker has still holds.
    pub fn is_unchanged(&self) -> bool {
        self.status == 304
    }
}

/// Asks. The one implementation that reaches the internet is [`Guarded`](crate::Guarded).
#[async_trait::async_trait]
pub trait Fetch: std::fmt::Debug + Send + Sync {
    /// Asks once; never retries.
    async fn fetch(&self, request: Request) -> Result<Answer, FetchError>;
}

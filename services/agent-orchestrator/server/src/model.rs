//! The configured model: which one is used for what, and what its errors become.
//!
//! Nothing that a provider says leaves this module but the class of an error and an HTTP status: its words may repeat a key
//! or somebody's prompt.

mod measured;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use steward_base::{Clock, Fault as _};
use steward_model::{
    AnthropicOptions, CacheTtl, Cost, ModelError, PriceBook, Provider, ProviderConfig, ProviderKind, RetryPolicy,
    Retrying, Secret, Thinking, TokioSleeper, Usage,
};
use steward_orchestrator_core::Error;
use steward_orchestrator_core::session::Usage as StoredUsage;
use steward_runtime::StartError;

use self::measured::{Measured, Meter};
use crate::config::{AnthropicModelConfig, CacheLife, ModelConfig, ModelProvider, Reasoning};
use crate::metrics::ModelMetrics;

/// The model of an installation, or that there is none.
#[derive(Clone)]
pub(crate) struct Models {
    endpoint: Option<Arc<Endpoint>>,
    context_window: u32,
}

struct Endpoint {
    /// The same server twice, since its calls are counted by what they are for.
    for_turns: Arc<dyn Provider>,
    for_jobs: Arc<dyn Provider>,
    kind: ProviderKind,
    base_url: String,
    /// What a session may use; the first is the one for turns.
    names: Vec<String>,
    review: String,
    max_output_tokens: Option<u32>,
    meter: Meter,
}

/// A model that may be asked.
#[derive(Clone)]
pub(crate) struct Chosen {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) name: String,
    pub(crate) max_output_tokens: Option<u32>,
    meter: Meter,
}

/// Which model is used where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) configured: bool,
    pub(crate) model: String,
    pub(crate) base_url: String,
    pub(crate) review_model: String,
    pub(crate) context_window: u32,
    /// Protocol: `openai` or `anthropic`.
    pub(crate) provider: &'static str,
    /// What a session may use; the first is the one for turns.
    pub(crate) models: Vec<String>,
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models")
            .field("route", &self.route())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chosen")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Models {
    /// From settings that were checked. Nothing is sent yet.
    pub(crate) fn from_config(config: &ModelConfig, clock: Arc<dyn Clock>) -> Result<Self, StartError> {
        let given = |value: &Option<String>| {
            value
                .as_deref()
                .map(str::trim)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        let (Some(base_url), Some(name)) = (given(&config.base_url), given(&config.name)) else {
            return Ok(Self {
                endpoint: None,
                context_window: config.context_window,
            });
        };
        let server = server(config, &base_url);
        let (kind, vendor, cache) = (server.kind, server.vendor().to_owned(), server.anthropic.cache);
        let provider = server
            .build()
            .map_err(|error| StartError::new("prepare the model's client", error.reason()))?;
        let policy = RetryPolicy {
            attempts: config.attempts,
            base: Duration::from_millis(config.retry_base_ms.into()),
            ..RetryPolicy::default()
        };
        let retrying = Retrying::new(provider, policy, Arc::clone(&clock), Arc::new(TokioSleeper));
        let retrying: Arc<dyn Provider> = Arc::new(retrying);
        let meter = Meter {
            vendor,
            cache: cache.unwrap_or_default(),
            prices: Arc::new(PriceBook::builtin().map_err(|error| StartError::new("read the prices", error))?),
            clock,
            metrics: ModelMetrics::of_process(),
        };
        let measured = |purpose| {
            Arc::new(Measured {
                inner: Arc::clone(&retrying),
                meter: meter.clone(),
                purpose,
            })
        };
        let endpoint = Endpoint {
            for_turns: measured("turn"),
            for_jobs: measured("job"),
            kind,
            base_url,
            review: given(&config.review_model).unwrap_or_else(|| name.clone()),
            names: names(name, &config.others),
            max_output_tokens: config.max_output_tokens,
            meter,
        };
        Ok(Self {
            endpoint: Some(Arc::new(endpoint)),
            context_window: config.context_window,
        })
    }

    /// Which model is used where, without keys.
    pub(crate) fn route(&self) -> Route {
        let Some(endpoint) = &self.endpoint else {
            return Route::default();
        };
        Route {
            configured: true,
            model: endpoint.name().to_owned(),
            base_url: endpoint.base_url.clone(),
            review_model: endpoint.review.clone(),
            context_window: self.context_window,
            provider: match endpoint.kind {
                ProviderKind::OpenAi => "openai",
                ProviderKind::Anthropic => "anthropic",
            },
            models: endpoint.names.clone(),
        }
    }

    /// The model of this name, if a session may use it; empty: the one for turns.
    pub(crate) fn for_turns(&self, model: &str) -> Result<Chosen, Error> {
        let endpoint = self.endpoint()?;
        let name = if model.is_empty() { endpoint.name() } else { model };
        let known = endpoint.names.iter().any(|known| known == name);
        endpoint.choose(known, &endpoint.for_turns, name)
    }

    /// The model of this name; empty: the one for the purpose.
    pub(crate) fn for_jobs(&self, model: &str) -> Result<Chosen, Error> {
        let endpoint = self.endpoint()?;
        let name = if model.is_empty() { &endpoint.review } else { model };
        let known = name == endpoint.review || endpoint.names.iter().any(|known| known == name);
        endpoint.choose(known, &endpoint.for_jobs, name)
    }

    fn endpoint(&self) -> Result<&Arc<Endpoint>, Error> {
        self.endpoint.as_ref().ok_or(Error::ModelNotConfigured)
    }
}

impl Endpoint {
    fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    fn choose(&self, known: bool, provider: &Arc<dyn Provider>, model: &str) -> Result<Chosen, Error> {
        if !known {
            return Err(Error::ModelUnknown {
                model: model.to_owned(),
            });
        }
        Ok(Chosen {
            provider: Arc::clone(provider),
            name: model.to_owned(),
            max_output_tokens: self.max_output_tokens,
            meter: self.meter.clone(),
        })
    }
}

impl Chosen {
    /// What a call cost, in millionths of a millionth of a dollar, if its price is known.
    pub(crate) fn cost_picodollars(&self, usage: &Usage) -> Option<u64> {
        match self.meter.cost(&self.name, usage) {
            Cost::Priced(money) => u64::try_from(money.picodollars()).ok(),
            Cost::Unpriced(_) => None,
        }
    }

    /// The sum over calls; `None` when one of them has no known price.
    pub(crate) fn cost_of<'u>(&self, calls: impl Iterator<Item = &'u StoredUsage>) -> Option<u64> {
        let each = calls.map(|usage| {
            self.cost_picodollars(&Usage {
                input: usage.input,
                cached_input: usage.cached_input,
                cache_write: usage.cache_write,
                output: usage.output,
                reasoning: None,
            })
        });
        each.sum()
    }
}

/// The model for turns, then the others, each once.
fn names(first: String, others: &[String]) -> Vec<String> {
    let mut names = vec![first];
    for other in others.iter().map(|name| name.trim()) {
        if !names.iter().any(|known| known == other) {
            names.push(other.to_owned());
        }
    }
    names
}

fn server(config: &ModelConfig, base_url: &str) -> ProviderConfig {
    let kind = match config.provider {
        ModelProvider::OpenAi => ProviderKind::OpenAi,
        ModelProvider::Anthropic => ProviderKind::Anthropic,
    };
    let api_key = config.api_key.as_ref().map(|key| Secret::new(key.reveal().clone()));
    let mut server = ProviderConfig::new(kind, base_url, api_key);
    server.connect_timeout = Duration::from_secs(config.connect_seconds.into());
    server.read_timeout = Duration::from_secs(config.silence_seconds.into());
    server.anthropic = anthropic(&config.anthropic);
    server
}

fn anthropic(config: &AnthropicModelConfig) -> AnthropicOptions {
    AnthropicOptions {
        betas: config.betas.clone(),
        cache: match config.cache {
            CacheLife::Off => None,
            CacheLife::FiveMinutes => Some(CacheTtl::FiveMinutes),
            CacheLife::OneHour => Some(CacheTtl::OneHour),
        },
        thinking: match config.thinking {
            Reasoning::Unset => Thinking::Unset,
            Reasoning::Off => Thinking::Off,
            Reasoning::Adaptive => Thinking::Adaptive,
            Reasoning::Budget => Thinking::Budget(config.thinking_tokens.unwrap_or_default()),
        },
        ..AnthropicOptions::default()
    }
}

/// What an error of a model call is to people.
pub(crate) fn model_error(model: &str, error: &ModelError) -> Error {
    let model = model.to_owned();
    match error {
        ModelError::RateLimited { retry_after, .. } => Error::ModelQuota {
            model,
            retry_after: *retry_after,
        },
        ModelError::QuotaExhausted { .. } => Error::ModelQuota {
            model,
            retry_after: None,
        },
        ModelError::Overloaded { retry_after, .. } => Error::ModelUnavailable {
            model,
            retry_after: *retry_after,
        },
        ModelError::Unreachable { .. } | ModelError::TimedOut => Error::ModelUnavailable {
            model,
            retry_after: None,
        },
        ModelError::ContextTooLong { .. } => Error::ContextTooLong { model },
        ModelError::CredentialRefused { status, .. } | ModelError::Rejected { status, .. } => {
            Error::ModelRefused { model, status: *status }
        }
        ModelError::BrokenOff | ModelError::Unreadable { .. } | ModelError::TooLarge { .. } | ModelError::Empty => {
            Error::ModelAnswerInvalid { model }
        }
        ModelError::NotAvailable { .. } => Error::ModelNotConfigured,
        ModelError::InvalidRequest { .. } => Error::internal("render a model request", error.reason()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_testkit::MockClock;

    fn models(config: &ModelConfig) -> Models {
        Models::from_config(config, Arc::new(MockClock::default())).unwrap()
    }

    #[test]
    fn without_a_model_everything_says_so() {
        let none = models(&ModelConfig::default());
        assert!(!none.route().configured);
        assert!(matches!(none.for_turns(""), Err(Error::ModelNotConfigured)));
    }

    #[test]
    fn only_configured_models_may_be_asked() {
        let config = ModelConfig {
            base_url: Some("http://127.0.0.1:9/v1".to_owned()),
            name: Some("big".to_owned()),
            review_model: Some("small".to_owned()),
            ..ModelConfig::default()
        };
        let models = models(&config);
        assert_eq!(models.for_turns("").unwrap().name, "big");
        assert_eq!(models.for_jobs("").unwrap().name, "small");
        assert_eq!(models.for_jobs("big").unwrap().name, "big");
        for unknown in ["other", "small"] {
            assert!(matches!(models.for_turns(unknown), Err(Error::ModelUnknown { model }) if model == unknown));
        }
        assert!(models.for_jobs("other").is_err());
    }

    #[test]
    fn a_session_may_use_the_other_models_too() {
        let config = ModelConfig {
            provider: ModelProvider::Anthropic,
            base_url: Some("http://127.0.0.1:9".to_owned()),
            name: Some("big".to_owned()),
            others: ["quick", "big", "quick"].map(str::to_owned).to_vec(),
            ..ModelConfig::default()
        };
        let models = models(&config);
        assert_eq!(models.for_turns("quick").unwrap().name, "quick");
        assert_eq!(models.for_jobs("quick").unwrap().name, "quick");
        let route = models.route();
        assert_eq!((route.model.as_str(), route.provider), ("big", "anthropic"));
        assert_eq!(route.models, ["big", "quick"]);
    }

    /// D-12: a refused key that the provider repeats goes no further.
    #[test]
    fn no_word_of_a_provider_is_in_an_error() {
        let message = "key sk-123 of ann".to_owned();
        let said = [
            ModelError::RateLimited {
                message: message.clone(),
                retry_after: None,
            },
            ModelError::CredentialRefused {
                status: 401,
                message: message.clone(),
            },
            ModelError::Overloaded {
                status: 503,
                message: message.clone(),
                retry_after: None,
            },
            ModelError::Unreadable { what: message.clone() },
            ModelError::InvalidRequest { what: message },
        ];
        for error in &said {
            let ours = model_error("m", error);
            assert!(!steward_base::error_chain(&ours).contains("sk-123"), "{ours}");
        }
    }
}

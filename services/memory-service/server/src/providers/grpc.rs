//! A provider that speaks `steward.memory.provider.v1`.

use async_trait::async_trait;
use steward_base::names::{TeamId, UserId};
use steward_client::{Credentials, Wire};
use steward_memory_core::provider::{Erasing, Event, Hello, Provider, ProviderError, Scope, ToolCall, ToolReply, Turn};
use steward_proto::memory::provider::v1 as pb;
use steward_proto::memory::provider::v1::memory_provider_service_client::MemoryProviderServiceClient;
use tonic::{Code, Status};

/// Largest answer, in bytes.
const MOST_BYTES: usize = 1_048_576;

/// A provider behind a connection that is made when it is first needed.
#[derive(Debug, Clone)]
pub(crate) struct GrpcProvider {
    wire: Wire,
}

impl GrpcProvider {
    /// At `http://host:port`, `https://host:port` or `unix:///path`, with a bearer token if `key` is not empty.
    pub(crate) fn connect(url: &str, key: &str) -> Result<Self, String> {
        let wire = Wire::connect(url).map_err(|error| error.to_string())?;
        if key.is_empty() {
            return Ok(Self { wire });
        }
        let credentials = Credentials::token(key).map_err(|error| error.to_string())?;
        Ok(Self {
            wire: wire.with_credentials(credentials),
        })
    }

    /// Over a connection that is there.
    #[cfg(test)]
    pub(crate) const fn over(wire: Wire) -> Self {
        Self { wire }
    }

    fn client(&self) -> MemoryProviderServiceClient<Wire> {
        MemoryProviderServiceClient::new(self.wire.clone()).max_decoding_message_size(MOST_BYTES)
    }
}

fn scope_to_pb(scope: &Scope) -> pb::Scope {
    pb::Scope {
        team: scope.team.to_string(),
        user: scope.user.to_string(),
        session: scope.session.to_string(),
        project: String::new(),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "made to be used with map_err")]
fn failed(status: Status) -> ProviderError {
    ProviderError(format!("{:?}", status.code()))
}

#[async_trait]
impl Provider for GrpcProvider {
    async fn initialize(&self, scope: &Scope) -> Result<Hello, ProviderError> {
        let request = pb::InitializeRequest {
            scope: Some(scope_to_pb(scope)),
        };
        let answer = self.client().initialize(request).await.map_err(failed)?.into_inner();
        Ok(Hello {
            block: answer.system_prompt_block,
            tools: answer.tools_json,
        })
    }

    async fn prefetch(&self, scope: &Scope, query: &str, limit: usize) -> Result<Vec<String>, ProviderError> {
        let request = pb::PrefetchRequest {
            scope: Some(scope_to_pb(scope)),
            query: query.to_owned(),
            limit: i32::try_from(limit).unwrap_or(i32::MAX),
        };
        Ok(self
            .client()
            .prefetch(request)
            .await
            .map_err(failed)?
            .into_inner()
            .items)
    }

    async fn sync_turn(&self, scope: &Scope, turn: &Turn) -> Result<(), ProviderError> {
        let request = pb::SyncTurnRequest {
            scope: Some(scope_to_pb(scope)),
            turn: turn.id.clone(),
            user_text: turn.user.clone(),
            assistant_text: turn.assistant.clone(),
        };
        self.client().sync_turn(request).await.map(drop).map_err(failed)
    }

    async fn call_tool(&self, scope: &Scope, call: &ToolCall) -> Result<ToolReply, ProviderError> {
        let request = pb::CallToolRequest {
            scope: Some(scope_to_pb(scope)),
            tool: call.tool.clone(),
            arguments_json: call.arguments_json.clone(),
            call: call.id.clone(),
        };
        let answer = self.client().call_tool(request).await.map_err(failed)?.into_inner();
        Ok(ToolReply {
            content: answer.content,
            is_error: answer.is_error,
        })
    }

    async fn observe(&self, scope: &Scope, event: &Event, id: &str) -> Result<String, ProviderError> {
        let (kind, detail) = match event {
            Event::TurnStart(text) => (pb::Event::TurnStart, text.as_str()),
            Event::PreCompress(text) => (pb::Event::PreCompress, text.as_str()),
            Event::MemoryWrite(text) => (pb::Event::MemoryWrite, text.as_str()),
            Event::Delegation(text) => (pb::Event::Delegation, text.as_str()),
            Event::SessionEnd => (pb::Event::SessionEnd, ""),
        };
        let request = pb::ObserveRequest {
            scope: Some(scope_to_pb(scope)),
            event: kind.into(),
            detail: detail.to_owned(),
            id: id.to_owned(),
        };
        Ok(self.client().observe(request).await.map_err(failed)?.into_inner().text)
    }

    async fn erase_person(&self, team: &TeamId, user: &UserId) -> Result<Erasing, ProviderError> {
        let request = pb::ErasePersonRequest {
            team: team.to_string(),
            user: user.to_string(),
        };
        match self.client().erase_person(request).await {
            Ok(_) => Ok(Erasing::Erased),
            Err(status) if status.code() == Code::Unimplemented => Ok(Erasing::Unsupported),
            Err(status) => Err(failed(status)),
        }
    }

    async fn shutdown(&self) -> Result<(), ProviderError> {
        self.client()
            .shutdown(pb::ShutdownRequest {})
            .await
            .map(drop)
            .map_err(failed)
    }
}

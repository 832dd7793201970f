//! What is sent piece by piece. The facades' other calls send one message.

use futures::Stream;
use steward_proto::recall::v1::{ImportSessionsRequest, ImportSessionsResponse};

use super::RecallClient;
use crate::error::ClientError;

impl RecallClient {
    /// Calls `ImportSessions`'s RPC: the items are sent as they come, the answer follows the last one. It has no deadline of
    /// its own.
    pub async fn import_sessions(
        &self,
        items: impl Stream<Item = ImportSessionsRequest> + Send + 'static,
    ) -> Result<ImportSessionsResponse, ClientError> {
        let answer = self.generated().import_sessions(items).await?;
        Ok(answer.into_inner())
    }
}

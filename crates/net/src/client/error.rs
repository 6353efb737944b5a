//! Failures of the instrumented transports as failures of the client.

use mcpace_client_protocol::ClientError;

use crate::NetError;

impl From<NetError> for ClientError {
    fn from(error: NetError) -> Self {
        ClientError::Transport { code: error.code(), message: error.to_string() }
    }
}

//! A delegate: another server behind the registry, which takes whole requests.
//!
//! Constraint: a delegate knows the protocol itself. Its results reach the client unchanged. Requests for registered
//! components (such as a tool that was taken over from that server) never reach the delegate.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use mcpace_wire::jsonrpc::write_notification;
use mcpace_wire::mcp::{Json, Method};

use super::{AskError, Context};

/// A server behind the registry; see [`crate::Server::delegate`].
pub trait Delegate: Send + Sync + 'static {
    /// Whether requests of this method go to it: `tools/call` for tools that the registry doesn't have, any other method
    /// whole. An `initialize` still begins our session, whatever the delegate answers to it.
    fn takes(&self, method: Method) -> bool;

    /// Takes a request: [`Context::method`], [`Context::params`]. The future is dropped when the client no longer wants the
    /// result.
    fn call(&self, context: Context) -> Delegated;
}

/// A delegate's answer, some time: the result, a JSON object.
pub type Delegated = Pin<Box<dyn Future<Output = Result<Bytes, DelegateError>> + Send>>;

/// A JSON-RPC error of a delegate's, told as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct DelegateError {
    /// Its code.
    pub code: i64,
    /// Its words.
    pub message: String,
    /// Details that the error code defines.
    pub data: Option<Json>,
}

impl Context {
    /// Method of the request.
    #[must_use]
    pub fn method(&self) -> Method {
        self.request().method
    }

    /// The request's whole parameters, as they came.
    #[must_use]
    pub fn params(&self) -> Option<&Bytes> {
        self.request().params.as_ref()
    }

    /// Sends any notification ahead of the result. Whether the protocol has it here is the caller's business; nothing
    /// happens when the client can't be reached.
    pub fn send_notification(&self, method: &str, params: Option<&Json>) {
        let mut message = Vec::with_capacity(160);
        if write_notification(&mut message, method, params).is_ok() {
            // A client that is gone misses nothing that it could still use.
            let _ = self.request().outlet.tell(message.into());
        }
    }

    /// Sends a request to the client of a legacy session and returns its result unchanged. The caller has to check that the
    /// client declared the capability.
    ///
    /// # Errors
    /// See [`AskError`]; [`AskError::Unreachable`] outside of legacy sessions.
    pub async fn send_request(&self, method: Method, params: Option<&Json>) -> Result<Box<str>, AskError> {
        match self.session().filter(|_| self.revision().is_legacy()) {
            Some(session) => self.ask_now(session, method, params).await,
            None => Err(AskError::Unreachable),
        }
    }
}

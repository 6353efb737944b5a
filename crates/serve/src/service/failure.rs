//! How a handler fails, and how much of it the client is told.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::{CallToolResult, Extra, Json};

use super::{AskError, InputRequired};

/// Why a handler has no result.
///
/// What the client learns depends on how the error was made: the words of [`HandlerError::new`] are for it; any error that
/// came by `?` is the server's own affair, goes to the log, and the client reads `internal error` (unless
/// [`crate::Builder::tell_failures`] says otherwise).
///
/// ```
/// use mcpace_serve::{HandlerError, ToolError};
///
/// fn half(of: i64) -> Result<i64, ToolError> {
///     if of % 2 == 1 {
///         return Err(ToolError::new("an odd number has no half"));
///     }
///     let divisor: i64 = "2".parse()?; // told as 'internal error', were it to fail
///     Ok(of / divisor)
/// }
/// # assert_eq!(half(4).unwrap(), 2);
/// ```
pub struct HandlerError(Box<HandlerFailure>);

/// [`HandlerError`] of a tool.
pub type ToolError = HandlerError;

/// Reason why a handler returned no result.
pub(crate) enum HandlerFailure {
    /// For the client, in the author's words. In tools a result with `isError`, elsewhere a JSON-RPC error.
    Told(CallToolResult),
    /// Not for the client.
    Internal(Box<dyn Error + Send + Sync>),
    /// A JSON-RPC error of the author's choice.
    Protocol {
        /// Its code.
        code: i64,
        /// One sentence.
        message: Cow<'static, str>,
        /// Details that the error code defines.
        data: Option<Json>,
    },
    /// There is no such resource.
    NotFound,
    /// The round ends with questions.
    Input(InputRequired),
    /// The client has not declared what this needs.
    Undeclared(Extra),
}

impl HandlerError {
    /// A failure that the client (in tools: the model) is told in these words.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        HandlerFailure::Told(CallToolResult::error(message)).into()
    }

    /// A tool's failure in any shape; `isError` is set. Outside tools only the first text of it is told.
    #[must_use]
    pub fn result(mut result: CallToolResult) -> Self {
        result.is_error = Some(true);
        HandlerFailure::Told(result).into()
    }

    /// A failure that the client is told nothing of but that it happened.
    #[must_use]
    pub fn internal(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        HandlerFailure::Internal(error.into()).into()
    }

    /// A JSON-RPC error. Codes from −32768 to −32000 are JSON-RPC's and the specification's.
    #[must_use]
    pub fn protocol(code: i64, message: impl Into<Cow<'static, str>>, data: Option<Json>) -> Self {
        HandlerFailure::Protocol { code, message: message.into(), data }.into()
    }

    /// Parameters that can't be (−32602), in these words.
    #[must_use]
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::protocol(code::INVALID_PARAMS, message, None)
    }

    /// There is no such resource: −32002 in legacy revisions, −32602 since 2026-07-28, with its URI.
    #[must_use]
    pub fn not_found() -> Self {
        HandlerFailure::NotFound.into()
    }

    pub(crate) fn into_kind(self) -> HandlerFailure {
        match *self.0 {
            // A question that came by `?` is still one.
            HandlerFailure::Internal(error) => match error.downcast::<AskError>() {
                Ok(asked) => asked.into_kind(),
                Err(error) => HandlerFailure::Internal(error),
            },
            kind => kind,
        }
    }
}

impl From<HandlerFailure> for HandlerError {
    fn from(kind: HandlerFailure) -> Self {
        HandlerError(Box::new(kind))
    }
}

// Possible because `HandlerError` itself is no `Error`: nothing wraps it, dispatch takes it apart.
impl<E: Error + Send + Sync + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        HandlerFailure::Internal(Box::new(error)).into()
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            HandlerFailure::Told(result) => f.debug_tuple("Told").field(&result.content).finish(),
            HandlerFailure::Internal(error) => f.debug_tuple("Internal").field(error).finish(),
            HandlerFailure::Protocol { code, message, .. } => {
                f.debug_tuple("Protocol").field(code).field(message).finish()
            }
            HandlerFailure::NotFound => f.write_str("NotFound"),
            HandlerFailure::Input(input) => f.debug_tuple("Input").field(input).finish(),
            HandlerFailure::Undeclared(required) => f.debug_tuple("Undeclared").field(required).finish(),
        }
    }
}

//! Completing what somebody types into an argument of a prompt or a variable of a resource template.

use std::collections::BTreeMap;
use std::future::Future;

use mcpace_wire::mcp::{self, CompletionRef};

use super::handler::Handler;
use super::{Context, HandlerError};

/// Text that the user has typed so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompletionRequest {
    /// The argument so far.
    pub value: String,
    /// The other arguments, as far as settled. Since 2025-06-18.
    pub settled: BTreeMap<String, String>,
    /// Whose argument it is.
    pub of: Option<CompletionRef>,
    /// Its name.
    pub argument: String,
}

/// Proposals for any argument, told as they are.
pub(crate) type Completer = Handler<CompletionRequest, mcp::Completion>;

pub(crate) type CompletionHandler = Handler<CompletionRequest, Vec<String>>;

/// Proposals for one argument, to register with [`crate::Builder::completion`]. The first 100 are told, with how many there
/// are.
///
/// ```
/// use mcpace_serve::{Completion, CompletionRequest, HandlerError};
///
/// let languages = Completion::prompt("review", "language").handler(|typed: CompletionRequest| {
///     let known = ["python", "rust"].map(str::to_owned);
///     Ok::<_, HandlerError>(known.into_iter().filter(|name| name.starts_with(&typed.value)).collect())
/// });
/// ```
pub struct Completion {
    pub(crate) of: Completed,
    pub(crate) argument: String,
    pub(crate) handler: Option<CompletionHandler>,
}

/// Whose argument.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Completed {
    Prompt(String),
    Template(String),
}

impl Completion {
    /// For an argument of a prompt.
    #[must_use]
    pub fn prompt(name: impl Into<String>, argument: impl Into<String>) -> Self {
        Self { of: Completed::Prompt(name.into()), argument: argument.into(), handler: None }
    }

    /// For a variable of a resource template.
    #[must_use]
    pub fn resource_template(template: impl Into<String>, variable: impl Into<String>) -> Self {
        Self { of: Completed::Template(template.into()), argument: variable.into(), handler: None }
    }

    /// Proposes on the thread that read the request, at once.
    #[must_use]
    pub fn handler<F>(mut self, handler: F) -> Self
    where
        F: Fn(CompletionRequest) -> Result<Vec<String>, HandlerError> + Send + Sync + 'static,
    {
        self.handler = Some(Handler::plain(handler));
        self
    }

    /// Proposes in a future, with a [`Context`].
    #[must_use]
    pub fn handler_async<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(CompletionRequest, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<String>, HandlerError>> + Send + 'static,
    {
        self.handler = Some(Handler::asynchronous(handler));
        self
    }
}

//! The author's code: tools, resources, prompts, completions, and what they may use while they run.
//!
//! Constraint: a handler is turned into one erased closure at registration, which goes from raw arguments to result bytes
//! without anything in between that it didn't ask for. A plain one never sees a future, a [`Context`] or a clock.

pub(crate) mod arguments;
mod ask;
mod completion;
mod context;
mod delegate;
mod described;
mod detach;
mod failure;
mod handler;
mod indent;
mod input;
mod output;
mod panic;
mod prompt;
mod raw;
mod resource;
mod template;
mod tool;

pub use arguments::NoArguments;
pub use ask::{AskError, Elicited};
pub(crate) use completion::{Completed, Completer, CompletionHandler};
pub use completion::{Completion, CompletionRequest};
pub use context::Context;
pub(crate) use context::{OwnedRequest, RequestServer};
pub use delegate::{Delegate, DelegateError, Delegated};
pub(crate) use detach::{Detach, tasks_extension};
pub(crate) use failure::HandlerFailure;
pub use failure::{HandlerError, ToolError};
pub(crate) use handler::Handler;
pub use input::InputRequired;
pub(crate) use input::Inputs;
pub use output::{Structured, ToolOutput, ToolWriter};
pub(crate) use panic::{Panicked, catch_panic, caught_future};
pub(crate) use prompt::PromptHandler;
pub use prompt::{Prompt, PromptOutput};
pub(crate) use raw::Backing;
pub use raw::{RawAnswer, RawCall, RawDone, RawHandler, RawReply};
pub(crate) use resource::ReadHandler;
pub use resource::{Resource, ResourceOutput, ResourceRequest, ResourceTemplate};
pub(crate) use template::UriTemplate;
pub use tool::Tool;
pub(crate) use tool::{AsyncCall, CallFailure, Done, Plain, PlainCall, TaskUse, ToolHandler, Written};

//! The author's code: tools, resources, prompts, completions, and what they may use while they run.
//!
//! Constraint: a handler is turned into one erased closure at registration, which goes from raw arguments to result bytes
//! without anything in between that it didn't ask for. A plain one never sees a future, a [`Context`] or a clock.

pub(crate) mod arguments;
mod context;
mod failure;
mod output;
mod panic;
mod tool;

pub use arguments::NoArguments;
pub use context::Context;
pub(crate) use context::Request;
pub(crate) use failure::Kind;
pub use failure::{HandlerError, ToolError};
pub use output::{Structured, ToolOutput, ToolWriter};
pub(crate) use panic::{Panicked, caught, caught_future};
pub use tool::Tool;
pub(crate) use tool::{AsyncCall, CallFailure, Plain, PlainCall, ToolHandler, Written};

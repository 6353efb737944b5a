//! The runtime: an MCP server in three layers, transport → dispatch → service, with a clock between them.
//!
//! - *Transport* turns sockets and pipes into messages and replies: HTTP, stdio.
//! - *Dispatch* knows the protocol and what was registered; everything that can be worked out at registration is.
//! - *Service* is the author's code: tools, resources, prompts.
//!
//! Design constraint: the plain case (a small tool call over JSON) allocates for its reply and little else; whatever a
//! handler doesn't use (context, cancellation, streams) is made only when it asks. Knows nothing of the lab, nor of Python.
//!
//! ```no_run
//! use mcpace_serve::{Context, Server, Tool, ToolError, http};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Greet {
//!     /// Whom.
//!     name: String,
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder("greeter", "1.0")
//!     .tool(Tool::new("greet").description("Greets").handler(|greet: Greet| {
//!         Ok::<_, ToolError>(format!("Hello, {}", greet.name))
//!     }))
//!     .tool(Tool::new("greet-slowly").handler_async(|greet: Greet, context: Context| async move {
//!         context.progress(1.0, Some(2.0), Some("Clearing my throat"));
//!         Ok::<_, ToolError>(format!("Hello, {}", greet.name))
//!     }))
//!     .build()?;
//! let running = http::serve(server, http::Options::default())?;
//! println!("listening on {}", running.address());
//! # Ok(())
//! # }
//! ```

mod build_error;
mod builder;
mod catalogue;
mod catalogue_update;
mod dispatch;
mod exchange;
pub mod guard;
mod headers;
pub mod http;
mod identity;
mod limits;
mod open_subscriptions;
mod outlet;
mod per_process;
mod principal;
mod push;
mod server;
mod server_state;
mod service;
pub mod session;
mod session_registry;
pub mod stdio;
pub mod store;
mod tasks;
pub mod telemetry;

pub use build_error::BuildError;
pub use builder::Builder;
pub use catalogue_update::Changes;
pub use exchange::{Challenge, Channel, Handled, Incoming, Peer, Reply, ReplyStatus, Timing, TransportKind};
pub use headers::{Ends, Headers};
pub use identity::Identity;
pub use limits::Limits;
pub use outlet::{Gone, Outlet};
pub use per_process::PerProcess;
pub use principal::Principal;
pub use push::NotifyError;
pub use server::Server;
pub use service::{
    AskError, Completion, CompletionRequest, Context, Delegate, DelegateError, Delegated, Elicited, HandlerError,
    InputRequired, NoArguments, Prompt, PromptOutput, RawAnswer, RawCall, RawDone, RawHandler, RawReply, Resource,
    ResourceOutput, ResourceRequest, ResourceTemplate, Structured, Tool, ToolError, ToolOutput, ToolWriter,
};

/// The guide's examples, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct Guide;

//! The runtime's MCP client: every revision, over Streamable HTTP, HTTP+SSE, stdio and any pair of streams.
//!
//! Design constraints: one call on a warm connection costs one buffer, one write and one read, is polled by whoever awaits
//! it, and starts no task; a reply's text is handed on, not copied. Everything that a peer controls has a limit. Nothing outlives
//! the last [`Client`]: connections, tasks and the server's process end with it. Knows the wire and OAuth, not the lab.
//!
//! ```no_run
//! use mcpace_client::{Client, Options, Target};
//!
//! # async fn run() -> Result<(), mcpace_client::ClientError> {
//! let client = Client::connect(Target::url("http://127.0.0.1:8000/mcp")?, Options::default()).await?;
//! let arguments = serde_json::json!({"name": "Ada"});
//! let result = client.call_tool("greet", &arguments).await?;
//! println!("{:?}", result.content);
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! The way of a request: `requests` (what each method sends) → `client` (session, time limit, rounds) → `transport` (HTTP,
//! pipe). Messages of the server that answer no request go to `inbound`, and from there to the [`Callbacks`]. The protocol
//! itself (negotiation, bodies, replies, resumption) is the crate `mcpace-client-protocol`.
//!
//! Deliberately absent: validation of results against output schemas, HTTP/2, tasks of 2025-11-25.

mod cache;
mod callbacks;
mod client;
mod connect;
mod inbound;
mod lists;
mod lock;
mod options;
mod requests;
mod rounds;
mod session;
mod subscription;
mod task_calls;
mod transport;
mod underway;

pub use cache::CacheMode;
pub use callbacks::{Callbacks, ClientQuestion, ServerNotification};
pub use client::Client;
pub use lists::List;
pub use mcpace_client_protocol::{ClientError, Mode, Raw, RpcError, ServerInfo, Transport};
pub use mcpace_oauth::{
    Asserted, Auth, BrowserConsent, Consent, IdentityProvider, OAuthError, OAuthOptions, RegisteredClient, Secret,
};
pub use options::{Arguments, CallOptions, Limits, Options, Progress};
pub use subscription::{Change, Subscription};
pub use transport::{Program, Socket, Target};

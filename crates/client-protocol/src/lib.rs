//! The client side of MCP without I/O. Two clients drive it: the runtime's (`mcpace-client`) over its pooled transports, and
//! the lab's instrumented one (`mcpace-net`) over transports that stamp each byte.
//!
//! Design constraint: nothing here opens a socket, starts a task or reads a clock. A driver reports events with `handle_*`
//! methods and carries out what they return; a time limit is a value that the driver is asked to keep. Tests therefore need
//! no server and no waiting.
//!
//! - [`negotiation`]: which revision is spoken, and whether the transport has to be opened anew.
//! - [`request`]: a request as one buffer of JSON, and the headers that repeat parts of it.
//! - [`inbound`]: the messages in a text of the server, and the replies that are still awaited.
//! - [`reply`]: results, errors and the replies that are neither.
//! - [`resumption`]: when and where a broken stream of events is resumed.
//!
//! Deliberately absent: transports, callbacks, caches, authorization (see `mcpace-oauth`).

mod error;
pub mod inbound;
pub mod negotiation;
pub mod reply;
pub mod request;
pub mod resumption;

pub use error::{ClientError, RpcError, stderr_end};
pub use negotiation::{Agreement, Mode, Negotiation, ServerEra, ServerInfo, Step, Transport};
pub use reply::{Answer, OtherReply, Raw, ResultKind, ServerReply};
pub use request::{ClientProfile, Dialect, Outgoing, ParamsWriter, TRACE_MEMBERS};

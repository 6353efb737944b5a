//! JSON-RPC 2.0 as MCP uses it: bytes to messages and back.
//!
//! Constraints: one pass over the envelope; `params`, `result` and `data` stay raw and borrowed until a
//! caller that knows their type parses them; strings are copied only where they have escapes. Every message is checked
//! once, here.
//!
//! Protection against hostile peers:
//! - **Depth**: the values that stay raw are skipped without recursion, so depth costs heap, not stack. A
//!   later parser that makes a tree of them has [`serde_json`]'s limit of 128 levels.
//! - **Duplicate members**: a second `id`, `method`, `params`, `result`, `error` or `jsonrpc` is refused, since two
//!   parsers on a path might pick different ones. Unknown members are all kept, in order.
//! - **UTF-8** is checked over the whole text, skipped parts included.
//!
//! Leniency, on purpose: `"params": null` and `"error": null` count as absent, since old clients send them; number ids of
//! any spelling are kept. A lone surrogate escape is only refused where the string is read.
//!
//! Deliberately absent: matching replies to requests, and limits on the size of the text, which the reader of the bytes has.

mod depth;
mod error;
mod id;
mod message;
mod object;
mod read;
pub(crate) mod token;
mod write;

pub use depth::is_deeper_than;
pub use error::{ParseError, code};
pub use id::Id;
pub use message::{ErrorObject, Members, Message, Notification, Outcome, Payload, Request, Response};
pub use read::DEFAULT_BATCH_LIMIT;
pub use write::{write_error, write_notification, write_request, write_result};

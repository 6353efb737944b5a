//! The Recording: what was seen of MCP traffic, as an append-only list of events on one clock, and its file format.
//!
//! Design constraint: pure. No sockets, no files, no clock, no randomness: time, seeds and byte streams are handed in
//! (`std::io::Read`/`Write` only); threads that read ahead change nothing of what comes out. Deliberately absent: any
//! judgement of what the events mean; that is `mcpace-explain`.
//!
//! Every event is redacted *when it is made*: a secret never enters an [`Event`], so it can't leave in a file.

mod ahead;
mod digest;
mod error;
mod event;
mod file;
mod lines;
mod message;
mod numbers;
mod reading;
mod recording;
mod redact;
mod secret_names;
mod span;
mod stack;
mod tcp_info;
mod time;
mod timing;

pub use digest::{Digest, Digester, digest_bytes};
pub use error::RecordError;
pub use event::{
    Body, CallId, CallOutcome, Closer, ConnectionId, Event, EventKind, EvidenceSource, ExchangeId, Header, LineFrom,
    PauseCause, Peer, ReplyEnding, Side,
};
pub use file::{FORMAT, Writer};
pub use message::{MessageKind, MessageNote};
pub use reading::{Events, Reader};
pub use recording::{Instrument, Recording, RecordingHead};
pub use redact::Redactor;
pub use span::{Span, SpanKind};
pub use stack::{StackFrame, StackId};
pub use tcp_info::TcpInfo;
pub use time::Nanos;
pub use timing::ServerTiming;

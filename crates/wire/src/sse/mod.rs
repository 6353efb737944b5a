//! Server-sent events, after the WHATWG HTML standard, §9.2 "Server-sent events"
//! (<https://html.spec.whatwg.org/multipage/server-sent-events.html>).
//!
//! Constraints: any split of the bytes gives the same events; time is linear in the bytes; memory is bounded by the limit
//! plus what the caller feeds before it asks. Bytes that are not UTF-8 become U+FFFD, as the standard says.
//!
//! Deliberately absent: reconnecting. [`Decoder::last_event_id`] and [`Decoder::retry`] are what it needs.

mod decode;
mod encode;

pub use decode::{Decoder, Item, SseError};
pub use encode::{encode_comment, encode_message, encode_retry};

/// One event. After the standard an event is only dispatched if it has data, if empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Event {
    /// The type, where it was named; `None` means `message`.
    pub event: Option<String>,
    /// The data; lines joined by a newline.
    pub data: String,
    /// The `id` that came with this very event. [`Decoder::last_event_id`] tells the one in force.
    pub id: Option<String>,
    /// The `retry` that came with this very event, in milliseconds.
    pub retry: Option<u64>,
}

impl Event {
    /// An event with data and nothing else.
    #[must_use]
    pub fn data(data: impl Into<String>) -> Self {
        Self { data: data.into(), ..Self::default() }
    }

    /// The type as a browser would tell it.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.event.as_deref().unwrap_or("message")
    }
}

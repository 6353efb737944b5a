//! Headers and bodies of each HTTP exchange, as the recording has them: cut and redacted. They stay where they are: what a
//! stream's events say is put together only for the entry that is being written.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

use mcpace_record::{EventKind, ExchangeId, Header, Recording};

/// Headers and bodies of an exchange.
#[derive(Default)]
pub(crate) struct Said<'a> {
    pub(crate) request_headers: &'a [Header],
    pub(crate) request_body: Option<&'a str>,
    pub(crate) reply_headers: &'a [Header],
    reply_text: Option<&'a str>,
    reply_events: Vec<StreamEvent<'a>>,
}

/// One event of a stream.
struct StreamEvent<'a> {
    event: Option<&'a str>,
    id: Option<&'a str>,
    data: &'a str,
}

impl<'a> Said<'a> {
    /// A text body; of an event stream its events, framed as they were sent.
    pub(crate) fn reply_body(&self) -> Option<Cow<'a, str>> {
        match self.reply_text {
            Some(text) => Some(Cow::Borrowed(text)),
            None => (!self.reply_events.is_empty()).then(|| Cow::Owned(frame_events(&self.reply_events))),
        }
    }
}

/// Headers and bodies of all exchanges, by their ids.
pub(crate) fn exchange_bodies(recording: &Recording) -> HashMap<ExchangeId, Said<'_>> {
    let mut said: HashMap<ExchangeId, Said<'_>> = HashMap::new();
    for event in recording.events() {
        match &event.kind {
            EventKind::RequestHead { ex, headers, .. } if !headers.is_empty() => {
                said.entry(*ex).or_default().request_headers = headers;
            }
            EventKind::RequestEnd { ex, body: Some(body), .. } => {
                said.entry(*ex).or_default().request_body = Some(&body.text);
            }
            EventKind::ReplyHead { ex, headers, .. } if !headers.is_empty() => {
                said.entry(*ex).or_default().reply_headers = headers;
            }
            EventKind::ReplyEvent { ex, event, id, body: Some(body), .. } => {
                let event = StreamEvent { event: event.as_deref(), id: id.as_deref(), data: &body.text };
                said.entry(*ex).or_default().reply_events.push(event);
            }
            EventKind::ReplyEnd { ex, body: Some(body), .. } => {
                said.entry(*ex).or_default().reply_text = Some(&body.text);
            }
            _ => {}
        }
    }
    said
}

/// As the HTML standard frames server-sent events.
fn frame_events(events: &[StreamEvent<'_>]) -> String {
    let mut text = String::new();
    for StreamEvent { event, id, data } in events {
        for (name, value) in [("event", event), ("id", id)] {
            if let Some(value) = value {
                // Writing to a String never fails.
                let _ = writeln!(text, "{name}: {value}");
            }
        }
        for line in data.split('\n') {
            let _ = writeln!(text, "data: {line}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use mcpace_record::{Body, Event, Instrument, Nanos, RecordingHead, ReplyEnding, Side, digest_bytes};

    use super::*;

    const STREAM: ExchangeId = ExchangeId(1);
    const WHOLE: ExchangeId = ExchangeId(2);

    fn body(text: &str) -> Option<Body> {
        Some(Body { text: text.to_owned(), cut: false })
    }

    fn event(seq: u32, name: Option<&str>, id: Option<&str>, text: &str) -> EventKind {
        let (side, ex, began, bytes, messages) = (Side::Back, STREAM, Nanos(1), 9, Vec::new());
        let (event, id, body) = (name.map(str::to_owned), id.map(str::to_owned), body(text));
        EventKind::ReplyEvent { side, ex, seq, began, bytes, event, id, messages, body }
    }

    fn recording() -> Recording {
        let head = RecordingHead::bare(Instrument::Client);
        let (side, ex, bytes, digest, ending) = (Side::Back, WHOLE, 2, digest_bytes(b"{}"), ReplyEnding::Complete);
        let end = EventKind::ReplyEnd { side, ex, bytes, digest, ending, messages: Vec::new(), body: body("{}") };
        let kinds = [event(0, None, Some("7"), ""), event(1, Some("message"), None, "one\ntwo"), end];
        Recording::new(head, kinds.into_iter().map(|kind| Event { at: Nanos(2), kind }).collect())
    }

    #[test]
    fn a_streams_events_are_framed_as_they_were_sent() {
        let recording = recording();
        let said = &exchange_bodies(&recording)[&STREAM];
        assert_eq!(said.reply_body().unwrap(), "id: 7\ndata: \n\nevent: message\ndata: one\ndata: two\n\n");
    }

    #[test]
    fn a_whole_reply_is_not_copied() {
        let recording = recording();
        let said = &exchange_bodies(&recording)[&WHOLE];
        assert!(matches!(said.reply_body(), Some(Cow::Borrowed("{}"))));
    }
}

//! Headers and bodies of each HTTP exchange, as the recording has them: cut and redacted.

use std::collections::HashMap;
use std::fmt::Write;

use mcpace_record::{EventKind, ExchangeId, Header, Recording};

/// What an exchange said besides its outline.
#[derive(Default)]
pub(crate) struct Said<'a> {
    pub(crate) request_headers: &'a [Header],
    pub(crate) request_body: Option<&'a str>,
    pub(crate) reply_headers: &'a [Header],
    /// A text body; of an event stream its events, framed as they were sent.
    pub(crate) reply_body: Option<String>,
}

/// Of all exchanges, by their ids.
pub(crate) fn bodies(recording: &Recording) -> HashMap<ExchangeId, Said<'_>> {
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
                let text = said.entry(*ex).or_default().reply_body.get_or_insert_default();
                for (name, value) in [("event", event), ("id", id)] {
                    if let Some(value) = value {
                        // Writing to a String never fails.
                        let _ = writeln!(text, "{name}: {value}");
                    }
                }
                for line in body.text.split('\n') {
                    let _ = writeln!(text, "data: {line}");
                }
                text.push('\n');
            }
            EventKind::ReplyEnd { ex, body: Some(body), .. } => {
                said.entry(*ex).or_default().reply_body = Some(body.text.clone());
            }
            _ => {}
        }
    }
    said
}

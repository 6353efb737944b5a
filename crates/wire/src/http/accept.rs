//! `Accept` (RFC 9110 §12.5.1), as far as MCP needs it: JSON, events, both, neither.

/// Media types that a client accepts. A weight counts only as zero or not zero: the server picks the type by its own
/// needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accept {
    json: Preference,
    event_stream: Preference,
}

/// Preference for one type, and the specificity of the range that states it: the most specific range counts (RFC 9110
/// §12.5.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Preference {
    specificity: u8,
    wanted: bool,
}

impl Accept {
    /// Reads one header.
    #[must_use]
    pub fn parse(value: &[u8]) -> Self {
        let mut accept = Self::default();
        accept.add(value);
        accept
    }

    /// Adds another header of the same request, which is as if both were one list.
    pub fn add(&mut self, value: &[u8]) {
        // Nearly every client sends this value.
        if value == b"application/json, text/event-stream" {
            self.json.say(3, true);
            self.event_stream.say(3, true);
            return;
        }
        for range in value.split(|&byte| byte == b',') {
            self.add_range(range);
        }
    }

    /// Whether `application/json` is read.
    #[must_use]
    pub fn json(self) -> bool {
        self.json.wanted
    }

    /// Whether `text/event-stream` is read.
    #[must_use]
    pub fn event_stream(self) -> bool {
        self.event_stream.wanted
    }

    fn add_range(&mut self, range: &[u8]) {
        let mut parts = range.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let Some(essence) = parts.next() else { return };
        let wanted = !parts.any(is_zero_weight);
        let is = |text: &str| essence.eq_ignore_ascii_case(text.as_bytes());
        if is("*/*") {
            self.json.say(1, wanted);
            self.event_stream.say(1, wanted);
        } else if is("application/*") {
            self.json.say(2, wanted);
        } else if is("text/*") {
            self.event_stream.say(2, wanted);
        } else if is("application/json") {
            self.json.say(3, wanted);
        } else if is("text/event-stream") {
            self.event_stream.say(3, wanted);
        }
    }
}

impl Preference {
    fn say(&mut self, specificity: u8, wanted: bool) {
        if specificity > self.specificity {
            *self = Preference { specificity, wanted };
        } else if specificity == self.specificity {
            self.wanted |= wanted;
        }
    }
}

/// `q=0`, `q=0.0`, …
fn is_zero_weight(parameter: &[u8]) -> bool {
    let Some((name, value)) = parameter.split_at_checked(2) else {
        return false;
    };
    name.eq_ignore_ascii_case(b"q=") && value.first() == Some(&b'0') && value.iter().all(|b| matches!(b, b'0' | b'.'))
}

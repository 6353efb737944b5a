//! The layers that a call's time is split into.

use std::ops::Add;

use mcpace_record::{ExchangeId, Nanos};
use serde::Serialize;

/// One layer of a call's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Part {
    /// The client prepares: before its first act on the wire, and between a reply and its next act.
    #[serde(rename = "client.send")]
    ClientSend,
    /// A connection to the server is made, TLS included.
    #[serde(rename = "connect")]
    Connect,
    /// The client writes its request, first byte to last.
    #[serde(rename = "request")]
    Request,
    /// The server has the whole request and has not begun with the message that carries the result.
    #[serde(rename = "server")]
    Server,
    /// The server writes that message, first byte to last.
    #[serde(rename = "response")]
    Response,
    /// The client has that message and has not acted on it: parses it, or reads on to the reply's end.
    #[serde(rename = "client.receive")]
    ClientReceive,
    /// Everything else: the recorder's own passing, and what events don't tell.
    #[serde(rename = "unaccounted")]
    Unaccounted,
}

impl Part {
    /// Its dotted name, as it is serialised.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Part::ClientSend => "client.send",
            Part::Connect => "connect",
            Part::Request => "request",
            Part::Server => "server",
            Part::Response => "response",
            Part::ClientReceive => "client.receive",
            Part::Unaccounted => "unaccounted",
        }
    }
}

/// A stretch of a call's time that belongs to one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// Whose time it is.
    pub part: Part,
    /// Start, on the recording's clock.
    #[serde(rename = "from_ns")]
    pub from: Nanos,
    /// End; never before the start.
    #[serde(rename = "to_ns")]
    pub to: Nanos,
    /// The exchange that it was spent on; for `client.send` the one that follows, for `client.receive` the one before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<ExchangeId>,
}

/// A call's time by part, in nanoseconds. The parts add up to the call's whole time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Parts {
    /// See [`Part::ClientSend`].
    #[serde(rename = "client.send")]
    pub client_send: Nanos,
    /// See [`Part::Connect`].
    pub connect: Nanos,
    /// See [`Part::Request`].
    pub request: Nanos,
    /// See [`Part::Server`].
    pub server: Nanos,
    /// See [`Part::Response`].
    pub response: Nanos,
    /// See [`Part::ClientReceive`].
    #[serde(rename = "client.receive")]
    pub client_receive: Nanos,
    /// See [`Part::Unaccounted`].
    pub unaccounted: Nanos,
}

impl Parts {
    /// Adds up segments that tile a call.
    #[must_use]
    pub fn of(segments: &[Segment]) -> Self {
        let mut parts = Parts::default();
        for segment in segments {
            let part = parts.part_mut(segment.part);
            *part = *part + segment.to.since(segment.from);
        }
        parts
    }

    /// The sum of all parts.
    #[must_use]
    pub fn total(&self) -> Nanos {
        self.client_send
            + self.connect
            + self.request
            + self.server
            + self.response
            + self.client_receive
            + self.unaccounted
    }

    fn part_mut(&mut self, part: Part) -> &mut Nanos {
        match part {
            Part::ClientSend => &mut self.client_send,
            Part::Connect => &mut self.connect,
            Part::Request => &mut self.request,
            Part::Server => &mut self.server,
            Part::Response => &mut self.response,
            Part::ClientReceive => &mut self.client_receive,
            Part::Unaccounted => &mut self.unaccounted,
        }
    }
}

impl Add for Parts {
    type Output = Parts;
    fn add(self, other: Parts) -> Parts {
        Parts {
            client_send: self.client_send + other.client_send,
            connect: self.connect + other.connect,
            request: self.request + other.request,
            server: self.server + other.server,
            response: self.response + other.response,
            client_receive: self.client_receive + other.client_receive,
            unaccounted: self.unaccounted + other.unaccounted,
        }
    }
}

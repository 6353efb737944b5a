//! Events beside a client's messages: reopened streams, tokens, ends of sessions, processes, failed calls.

use mcpace_record::{CallId, CallOutcome, EventKind, MessageKind, Nanos, Peer, ReplyEnding};

use super::{Reply, Script, Sent, headers, ms, note, request};

/// A GET for a stream and what becomes of it; times at the server's side.
#[derive(Clone, Copy)]
pub(crate) struct Stream {
    pub(crate) at: f64,
    pub(crate) session: Option<&'static str>,
    /// The event after which the stream should go on.
    pub(crate) after: Option<&'static str>,
    pub(crate) head: f64,
    pub(crate) end: Option<f64>,
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
}

pub(crate) fn stream(at: f64, head: f64, end: Option<f64>) -> Stream {
    Stream { at, session: Some("s"), after: None, head, end, status: 200, content_type: "text/event-stream" }
}

impl Script {
    pub(crate) fn open(&mut self, conn: u64, stream: Stream) {
        let ex = self.exchange();
        let asked = headers(&[
            ("accept", Some("text/event-stream")),
            ("mcp-session-id", stream.session),
            ("last-event-id", stream.after),
        ]);
        let sent = Sent { ex, conn, method: "GET", target: "/mcp" };
        self.request(&sent, (stream.at, stream.at), asked, Vec::new(), "");
        self.head(ex, stream.head, stream.status, Some(stream.content_type));
        if let Some(end) = stream.end {
            self.reply_end(ex, end, ReplyEnding::Complete, "", Vec::new());
        }
    }

    /// A token is asked for, and granted.
    pub(crate) fn token(&mut self, conn: u64, at: f64, done: f64) {
        let ex = self.exchange();
        let form = headers(&[("content-type", Some("application/x-www-form-urlencoded"))]);
        let sent = Sent { ex, conn, method: "POST", target: "/token" };
        self.request(&sent, (at, at), form, Vec::new(), "grant_type=refresh_token");
        self.head(ex, done, 200, Some("application/json"));
        self.both(done, |side| EventKind::ReplyBodyStart { side, ex });
        self.reply_end(ex, done, ReplyEnding::Complete, "{}", Vec::new());
    }

    /// A token is asked for, and the client leaves before it comes.
    pub(crate) fn token_given_up(&mut self, conn: u64, at: f64, left: f64) {
        let ex = self.exchange();
        let form = headers(&[("content-type", Some("application/x-www-form-urlencoded"))]);
        let sent = Sent { ex, conn, method: "POST", target: "/token" };
        self.request(&sent, (at, at), form, Vec::new(), "grant_type=refresh_token");
        self.reply_end(ex, left, ReplyEnding::ClientLeft, "", Vec::new());
    }

    /// The client answers a question of the server's.
    pub(crate) fn answer(&mut self, conn: u64, at: f64, session: Option<&str>, token: Option<&str>, done: f64) {
        let ex = self.exchange();
        let sent = Sent { ex, conn, method: "POST", target: "/mcp" };
        let said = headers(&[("mcp-session-id", session), ("authorization", token)]);
        self.request(&sent, (at, at), said, vec![note(MessageKind::Result, Some(1))], "answer");
        self.head(ex, done, 202, None);
        self.reply_end(ex, done, ReplyEnding::Complete, "", Vec::new());
    }

    /// A client begins a session; `session` is the id that it is given, where there is one.
    pub(crate) fn begin(&mut self, conn: u64, at: f64, session: Option<&str>, done: f64) {
        self.begin_with_token(conn, at, session, None, done);
    }

    pub(crate) fn begin_with_token(
        &mut self,
        conn: u64,
        at: f64,
        session: Option<&str>,
        token: Option<&str>,
        done: f64,
    ) {
        let ex = self.exchange();
        let post = request(at, 0, "initialize", Reply::Json(done, done));
        let sent = Sent { ex, conn, method: "POST", target: "/mcp" };
        let asked = headers(&[("accept", Some("application/json, text/event-stream")), ("authorization", token)]);
        self.request(&sent, (at, at), asked, vec![super::asked(&post)], "initialize");
        let mut given = headers(&[("content-type", Some("application/json")), ("mcp-session-id", session)]);
        self.both(done, |side| EventKind::ReplyHead { side, ex, status: 200, headers: std::mem::take(&mut given) });
        self.both(done, |side| EventKind::ReplyBodyStart { side, ex });
        self.reply_end(ex, done, ReplyEnding::Complete, "result", vec![super::answered(&post)]);
    }

    /// A session is ended by its client.
    pub(crate) fn delete(&mut self, conn: u64, at: f64, session: &str, done: f64) {
        let ex = self.exchange();
        let sent = Sent { ex, conn, method: "DELETE", target: "/mcp" };
        self.request(&sent, (at, at), headers(&[("mcp-session-id", Some(session))]), Vec::new(), "");
        self.head(ex, done, 200, None);
        self.reply_end(ex, done, ReplyEnding::Complete, "", Vec::new());
    }

    /// An operation that the program gives up at `to`.
    pub(crate) fn failed_call(&mut self, operation: &str, from: f64, to: f64) -> CallId {
        let call = self.started_call(operation, from);
        let outcome = CallOutcome::failed("timed out");
        self.event(to, EventKind::CallEnd { call, outcome });
        call
    }

    /// An operation that never returns.
    pub(crate) fn started_call(&mut self, operation: &str, from: f64) -> CallId {
        self.calls += 1;
        let call = CallId(self.calls);
        self.event(from, EventKind::CallStart { call, operation: operation.to_owned(), tool: None });
        call
    }

    /// Resource use of a process up to now: milliseconds of processor time, mebibytes of memory.
    pub(crate) fn sample(&mut self, at: f64, of: Peer, pid: u32, cpu: f64, mebibytes: u64) {
        let cpu: Nanos = ms(cpu);
        let resident = mebibytes * 1024 * 1024;
        self.event(at, EventKind::ProcessSample { of, pid, cpu, resident, threads: 4 });
    }
}

//! A client in memory: messages in, what became of them out. No socket, no time passing.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcpace_serve::session::Session;
use mcpace_serve::{Channel, Gone, Handled, Incoming, Outlet, Peer, Principal, Reply, ReplyStatus, Server};
use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::Message;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// The limit of every wait, in virtual time.
pub(crate) const LIMIT: Duration = Duration::from_secs(3_600);

/// The messages that came ahead of replies.
#[derive(Default)]
pub(crate) struct Outbox {
    messages: Mutex<Vec<Value>>,
    arrived: Notify,
    closed: Mutex<bool>,
}

impl Outbox {
    pub(crate) fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.messages.lock().unwrap())
    }

    pub(crate) fn close(&self) {
        *self.closed.lock().unwrap() = true;
    }

    /// The next message, when it comes.
    pub(crate) async fn next(&self) -> Value {
        let next = async {
            loop {
                let arrived = self.arrived.notified();
                {
                    let mut messages = self.messages.lock().unwrap();
                    if !messages.is_empty() {
                        return messages.remove(0);
                    }
                }
                arrived.await;
            }
        };
        tokio::time::timeout(LIMIT, next).await.expect("a message comes")
    }
}

impl Outlet for Outbox {
    fn send(&self, message: Bytes) -> Result<(), Gone> {
        if *self.closed.lock().unwrap() {
            return Err(Gone);
        }
        self.messages.lock().unwrap().push(serde_json::from_slice(&message).unwrap());
        self.arrived.notify_one();
        Ok(())
    }
}

struct Way(Arc<Outbox>);

impl Channel for Way {
    fn open_outlet(&self) -> Arc<dyn Outlet> {
        Arc::<Outbox>::clone(&self.0)
    }
}

/// A reply, read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) body: Value,
    pub(crate) text: String,
    pub(crate) status: ReplyStatus,
    pub(crate) session: Option<Arc<Session>>,
    pub(crate) cancelled: bool,
    pub(crate) timing: Option<mcpace_serve::Timing>,
    pub(crate) challenge: Option<mcpace_serve::Challenge>,
}

impl Answer {
    pub(crate) fn result(&self) -> &Value {
        assert!(self.body["error"].is_null(), "{}", self.body);
        &self.body["result"]
    }

    /// Code and status.
    pub(crate) fn error(&self) -> (i64, ReplyStatus) {
        (self.body["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {}", self.body)), self.status)
    }

    pub(crate) fn message(&self) -> &str {
        self.body["error"]["message"].as_str().unwrap()
    }

    /// The text of a tool's first block.
    pub(crate) fn text(&self) -> &str {
        self.result()["content"][0]["text"].as_str().unwrap()
    }
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        let text = String::from_utf8(reply.message.to_vec()).unwrap();
        let body: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(body["jsonrpc"], "2.0");
        let Reply { status, session, cancelled, timing, challenge, .. } = reply;
        Answer { body, text, status, session, cancelled, timing, challenge }
    }
}

/// One client of a server.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) server: Server,
    pub(crate) peer: Peer,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) timed: bool,
    /// The capabilities that the client declares.
    pub(crate) capabilities: Value,
}

/// The capabilities of a client that can do everything.
pub(crate) fn able() -> Value {
    json!({"sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}, "roots": {},
        "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

impl Client {
    /// One without a session.
    pub(crate) fn stateless(server: &Server, revision: Revision) -> Self {
        let peer = Peer { revision, session: None, principal: None };
        Client { server: server.clone(), peer, outbox: Arc::default(), timed: false, capabilities: able() }
    }

    /// One with a session where the revision has them, that can do everything.
    pub(crate) fn connect(server: &Server, revision: Revision) -> Self {
        Self::connect_able(server, revision, able())
    }

    pub(crate) fn connect_able(server: &Server, revision: Revision, capabilities: Value) -> Self {
        let mut client = Self::stateless(server, revision);
        client.capabilities = capabilities.clone();
        if revision.is_legacy() {
            let answer = client.now(
                1,
                "initialize",
                json!({"protocolVersion": revision, "capabilities": capabilities,
                    "clientInfo": {"name": "test", "version": "1"}}),
            );
            assert_eq!(answer.result()["protocolVersion"], revision.as_str());
            client.peer.session = answer.session;
            assert!(client.peer.session.is_some());
            client.notify("notifications/initialized", json!({}));
        }
        client
    }

    pub(crate) fn of(self, subject: &str) -> Self {
        self.granted(subject, &[])
    }

    /// Makes the client one with a principal whose token grants scopes.
    pub(crate) fn granted(mut self, subject: &str, scopes: &[&str]) -> Self {
        let scopes: Vec<String> = scopes.iter().map(|&scope| scope.to_owned()).collect();
        self.peer.principal = Some(Principal::new(subject, scopes));
        self
    }

    /// The parameters, with the metadata that the revision demands.
    pub(crate) fn params(&self, mut params: Value) -> Value {
        if self.peer.revision.is_modern() {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
            let meta = meta.as_object_mut().unwrap();
            meta.entry("io.modelcontextprotocol/protocolVersion").or_insert(json!(self.peer.revision));
            meta.entry("io.modelcontextprotocol/clientCapabilities").or_insert_with(|| self.capabilities.clone());
        }
        params
    }

    /// Hands over a message as it is.
    pub(crate) fn raw(&self, text: &str) -> Handled {
        let body = Bytes::copy_from_slice(text.as_bytes());
        let message = Message::parse(&body).unwrap();
        self.server.handle(Incoming {
            outline: None,
            message: &message,
            body: &body,
            peer: &self.peer,
            channel: &Way(Arc::clone(&self.outbox)),
            received: Instant::now(),
            timed: self.timed,
        })
    }

    pub(crate) fn send(&self, id: impl Into<Value>, method: &str, params: Value) -> Handled {
        let params = self.params(params);
        self.raw(&json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params}).to_string())
    }

    /// A request that is answered at once.
    pub(crate) fn now(&self, id: impl Into<Value>, method: &str, params: Value) -> Answer {
        match self.send(id, method, params) {
            Handled::Now(reply) => reply.into(),
            Handled::Later(_) => panic!("{method} is answered later"),
            Handled::Nothing => panic!("{method} is not answered"),
        }
    }

    /// A request, whenever it is answered.
    pub(crate) async fn ask(&self, id: impl Into<Value>, method: &str, params: Value) -> Answer {
        finish(self.send(id, method, params)).await
    }

    pub(crate) async fn call(&self, id: impl Into<Value>, tool: &str, arguments: Value) -> Answer {
        self.ask(id, "tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    pub(crate) fn notify(&self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string();
        assert!(matches!(self.raw(&message), Handled::Nothing));
    }

    pub(crate) fn respond(&self, id: &Value, result: Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        assert!(matches!(self.raw(&message), Handled::Nothing));
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        self.peer.session.as_ref().unwrap()
    }
}

pub(crate) async fn finish(handled: Handled) -> Answer {
    match handled {
        Handled::Now(reply) => reply.into(),
        Handled::Later(later) => tokio::time::timeout(LIMIT, later).await.expect("an answer comes").into(),
        Handled::Nothing => panic!("no answer"),
    }
}

pub(crate) fn legacy() -> impl Iterator<Item = Revision> {
    Revision::ALL.into_iter().filter(|revision| revision.is_legacy())
}

pub(crate) const MODERN: Revision = Revision::V2026_07_28;

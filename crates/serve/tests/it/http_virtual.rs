//! HTTP over connections in memory, in virtual time: what waits, and for how long. Time passes only while nothing else can
//! happen, so a wait that ends without an answer shows that none was to come.

use std::time::Duration;

use mcpace_serve::http::{Endpoint, Options, ResponseMode};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::fixture;
use crate::http_harness::{Request, call, event, head, receive, text_of};
use crate::peer::Peer;

const REVISION: &str = "2025-11-25";

/// Clients of one endpoint.
struct Clients {
    endpoint: Endpoint,
}

impl Clients {
    fn new(change: impl FnOnce(&mut Options)) -> Self {
        let mut options = Options::default();
        change(&mut options);
        Self { endpoint: Endpoint::new(fixture::server(""), options).unwrap() }
    }

    /// Sends on a connection of its own.
    async fn open(&self, request: &Request) -> Peer {
        let (ours, theirs) = tokio::io::duplex(4096);
        let endpoint = self.endpoint.clone();
        tokio::spawn(async move { endpoint.serve(theirs).await });
        let mut peer = Peer::over(ours);
        assert!(peer.send(&request.bytes()).await);
        peer
    }

    /// Begins a session with a client that can be asked; its id.
    async fn session(&self) -> String {
        let params = json!({"protocolVersion": REVISION, "capabilities": {"elicitation": {"form": {}}},
            "clientInfo": {"name": "test", "version": "1"}});
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let answer = receive(&mut self.open(&Request::post(&initialize)).await).await;
        answer.head.header("mcp-session-id").unwrap().to_owned()
    }
}

fn json_mode(options: &mut Options) {
    options.response = ResponseMode::Json;
}

fn ask_in(session: &str) -> Request {
    Request::post(&call(1, "ask", &json!({}))).within(session, REVISION)
}

fn accepted(question: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": "Ada"}}})
}

#[tokio::test(start_paused = true)]
async fn a_question_waits_for_the_stream_that_takes_it() {
    for resumable in [true, false] {
        let clients = Clients::new(|options| {
            json_mode(options);
            options.resumable = resumable;
        });
        let session = clients.session().await;
        let mut asking = clients.open(&ask_in(&session)).await;
        assert!(timeout(Duration::from_secs(1), asking.head()).await.is_err(), "answered before anybody was asked");

        let mut stream = clients.open(&Request::bare("GET").within(&session, REVISION)).await;
        assert_eq!(head(&mut stream).await.status, 200);
        let question = event(&mut stream).await.unwrap();
        assert_eq!(question["method"], "elicitation/create");
        let answering = Request::post(&accepted(&question)).within(&session, REVISION);
        assert_eq!(receive(&mut clients.open(&answering).await).await.head.status, 202);
        assert_eq!(text_of(&receive(&mut asking).await.json()), "Ada");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_does_not_wait_for_long() {
    let clients = Clients::new(json_mode);
    let session = clients.session().await;
    let begun = Instant::now();
    let refused = receive(&mut clients.open(&ask_in(&session)).await).await;
    assert_eq!(text_of(&refused.json()), "the client can't be asked on this connection");
    assert_eq!(begun.elapsed().as_secs(), fixture::server("").limits().stream_time.as_secs());
}

#[tokio::test(start_paused = true)]
async fn without_a_session_a_question_does_not_wait_at_all() {
    let clients = Clients::new(|options| {
        json_mode(options);
        options.stateless = true;
    });
    let begun = Instant::now();
    let asking = Request::post(&call(1, "ask", &json!({}))).with("MCP-Protocol-Version", REVISION);
    let refused = receive(&mut clients.open(&asking).await).await;
    assert_eq!(text_of(&refused.json()), "the client can't be asked on this connection");
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

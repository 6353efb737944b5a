//! HTTP over connections in memory, in virtual time: what waits, and for how long. Time passes only while nothing else can
//! happen, so a wait that ends without an answer shows that none was to come.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use mcpace_serve::http::{Endpoint, MountedService, Options, ResponseMode};
use mcpace_serve::{Context as CallContext, Delegate, Delegated, Server};
use mcpace_wire::mcp::Method;
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::time::{Instant, timeout};

use crate::fixture;
use crate::http_harness::{Request, call, echo, event, head, receive, text_of};
use crate::peer::Peer;

const REVISION: &str = "2025-11-25";

/// Clients of one endpoint.
struct Clients {
    endpoint: Endpoint,
}

impl Clients {
    fn new(change: impl FnOnce(&mut Options)) -> Self {
        Self::of(fixture::server(""), change)
    }

    fn of(server: Server, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = Options::default();
        change(&mut options);
        Self { endpoint: Endpoint::new(server, options).unwrap() }
    }

    /// A connection with little room on its way.
    fn connect(&self) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(4096);
        let endpoint = self.endpoint.clone();
        tokio::spawn(async move { endpoint.serve(theirs).await });
        ours
    }

    /// Sends on a connection of its own.
    async fn open(&self, request: &Request) -> Peer {
        let mut peer = Peer::over(self.connect());
        assert!(peer.send(&request.bytes()).await);
        peer
    }

    /// An HTTP/2 connection.
    async fn http2<B>(&self) -> http2::SendRequest<B>
    where
        B: Body<Data = Bytes, Error = Infallible> + Send + Unpin + 'static,
    {
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(self.connect()));
        let (sender, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        sender
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

fn talk_in(session: &str) -> Request {
    Request::post(&call(2, "talk", &json!({}))).within(session, REVISION)
}

async fn methods(stream: &mut Peer, count: usize) -> Vec<String> {
    let mut methods = Vec::new();
    while methods.len() < count {
        methods.push(event(stream).await.unwrap()["method"].as_str().unwrap().to_owned());
    }
    methods
}

#[tokio::test(start_paused = true)]
async fn what_a_call_says_waits_for_the_stream_that_takes_it() {
    let said = ["notifications/progress", "notifications/message", "notifications/progress"];
    for resumable in [true, false] {
        let clients = Clients::new(|options| {
            json_mode(options);
            options.resumable = resumable;
        });
        let session = clients.session().await;
        let begun = Instant::now();
        assert_eq!(text_of(&receive(&mut clients.open(&talk_in(&session)).await).await.json()), "talked");
        assert_eq!(begun.elapsed(), Duration::ZERO, "the call itself waits for nothing");
        // A question to the client comes after the messages that were sent before it.
        let mut asking = clients.open(&ask_in(&session)).await;
        assert!(timeout(Duration::from_secs(1), asking.head()).await.is_err());
        let mut stream = clients.open(&Request::bare("GET").within(&session, REVISION)).await;
        assert_eq!(head(&mut stream).await.status, 200);
        assert_eq!(methods(&mut stream, 3).await, said);
        assert_eq!(methods(&mut stream, 1).await, ["elicitation/create"]);
        receive(&mut clients.open(&talk_in(&session)).await).await;
        assert_eq!(methods(&mut stream, 3).await, said);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_call_says_does_not_wait_for_long() {
    let clients = Clients::new(json_mode);
    let session = clients.session().await;
    receive(&mut clients.open(&talk_in(&session)).await).await;
    tokio::time::sleep(fixture::server("").limits().stream_time).await;
    let mut stream = clients.open(&Request::bare("GET").within(&session, REVISION)).await;
    assert_eq!(head(&mut stream).await.status, 200);
    assert!(timeout(Duration::from_secs(1), event(&mut stream)).await.is_err());
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

fn stateless(options: &mut Options) {
    options.stateless = true;
}

fn post<B>(body: B) -> hyper::Request<B> {
    let request = hyper::Request::post("http://localhost/mcp").header("content-type", "application/json");
    request.body(body).unwrap()
}

fn full(message: &Value) -> hyper::Request<Full<Bytes>> {
    post(Full::new(Bytes::from(message.to_string())))
}

#[tokio::test(start_paused = true)]
async fn an_http2_connection_carries_so_many_requests_at_a_time() {
    for (limit, is_answered) in [(1, false), (2, true)] {
        let clients = Clients::new(|options| {
            stateless(options);
            options.limits.http2_streams = limit;
        });
        let mut sender = clients.http2().await;
        // The limit is known to the client with the first reply.
        assert_eq!(sender.send_request(full(&echo(1, "hi"))).await.unwrap().status(), 200);
        let _waiting = tokio::spawn(sender.send_request(full(&call(2, "wait", &json!({})))));
        let second = timeout(Duration::from_secs(5), sender.send_request(full(&echo(3, "hi")))).await;
        assert_eq!(second.is_ok(), is_answered);
    }
}

#[tokio::test(start_paused = true)]
async fn http2_headers_are_bounded() {
    let clients = Clients::new(|options| {
        stateless(options);
        options.limits.head = 8_192;
    });
    let mut sender = clients.http2().await;
    let mut request = full(&echo(1, "hi"));
    request.headers_mut().insert("x-long", "x".repeat(9_000).parse().unwrap());
    assert_eq!(sender.send_request(request).await.unwrap().status(), 431);
    assert_eq!(sender.send_request(full(&echo(2, "hi"))).await.unwrap().status(), 200);
}

/// Never comes.
struct Never;

impl Body for Never {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_over_http2_has_its_time() {
    let clients = Clients::new(|options| {
        stateless(options);
        options.limits.body_time = Duration::from_secs(7);
    });
    let mut sender = clients.http2().await;
    let begun = Instant::now();
    assert_eq!(sender.send_request(post(Never)).await.unwrap().status(), 408);
    assert_eq!(begun.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_body_for_the_service_beside_has_its_time_for_all_its_pieces() {
    let clients = Clients::new(|options| {
        options.limits.body_time = Duration::from_secs(7);
        options.beside = Some(MountedService::new(crate::http_hooks::Mirror));
    });
    let begun = Instant::now();
    let head = Request::bare("POST").path("/other").with("Transfer-Encoding", "chunked");
    let mut peer = clients.open(&head).await;
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(peer.send(b"1\r\ny\r\n").await);
    }
    assert_eq!(receive(&mut peer).await.body, "POST /other yybroken");
    assert_eq!(begun.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_2024_11_05_that_is_not_read_takes_no_more_messages() {
    let clients = Clients::new(|options| {
        options.legacy_sse = true;
        options.limits.stream_bytes = 20_000;
    });
    let mut stream = clients.open(&Request::bare("GET").path("/sse")).await;
    assert_eq!(head(&mut stream).await.status, 200);
    let to = stream.event().await.unwrap().unwrap().data;
    let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2024-11-05",
        "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    assert_eq!(receive(&mut clients.open(&Request::post(&begin).path(&to)).await).await.head.status, 202);
    let mut taken = 0;
    loop {
        let big = Request::post(&call(1, "big", &json!({"bytes": 5_000}))).path(&to);
        let answer = receive(&mut clients.open(&big).await).await;
        if answer.head.status != 202 {
            assert_eq!(answer.status_and_code(), (429, -32603));
            break;
        }
        taken += 1;
        assert!(taken < 100, "nobody reads what is held");
    }
    // The accepted calls are answered once the client reads.
    assert_eq!(event(&mut stream).await.unwrap()["id"], 0);
    for _ in 0..taken {
        assert_eq!(text_of(&event(&mut stream).await.unwrap()).len(), 5_000);
    }
    let again = Request::post(&echo(2, "hi")).path(&to);
    assert_eq!(receive(&mut clients.open(&again).await).await.head.status, 202);
}

/// A server behind that never says what it is.
struct Silent;

impl Delegate for Silent {
    fn takes(&self, method: Method) -> bool {
        method == Method::Initialize
    }

    fn call(&self, _: CallContext) -> Delegated {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn while_one_initialize_of_2024_11_05_waits_no_other_begins() {
    let server = fixture::server("");
    assert!(server.delegate(Silent));
    let clients = Clients::of(server, |options| options.legacy_sse = true);
    let mut stream = clients.open(&Request::bare("GET").path("/sse")).await;
    assert_eq!(head(&mut stream).await.status, 200);
    let to = stream.event().await.unwrap().unwrap().data;
    let begin = |id: u32| {
        let params = json!({"protocolVersion": "2024-11-05", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params})
    };
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    for message in [begin(1), ping, begin(3)] {
        assert_eq!(receive(&mut clients.open(&Request::post(&message).path(&to)).await).await.head.status, 202);
    }
    assert_eq!(event(&mut stream).await.unwrap(), json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    let refused = event(&mut stream).await.unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(3), &json!(-32600)));
}

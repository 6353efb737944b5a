//! Results that their clients do not read: each way that a reply can wait is bounded, in virtual time over connections in memory.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use mcpace_serve::http::{Endpoint, Options, ResponseMode};
use mcpace_serve::{Context, NoArguments, Server, Tool, ToolError};
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::sync::watch;

use crate::http_harness::{Request, call, event, head, initialize, receive};
use crate::peer::Peer;

/// Bytes of one result.
const RESULT: usize = 100_000;
/// Number of results that fit.
const FIT: usize = 3;
/// Calls of one client.
const CALLS: u32 = 10;

/// A server whose one tool gives a large result once it may.
struct Stage {
    endpoint: Endpoint,
    go: watch::Sender<bool>,
    /// Calls that have ended.
    ended: watch::Receiver<u32>,
}

impl Stage {
    fn new(change: impl FnOnce(&mut Options)) -> Self {
        let (go, going) = watch::channel(false);
        let (ends, ended) = watch::channel(0_u32);
        let tool = Tool::new("large").handler_async(move |_: NoArguments, _: Context| {
            let (mut going, ends) = (going.clone(), ends.clone());
            async move {
                // The sender lives as long as the stage.
                let _ = going.wait_for(|go| *go).await;
                ends.send_modify(|count| *count += 1);
                Ok::<_, ToolError>("x".repeat(RESULT))
            }
        });
        let server = Server::builder("large", "1").tool(tool).build().unwrap();
        let mut options = Options::default();
        options.limits.connection_reply_bytes = (RESULT + 1_000) * FIT;
        options.limits.session_reply_bytes = (RESULT + 1_000) * FIT;
        change(&mut options);
        Self { endpoint: Endpoint::new(server, options).unwrap(), go, ended }
    }

    fn connect(&self) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(4096);
        let endpoint = self.endpoint.clone();
        tokio::spawn(async move { endpoint.serve(theirs).await });
        ours
    }

    async fn open(&self, request: &Request) -> Peer {
        let mut peer = Peer::over(self.connect());
        assert!(peer.send(&request.bytes()).await);
        peer
    }

    async fn session(&self, revision: &str) -> String {
        let answer = receive(&mut self.open(&Request::post(&initialize(revision))).await).await;
        answer.head.header("mcp-session-id").unwrap().to_owned()
    }

    /// Lets all calls that have begun end, and what follows happen.
    async fn end_calls(&mut self, count: u32) {
        self.go.send_replace(true);
        self.ended.wait_for(|ended| *ended >= count).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn large(id: u32) -> Value {
    call(id, "large", &json!({}))
}

/// Which ids have results, and which have errors that say why.
fn sorted(replies: &[Value]) -> (Vec<u64>, Vec<u64>) {
    let (results, errors): (Vec<&Value>, Vec<&Value>) = replies.iter().partition(|reply| reply.get("result").is_some());
    for error in &errors {
        assert_eq!(error["error"]["code"], -32603, "{error}");
        assert!(error["error"]["message"].as_str().unwrap().starts_with("the result of 100"), "{error}");
    }
    let ids = |replies: Vec<&Value>| replies.iter().map(|reply| reply["id"].as_u64().unwrap()).collect();
    (ids(results), ids(errors))
}

#[tokio::test(start_paused = true)]
async fn results_on_one_http2_connection_are_bounded() {
    let mut stage = Stage::new(|options| options.stateless = true);
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(1_000).initial_connection_window_size(1 << 30);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stage.connect())).await.unwrap();
    tokio::spawn(connection);
    let request = |id| {
        let request = hyper::Request::post("http://localhost/mcp").header("content-type", "application/json");
        request.body(Full::new(Bytes::from(large(id).to_string()))).unwrap()
    };
    let mut responses: Vec<_> = (1..=CALLS).map(|id| sender.send_request(request(id))).map(tokio::spawn).collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    stage.end_calls(CALLS).await;
    // Nothing more is begun meanwhile.
    assert_eq!(sender.send_request(request(99)).await.unwrap().status(), 429);
    let mut replies = Vec::new();
    for response in &mut responses {
        let body = response.await.unwrap().unwrap().into_body().collect().await.unwrap().to_bytes();
        replies.push(serde_json::from_slice(&body).unwrap());
    }
    let (results, errors) = sorted(&replies);
    assert_eq!((results.len(), errors.len()), (FIT, CALLS as usize - FIT));
    // All is read: there is room again.
    assert_eq!(sender.send_request(request(100)).await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn results_of_a_batch_are_bounded() {
    for mode in [ResponseMode::Json, ResponseMode::Auto, ResponseMode::Sse] {
        for is_resumable in [false, true] {
            let mut stage = Stage::new(|options| {
                options.response = mode;
                options.resumable = is_resumable;
            });
            let session = stage.session("2025-03-26").await;
            let batch = Value::Array((1..=CALLS).map(large).collect());
            let mut peer = stage.open(&Request::post(&batch).within(&session, "2025-03-26")).await;
            stage.end_calls(CALLS).await;
            let answer = receive(&mut peer).await;
            let replies = match mode {
                ResponseMode::Sse => answer.events(),
                _ => answer.json().as_array().unwrap().clone(),
            };
            let (results, errors) = sorted(&replies);
            assert_eq!((results.len(), errors.len()), (FIT, CALLS as usize - FIT), "{mode:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn results_of_calls_under_way_on_a_stream_of_2024_11_05_are_bounded() {
    let mut stage = Stage::new(|options| options.legacy_sse = true);
    let mut stream = stage.open(&Request::bare("GET").path("/sse")).await;
    assert_eq!(head(&mut stream).await.status, 200);
    let to = stream.event().await.unwrap().unwrap().data;
    for message in std::iter::once(initialize("2024-11-05")).chain((1..=CALLS).map(large)) {
        let taken = receive(&mut stage.open(&Request::post(&message).path(&to)).await).await;
        assert_eq!(taken.head.status, 202);
    }
    stage.end_calls(CALLS).await;
    let refused = receive(&mut stage.open(&Request::post(&large(99)).path(&to)).await).await;
    assert_eq!(refused.head.status, 429);
    assert_eq!(event(&mut stream).await.unwrap()["id"], 0);
    let mut replies = Vec::new();
    for _ in 0..CALLS {
        replies.push(event(&mut stream).await.unwrap());
    }
    let (results, errors) = sorted(&replies);
    assert_eq!((results.len(), errors.len()), (FIT, CALLS as usize - FIT));
    assert_eq!(receive(&mut stage.open(&Request::post(&large(100)).path(&to)).await).await.head.status, 202);
}

#[tokio::test(start_paused = true)]
async fn unread_results_of_one_session_are_bounded_over_its_connections() {
    for mode in [ResponseMode::Json, ResponseMode::Sse] {
        for is_resumable in [false, true] {
            let mut stage = Stage::new(|options| {
                options.response = mode;
                options.resumable = is_resumable;
            });
            let (session, other) = (stage.session("2025-11-25").await, stage.session("2025-11-25").await);
            let mut peers = Vec::new();
            for id in 1..=CALLS {
                peers.push(stage.open(&Request::post(&large(id)).within(&session, "2025-11-25")).await);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            stage.end_calls(CALLS).await;
            let again = Request::post(&large(99)).within(&session, "2025-11-25");
            assert_eq!(receive(&mut stage.open(&again).await).await.head.status, 429, "{mode:?}");
            // Another session has its own.
            let elsewhere = Request::post(&large(1)).within(&other, "2025-11-25");
            assert_eq!(head(&mut stage.open(&elsewhere).await).await.status, 200);
            let mut replies = Vec::new();
            for peer in &mut peers {
                let answer = receive(peer).await;
                replies.push(if mode == ResponseMode::Sse { answer.events().remove(0) } else { answer.json() });
            }
            let (results, errors) = sorted(&replies);
            assert_eq!((results.len(), errors.len()), (FIT, CALLS as usize - FIT), "{mode:?}");
            assert_eq!(receive(&mut stage.open(&again).await).await.head.status, 200, "{mode:?}");
        }
    }
}

//! The hooks for programs that embed the transport: headers for handlers, details of a caller, a service beside the
//! endpoint, calls without a connection, threads within something.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request as HttpRequest, Response};
use mcpace_serve::http::{
    Around, Authorization, Endpoint, Fallback, MountedService, Options, Responding, ServerHandle, TokenError,
    TokenVerifier, Upload, serve,
};
use mcpace_serve::{Context, HandlerError, NoArguments, Principal, Server, Tool};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::http_harness::{Request, ask, call, echo, initialize, open, receive, text_of};
use crate::{fixture, peer};

fn started(server: Server, change: impl FnOnce(&mut Options)) -> ServerHandle {
    let mut options = Options { address: ([127, 0, 0, 1], 0).into(), ..Options::default() };
    change(&mut options);
    serve(server, options).unwrap()
}

/// Says what it was sent with.
fn mirror(keep: bool) -> Server {
    let said = |_: NoArguments, context: Context| async move {
        let Some(headers) = context.headers() else { return Ok("nothing".to_owned()) };
        let names = headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect::<Vec<_>>().join(",");
        let value = headers.get("X-Thing").map(|value| String::from_utf8_lossy(value).into_owned());
        Ok::<_, HandlerError>(format!("{names} {value:?} {headers:?}"))
    };
    Server::builder("mirror", "1").keep_headers(keep).tool(Tool::new("mirror").handler_async(said)).build().unwrap()
}

#[tokio::test]
async fn headers_reach_handlers_on_both_ways_where_they_are_kept() {
    let running = started(mirror(true), |options| options.stateless = true);
    let request = Request::post(&call(1, "mirror", &json!({}))).with("x-thing", " a: b ");
    // The second goes the way of hyper: a connection that closes is not plain.
    for request in [request.clone(), request.with("Connection", "close")] {
        let answer = ask(running.address(), &request).await;
        let reply = answer.json();
        let text = text_of(&reply);
        assert!(text.starts_with("host,content-type,accept,x-thing"), "{text}");
        assert!(text.contains("Some(\"a: b\")"), "{text}");
        // Shown, it is names alone.
        assert!(!text.ends_with("a: b\"]"), "{text}");
    }
}

#[tokio::test]
async fn headers_are_not_kept_unasked() {
    let running = started(mirror(false), |options| options.stateless = true);
    let answer = ask(running.address(), &Request::post(&call(1, "mirror", &json!({})))).await;
    assert_eq!(text_of(&answer.json()), "nothing");
}

/// Knows everybody, and something about them.
struct Knowing;

impl TokenVerifier for Knowing {
    fn verify<'a>(
        &'a self,
        token: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Principal, TokenError>> + Send + 'a>> {
        let details: Arc<dyn std::any::Any + Send + Sync> = Arc::new(format!("known by {token}"));
        Box::pin(async move { Ok(Principal { details: Some(details), ..Principal::new(token, Vec::new()) }) })
    }
}

#[tokio::test]
async fn a_verifiers_details_reach_the_handler_and_no_log() {
    let said = |_: NoArguments, context: Context| async move {
        let principal = context.principal().unwrap();
        assert!(!format!("{principal:?}").contains("known by"));
        let details = principal.details.as_ref().unwrap();
        Ok::<_, HandlerError>(details.downcast_ref::<String>().unwrap().clone())
    };
    let server = Server::builder("knowing", "1").tool(Tool::new("who").handler_async(said)).build().unwrap();
    let running = started(server, |options| {
        options.stateless = true;
        options.authorization = Some(Authorization {
            verifier: Arc::new(Knowing),
            resource: "https://mcp.example/mcp".to_owned(),
            authorization_servers: Vec::new(),
            scopes: Vec::new(),
        });
    });
    let request = Request::post(&call(1, "who", &json!({}))).with("Authorization", "Bearer me");
    assert_eq!(text_of(&ask(running.address(), &request).await.json()), "known by me");
}

/// Says a request again, in two pieces.
pub(crate) struct Mirror;

impl Fallback for Mirror {
    fn call_service(&self, request: HttpRequest<Upload>) -> Responding {
        Box::pin(async move {
            let (head, mut upload) = request.into_parts();
            let (pieces, reader) = mpsc::channel(1);
            tokio::spawn(async move {
                let first = format!("{} {} ", head.method, head.uri);
                if pieces.send(Bytes::from(first)).await.is_err() {
                    return;
                }
                loop {
                    let piece = match upload.next().await {
                        Ok(Some(piece)) => piece,
                        Ok(None) => return,
                        Err(_) => Bytes::from_static(b"broken"),
                    };
                    let is_broken = &*piece == b"broken";
                    if pieces.send(piece).await.is_err() || is_broken {
                        return;
                    }
                }
            });
            let mut response = Response::new(reader);
            response.headers_mut().insert("x-beside", http::HeaderValue::from_static("yes"));
            response
        })
    }
}

fn beside() -> ServerHandle {
    started(fixture::server(""), |options| {
        options.stateless = true;
        options.limits.body = 1_000;
        options.beside = Some(MountedService::new(Mirror));
    })
}

#[tokio::test]
async fn other_paths_go_to_the_service_beside() {
    let running = beside();
    let request = Request::bare("PUT").path("/other?x=1").text("body");
    let answer = ask(running.address(), &request).await;
    assert_eq!((answer.head.status, answer.head.header("x-beside")), (200, Some("yes")));
    assert_eq!(answer.body, "PUT /other?x=1 body");
    // The endpoint stays what it is.
    let answer = ask(running.address(), &Request::post(&echo(1, "still"))).await;
    assert_eq!(text_of(&answer.json()), "still");
    assert_eq!(ask(running.address(), &Request::bare("PUT")).await.head.status, 405);
}

#[tokio::test]
async fn the_service_beside_is_asked_for_known_hosts_only_and_pages_are_its_own_business() {
    let running = beside();
    let request = Request::bare("GET").path("/other");
    assert_eq!(ask(running.address(), &request.clone().with("Host", "evil.example")).await.head.status, 403);
    assert_eq!(ask(running.address(), &request.clone().with("Origin", "https://evil.example")).await.head.status, 200);
    assert_eq!(ask(running.address(), &request.without("Host")).await.head.status, 400);
}

#[tokio::test]
async fn a_body_for_the_service_beside_is_bounded() {
    let running = beside();
    let announced = Request::bare("POST").path("/other").text("x".repeat(1_001));
    assert_eq!(ask(running.address(), &announced).await.head.status, 413);
    let mut creeping =
        open(running.address(), &Request::bare("POST").path("/other").with("Transfer-Encoding", "chunked")).await;
    let piece = format!("{:x}\r\n{}\r\n", 600, "y".repeat(600));
    for _ in 0..2 {
        creeping.send(piece.as_bytes()).await;
    }
    let answer = receive(&mut creeping).await;
    assert!(answer.body.ends_with("broken"), "{}", answer.body.len());
}

fn endpoint() -> Endpoint {
    Endpoint::new(fixture::server(""), Options::default()).unwrap()
}

fn given(method: &str, body: &Value, headers: &[(&str, &str)]) -> HttpRequest<Bytes> {
    let mut request = HttpRequest::builder()
        .method(method)
        .uri("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Bytes::from(body.to_string())).unwrap()
}

async fn whole(endpoint: &Endpoint, request: HttpRequest<Bytes>) -> (u16, http::HeaderMap, String) {
    let (head, mut reply) = endpoint.call(request).await.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = peer::limited("a piece", reply.next()).await.unwrap() {
        body.extend_from_slice(&piece);
    }
    (head.status.as_u16(), head.headers, String::from_utf8(body).unwrap())
}

#[tokio::test]
async fn a_session_lives_without_a_connection() {
    let endpoint = endpoint();
    let (status, headers, _) = whole(&endpoint, given("POST", &initialize("2025-11-25"), &[])).await;
    let session = headers.get("mcp-session-id").unwrap().to_str().unwrap();
    assert_eq!(status, 200);
    let within = [("mcp-session-id", session), ("mcp-protocol-version", "2025-11-25")];
    let (status, _, body) = whole(&endpoint, given("POST", &echo(1, "hello"), &within)).await;
    assert_eq!((status, text_of(&serde_json::from_str(&body).unwrap())), (200, "hello"));
    let (status, _, _) = whole(&endpoint, given("DELETE", &json!(null), &within)).await;
    assert_eq!(status, 204);
    let (status, _, _) = whole(&endpoint, given("POST", &echo(2, "gone"), &within)).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn without_a_connection_the_same_is_refused() {
    let endpoint = endpoint();
    let request = || given("POST", &initialize("2025-11-25"), &[]);
    let mut foreign = request();
    foreign.headers_mut().insert("host", http::HeaderValue::from_static("evil.example"));
    assert_eq!(whole(&endpoint, foreign).await.0, 403);
    let mut page = request();
    page.headers_mut().insert("origin", http::HeaderValue::from_static("https://evil.example"));
    assert_eq!(whole(&endpoint, page).await.0, 403);
    let mut elsewhere = request();
    *elsewhere.uri_mut() = "/other".parse().unwrap();
    assert_eq!(whole(&endpoint, elsewhere).await.0, 404);
    assert_eq!(whole(&endpoint, given("PATCH", &json!({}), &[])).await.0, 405);
    let mut long = request();
    *long.body_mut() = Bytes::from(vec![b' '; (4 << 20) + 1]);
    assert_eq!(whole(&endpoint, long).await.0, 413);
}

#[tokio::test]
async fn each_serving_thread_runs_within_what_is_around_it() {
    let (inside, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let running = started(fixture::server(""), |options| {
        let (inside, over) = (Arc::clone(&inside), Arc::clone(&over));
        options.workers = std::num::NonZeroUsize::new(2);
        options.stateless = true;
        options.around = Some(Around::new(move |work| {
            inside.fetch_add(1, Ordering::SeqCst);
            work();
            over.fetch_add(1, Ordering::SeqCst);
        }));
    });
    assert_eq!(text_of(&ask(running.address(), &Request::post(&echo(1, "inside"))).await.json()), "inside");
    tokio::task::spawn_blocking(|| running.stop()).await.unwrap();
    assert_eq!((inside.load(Ordering::SeqCst), over.load(Ordering::SeqCst)), (2, 2));
}

//! HTTP/2 connections whose clients take their replies slowly, in part, or not at all: a real HTTP/2 client with windows of its own, in
//! virtual time. A wait that ends without an answer shows that none was to come.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Ping, PingPong, RecvStream};
use mcpace_serve::http::{Endpoint, Options};
use proptest::prelude::*;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::fixture;
use crate::http_harness::{call, echo, start};
use crate::peer::limited;

/// Lets the client's and the server's tasks do what they can.
const MOMENT: Duration = Duration::from_millis(100);

/// A client's end of a connection; all bytes from the server are kept.
struct Tap<S> {
    stream: S,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Tap<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.seen.lock().unwrap().extend_from_slice(&buffer.filled()[before..]);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Tap<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// One connection of a client.
struct Client {
    requests: SendRequest<Bytes>,
    pings: PingPong,
    connection: JoinHandle<()>,
    seen: Arc<Mutex<Vec<u8>>>,
}

fn endpoint(change: impl FnOnce(&mut Options)) -> Endpoint {
    let mut options = Options { stateless: true, ..Options::default() };
    change(&mut options);
    Endpoint::new(fixture::server(""), options).unwrap()
}

fn connect(endpoint: &Endpoint) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let endpoint = endpoint.clone();
    tokio::spawn(async move { endpoint.serve(theirs).await });
    ours
}

impl Client {
    /// A client whose streams have windows of this size.
    async fn over<S>(stream: S, window: u32) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let seen = Arc::<Mutex<Vec<u8>>>::default();
        let tap = Tap { stream, seen: Arc::clone(&seen) };
        let mut builder = h2::client::Builder::new();
        // One reply that isn't read takes no other's window.
        builder.initial_window_size(window).initial_connection_window_size(1 << 30);
        let (requests, mut connection) = builder.handshake(tap).await.unwrap();
        let pings = connection.ping_pong().unwrap();
        let connection = tokio::spawn(async move { drop(connection.await) });
        Self { requests, pings, connection, seen }
    }

    /// Asks for a reply of about this size; its body, once its head is there.
    async fn ask(&mut self, bytes: usize) -> Result<RecvStream, h2::Error> {
        let message = if bytes == 0 { echo(1, "hi") } else { call(1, "big", &json!({"bytes": bytes})) };
        let request = http::Request::post("http://localhost/mcp").header("content-type", "application/json");
        self.requests.clone().ready().await.map(|ready| self.requests = ready)?;
        let (response, mut body) = self.requests.send_request(request.body(()).unwrap(), false)?;
        body.send_data(message.to_string().into(), true)?;
        let response = response.await?;
        assert_eq!(response.status(), 200);
        Ok(response.into_body())
    }

    async fn ping(&mut self) -> Result<(), h2::Error> {
        self.pings.ping(Ping::opaque()).await.map(drop)
    }

    /// The types of the frames that came (RFC 9113 §6), in their order.
    fn frames(&self) -> Vec<u8> {
        let seen = self.seen.lock().unwrap();
        let (mut frames, mut rest) = (Vec::new(), &seen[..]);
        while let [a, b, c, kind, ..] = *rest {
            frames.push(kind);
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            rest = rest.get(9 + length..).unwrap_or_default();
        }
        frames
    }
}

const GOAWAY: u8 = 7;

/// Reads up to `most` bytes and gives the server that much window again; how many came.
async fn read(body: &mut RecvStream, most: usize) -> Result<usize, h2::Error> {
    let mut count = 0;
    while count < most
        && let Ok(Some(data)) = timeout(MOMENT, body.data()).await
    {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        count += data.len();
    }
    Ok(count)
}

/// Reads to the end; how many bytes came.
async fn read_all(body: &mut RecvStream) -> Result<usize, h2::Error> {
    let mut count = 0;
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        count += data.len();
    }
    Ok(count)
}

const STALL: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn replies_that_no_window_takes_are_reset() {
    let endpoint = endpoint(|options| options.limits.write_stall = STALL);
    let mut client = Client::over(connect(&endpoint), 0).await;
    let begun = Instant::now();
    let mut bodies = Vec::new();
    for _ in 0..5 {
        bodies.push(client.ask(1 << 20).await.unwrap());
    }
    for body in &mut bodies {
        let end = timeout(2 * STALL, body.data()).await.expect("the stream is held for ever").unwrap();
        assert!(end.unwrap_err().is_reset());
    }
    assert!(begun.elapsed() >= STALL && begun.elapsed() < 2 * STALL, "{:?}", begun.elapsed());
    // The connection itself is of use.
    client.ping().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_reply_that_is_not_taken_costs_no_other_its_connection() {
    let endpoint = endpoint(|options| options.limits.write_stall = STALL);
    let mut client = Client::over(connect(&endpoint), 100_000).await;
    let mut stalled = client.ask(1 << 20).await.unwrap();
    let begun = Instant::now();
    while begun.elapsed() < 2 * STALL {
        sleep(STALL / 10).await;
        let mut body = client.ask(50_000).await.unwrap();
        assert!(read_all(&mut body).await.unwrap() > 50_000);
    }
    let mut end = Ok(1);
    while matches!(end, Ok(count) if count > 0) {
        end = read(&mut stalled, usize::MAX).await;
    }
    assert!(end.unwrap_err().is_reset());
    assert!(!client.frames().contains(&GOAWAY));
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_taken_slowly_is_not_reset() {
    let endpoint = endpoint(|options| options.limits.write_stall = STALL);
    let mut client = Client::over(connect(&endpoint), 1_000).await;
    let mut body = client.ask(30_000).await.unwrap();
    let mut count = 0;
    while !body.is_end_stream() {
        sleep(STALL / 2).await;
        count += read(&mut body, 1_000).await.unwrap();
    }
    assert!(count > 30_000);
}

/// The last bytes lie in h2's queue, and the stream's own task is over.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_reply_that_is_not_taken_ends_the_connection() {
    let endpoint = endpoint(|options| options.limits.write_stall = STALL);
    let mut client = Client::over(connect(&endpoint), 100).await;
    let _body = client.ask(1_000).await.unwrap();
    timeout(4 * STALL, &mut client.connection).await.expect("the connection is held for ever").unwrap();
    assert!(client.frames().contains(&GOAWAY));
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_lasts_its_time_whatever_frames_come_and_ends_with_a_goaway() {
    let idle = Options::default().limits.connection_idle;
    let endpoint = endpoint(|_| {});
    let mut client = Client::over(connect(&endpoint), 65_535).await;
    // A window update follows each reply.
    read_all(&mut client.ask(60_000).await.unwrap()).await.unwrap();
    for _ in 0..20 {
        sleep(Duration::from_secs(5)).await;
        client.ping().await.unwrap();
    }
    sleep(idle / 2).await;
    read_all(&mut client.ask(0).await.unwrap()).await.unwrap();
    let begun = Instant::now();
    assert!(!client.frames().contains(&GOAWAY));
    timeout(2 * idle, &mut client.connection).await.expect("an idle connection stays for ever").unwrap();
    assert!(begun.elapsed() >= idle, "{:?}", begun.elapsed());
    assert!(client.frames().contains(&GOAWAY));
}

/// Frames of its own, so that it acknowledges nothing.
#[tokio::test(start_paused = true)]
async fn a_client_that_ignores_the_goaway_is_cut() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let limits = Options::default().limits;
    let mut stream = connect(&endpoint(|_| {}));
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut seen = Vec::new();
    let end = timeout(limits.connection_idle + 3 * limits.head_time, stream.read_to_end(&mut seen)).await;
    end.expect("the connection is held for ever").unwrap();
}

#[tokio::test]
async fn a_stop_is_not_held_up_by_replies_that_are_not_taken() {
    let running = start(|options| {
        options.stateless = true;
        options.limits.stop = Duration::from_secs(3_600);
        options.limits.write_stall = Duration::from_millis(50);
        options.limits.head_time = Duration::from_millis(50);
    });
    let stream = TcpStream::connect(running.address()).await.unwrap();
    let mut client = limited("a handshake", Client::over(stream, 0)).await.unwrap();
    let _whole = limited("a head", client.ask(1_000)).await.unwrap().unwrap();
    let _large = limited("a head", client.ask(1 << 20)).await.unwrap().unwrap();
    let stopped = tokio::task::spawn_blocking(move || running.stop());
    limited("the stop", stopped).await.unwrap().unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    /// Asks for so many bytes.
    Ask(usize),
    /// Reads so many bytes of a reply.
    Read(prop::sample::Index, usize),
    /// Resets a reply's stream.
    Drop(prop::sample::Index),
    Ping,
    /// A pause in tenths of [`STALL`].
    Wait(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = any::<prop::sample::Index>;
    let size = prop_oneof![Just(0), 1..2_000_usize, 10_000..20_000_usize, 60_000..70_000_usize, 100_000..150_000_usize];
    let step = prop_oneof![
        4 => size.prop_map(Step::Ask),
        4 => (index(), prop_oneof![1..2_000_usize, 10_000..200_000_usize]).prop_map(|(at, most)| Step::Read(at, most)),
        1 => index().prop_map(Step::Drop),
        1 => Just(Step::Ping),
        2 => (1..12_u32).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..30)
}

fn windows() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), 500..2_000_u32, Just(65_535), 1_000..300_000_u32]
}

/// A reply that is being read.
struct Reading {
    body: RecvStream,
    expected: usize,
    count: usize,
    /// When the client last took something.
    touched: Instant,
}

/// Carries out the steps. Then all replies are read, and the client falls silent.
async fn run(window: u32, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let endpoint = endpoint(|options| {
        options.limits.write_stall = STALL;
        // Longer than all waits of a run.
        options.limits.connection_idle = 100 * STALL;
    });
    let mut client = Client::over(connect(&endpoint), window).await;
    let mut readings: Vec<Reading> = Vec::new();
    // From here on the server may have given the client up.
    let patience = STALL * 9 / 10;
    let is_stalled = |reading: &Reading| reading.touched.elapsed() >= patience;
    // A window that was never open takes nothing.
    let mut was_stalled = window == 0;
    for step in steps {
        was_stalled |= readings.iter().any(is_stalled);
        match step {
            Step::Ask(bytes) => match timeout(STALL, client.ask(bytes)).await {
                Ok(Ok(body)) => {
                    readings.push(Reading { body, expected: bytes, count: 0, touched: Instant::now() });
                }
                Ok(Err(_)) => {
                    prop_assert!(was_stalled, "refused a client that takes its replies");
                    return Ok(());
                }
                Err(_) => prop_assert!(was_stalled, "no answer"),
            },
            Step::Read(at, most) if !readings.is_empty() => {
                let at = at.index(readings.len());
                let was_late = is_stalled(&readings[at]);
                match read(&mut readings[at].body, most).await {
                    Ok(count) => {
                        readings[at].count += count;
                        readings[at].touched = Instant::now();
                    }
                    Err(error) => {
                        prop_assert!(was_late || was_stalled, "{error}");
                        readings.swap_remove(at);
                    }
                }
            }
            Step::Drop(at) if !readings.is_empty() => drop(readings.swap_remove(at.index(readings.len()))),
            Step::Ping => {
                let answered = client.ping().await;
                prop_assert!(was_stalled || answered.is_ok());
            }
            Step::Wait(tenths) => sleep(STALL * tenths / 10).await,
            Step::Read(..) | Step::Drop(_) => {}
        }
    }
    was_stalled |= readings.iter().any(is_stalled);
    for Reading { mut body, expected, count, .. } in readings {
        let rest = timeout(3 * STALL, read_all(&mut body)).await;
        prop_assert!(rest.is_ok(), "a reply neither ends nor breaks off");
        match rest.unwrap() {
            Ok(rest) => prop_assert!(count + rest >= expected, "{} of {expected}", count + rest),
            Err(error) => prop_assert!(was_stalled, "{error}"),
        }
    }
    let ended = timeout(200 * STALL, &mut client.connection).await;
    prop_assert!(ended.is_ok(), "a silent connection is held for ever");
    prop_assert!(client.frames().contains(&GOAWAY), "the connection ended without a GOAWAY");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Each reply ends, whole or reset, for any windows and any steps of the client. A reply that is taken is whole. A silent
    /// client's connection ends with a GOAWAY.
    #[test]
    fn each_reply_ends_whatever_the_client_does(window in windows(), steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(run(window, steps))?;
    }
}

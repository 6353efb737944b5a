//! Receives the spans that programs on this machine report, over OTLP/HTTP on loopback.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use mcpace_record::{EventKind, EvidenceSource, Instrument, Nanos, Recording, RecordingHead};
use mcpace_spans::{Encoding, WallClock, decode_otlp, encode_partial_success, unzip};
use tokio::sync::{Semaphore, watch};

use crate::{NetError, Sink, SinkOptions, monotonic_now};

/// Bytes of one request, also once it is unfolded, connections at one time, and the time that a request's head and body may take.
const BODY_LIMIT: usize = 16 << 20;
const MOST_CONNECTIONS: usize = 64;
const REQUEST_LIMIT: Duration = Duration::from_secs(10);

/// Spans that are taken in all.
const MOST_SPANS: u64 = 1_000_000;

/// Malformed bodies that are told.
const MOST_MALFORMED: u64 = 16;

/// Pause after `accept` failed: it does while the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Readings of both clocks for one request: a thread that is kept from running between two reads gives a wrong offset.
const CLOCK_READINGS: usize = 5;

/// Time for the thread to end.
const STOP_LIMIT: Duration = Duration::from_secs(1);

/// A running receiver. Dropping it closes its port.
pub struct SpanReceiver {
    address: SocketAddr,
    sink: Arc<Sink>,
    stop: watch::Sender<bool>,
    runtime: Option<tokio::runtime::Runtime>,
}

struct Received {
    sink: Arc<Sink>,
    spans: AtomicU64,
    malformed: AtomicU64,
}

impl SpanReceiver {
    /// Listens on a free port of loopback.
    ///
    /// # Errors
    /// [`NetError::Listen`] or [`NetError::Io`] where the system refuses.
    pub fn start() -> Result<Self, NetError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let refused = |reason| NetError::Listen { address: address.to_string(), reason };
        let listener = TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let sink = Sink::new(RecordingHead::bare(Instrument::Client), SinkOptions::default())?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("mcpace-spans")
            .enable_all()
            .build()
            .map_err(|reason| NetError::Io { what: "could not start the receiver's runtime", reason })?;
        let (stop, stopped) = watch::channel(false);
        let received =
            Arc::new(Received { sink: Arc::clone(&sink), spans: AtomicU64::new(0), malformed: AtomicU64::new(0) });
        runtime.spawn(accept_connections(listener, received, stopped));
        Ok(Self { address, sink, stop, runtime: Some(runtime) })
    }

    /// Base URL for `OTEL_EXPORTER_OTLP_ENDPOINT`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Closes the port and returns the spans.
    #[must_use]
    pub fn stop(mut self) -> Recording {
        self.close();
        // Without a file, finishing cannot fail.
        let _ = self.sink.finish();
        self.sink.recording()
    }

    fn close(&mut self) {
        self.stop.send_replace(true);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(STOP_LIMIT);
        }
    }
}

impl Drop for SpanReceiver {
    fn drop(&mut self) {
        self.close();
    }
}

async fn accept_connections(listener: TcpListener, received: Arc<Received>, mut stopped: watch::Receiver<bool>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let connections = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            _ = stopped.changed() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // A connection past the limit is closed at once; exporters try again.
        let Ok(permit) = Arc::clone(&connections).try_acquire_owned() else { continue };
        let received = Arc::clone(&received);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer_request(Arc::clone(&received), request));
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(REQUEST_LIMIT);
            // A connection that breaks loses only the spans that it was about to bring.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
            drop(permit);
        });
    }
}

async fn answer_request(
    received: Arc<Received>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, std::convert::Infallible> {
    Ok(receive_spans(&received, request).await.unwrap_or_else(|status| {
        let mut response = Response::new(Full::default());
        *response.status_mut() = status;
        response
    }))
}

async fn receive_spans(received: &Received, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, StatusCode> {
    if request.method() != Method::POST {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    let is_traces = request.uri().path() == "/v1/traces";
    let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let encoding = match content_type.and_then(|value| value.split(';').next()).map(str::trim) {
        Some("application/json") => Encoding::Json,
        Some("application/x-protobuf") => Encoding::Protobuf,
        _ => return Err(StatusCode::UNSUPPORTED_MEDIA_TYPE),
    };
    // A page of another origin can send no such request without asking first, and is refused then.
    if request.headers().contains_key(header::ORIGIN) {
        return Err(StatusCode::FORBIDDEN);
    }
    let is_gzip = match request.headers().get(header::CONTENT_ENCODING).map(http::HeaderValue::as_bytes) {
        None | Some(b"identity") => false,
        Some(b"gzip") => true,
        Some(_) => return Err(StatusCode::UNSUPPORTED_MEDIA_TYPE),
    };
    let mut body = tokio::time::timeout(REQUEST_LIMIT, Limited::new(request.into_body(), BODY_LIMIT).collect())
        .await
        .map_err(|_| StatusCode::REQUEST_TIMEOUT)?
        .map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)?
        .to_bytes();
    // Metrics and logs are taken and dropped, so that the program's exporter has nothing to complain about.
    let mut refused = 0;
    if is_traces {
        if is_gzip {
            body = unzip(&body, BODY_LIMIT as u64).ok_or(StatusCode::PAYLOAD_TOO_LARGE)?.into();
        }
        refused = received.add_spans(&body, encoding)?;
    }
    let (content_type, empty) = match encoding {
        Encoding::Json => ("application/json", &b"{}"[..]),
        Encoding::Protobuf => ("application/x-protobuf", &b""[..]),
    };
    let answer = match refused {
        0 => Bytes::from_static(empty),
        _ => encode_partial_success(refused, "more spans came than are kept", encoding).into(),
    };
    let mut response = Response::new(Full::new(answer));
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    Ok(response)
}

impl Received {
    /// Adds the spans of a body; returns the number of those for which there was no room.
    fn add_spans(&self, body: &[u8], encoding: Encoding) -> Result<u64, StatusCode> {
        let spans = decode_otlp(body, encoding, self.sink.redactor(), wall_clock()).map_err(|error| {
            if self.malformed.fetch_add(1, Ordering::Relaxed) < MOST_MALFORMED {
                self.note_missing(error.to_string());
            }
            StatusCode::BAD_REQUEST
        })?;
        let mut refused = 0;
        for (ended, span) in spans {
            let taken = self.spans.fetch_add(1, Ordering::Relaxed);
            if taken == MOST_SPANS {
                self.note_missing(format!("more than {MOST_SPANS} spans came; the later ones are left out"));
            }
            if taken < MOST_SPANS {
                self.sink.note_at(ended, EventKind::Span(Box::new(span)));
            } else {
                refused += 1;
            }
        }
        Ok(refused)
    }

    fn note_missing(&self, reason: String) {
        self.sink.note(EventKind::SourceMissing { source: EvidenceSource::Spans, pid: None, reason });
    }
}

/// This moment on both clocks: of several readings, the one that took the least time.
fn wall_clock() -> WallClock {
    let readings = (0..CLOCK_READINGS).map(|_| {
        let before = monotonic_now();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let took = monotonic_now().since(before);
        (took, WallClock { unix_ns: u64::try_from(unix).unwrap_or(u64::MAX), at: before + Nanos(took.0 / 2) })
    });
    readings.min_by_key(|(took, _)| *took).map_or(WallClock { unix_ns: 0, at: Nanos::ZERO }, |(_, clock)| clock)
}

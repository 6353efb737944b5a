//! An issuer: an HTTP server that answers as a test says, and counts what it was asked.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use mcpace_auth::{Clock, Moment};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

/// A request as the issuer got it.
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
    pub(crate) body: String,
}

impl Asked {
    /// A field of the form in the body.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let mut fields = form_urlencoded::parse(self.body.as_bytes());
        fields.find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
    }
}

type Answering = Pin<Box<dyn Future<Output = Response<Full<Bytes>>> + Send>>;
type Answer = dyn Fn(Asked) -> Answering + Send + Sync;

/// HTTP server that answers as a test scripts it and counts its requests. It ends with the test's runtime.
pub(crate) struct Issuer {
    pub(crate) url: String,
    asked: Arc<AtomicUsize>,
    answer: Arc<Mutex<Arc<Answer>>>,
}

impl Issuer {
    pub(crate) async fn start<F>(answer: impl Fn(Asked) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
    {
        Self::over(None, answer).await
    }

    /// With TLS, where there is an acceptor.
    pub(crate) async fn over<F>(
        tls: Option<tokio_rustls::TlsAcceptor>,
        answer: impl Fn(Asked) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://localhost:{}", listener.local_addr().unwrap().port());
        let asked = Arc::new(AtomicUsize::new(0));
        let answer: Arc<Mutex<Arc<Answer>>> = Arc::new(Mutex::new(boxed(answer)));
        let shared = (Arc::clone(&asked), Arc::clone(&answer));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (shared, tls) = (shared.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => {
                            // A client that doesn't trust us goes away.
                            if let Ok(stream) = tls.accept(stream).await {
                                connection(stream, shared).await;
                            }
                        }
                        None => connection(stream, shared).await,
                    }
                });
            }
        });
        Self { url, asked, answer }
    }

    /// From now on it answers so.
    pub(crate) fn answers<F>(&self, answer: impl Fn(Asked) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
    {
        *self.answer.lock().unwrap() = boxed(answer);
    }

    /// How many requests it got so far.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn boxed<F>(answer: impl Fn(Asked) -> F + Send + Sync + 'static) -> Arc<Answer>
where
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    Arc::new(move |asked| Box::pin(answer(asked)) as Answering)
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    (count, answer): (Arc<AtomicUsize>, Arc<Mutex<Arc<Answer>>>),
) {
    let service = service_fn(move |request: Request<Incoming>| {
        count.fetch_add(1, Ordering::SeqCst);
        let answer = Arc::clone(&answer.lock().unwrap());
        async move {
            let path = request.uri().path().to_owned();
            let authorization = request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let body = String::from_utf8(body.to_vec()).unwrap();
            Ok::<_, Infallible>(answer(Asked { path, authorization, body }).await)
        }
    });
    // A client that leaves early is none of the test's failures.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// A reply of status 200.
pub(crate) fn json(text: impl Into<String>) -> Response<Full<Bytes>> {
    Response::builder().header("Content-Type", "application/json").body(Full::new(text.into().into())).unwrap()
}

/// A reply without a body.
pub(crate) fn status(status: u16) -> Response<Full<Bytes>> {
    Response::builder().status(status).body(Full::default()).unwrap()
}

/// Time as a test has it go.
pub(crate) struct Manual(Mutex<Duration>);

/// When tests begin, by the calendar.
pub(crate) const BEGIN: u64 = 1_800_000_000;

impl Manual {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Duration::ZERO)))
    }

    pub(crate) fn pass(&self, seconds: u64) {
        *self.0.lock().unwrap() += Duration::from_secs(seconds);
    }
}

impl Clock for Manual {
    fn now(&self) -> Moment {
        let steady = *self.0.lock().unwrap();
        Moment { wall: Duration::from_secs(BEGIN) + steady, steady }
    }
}

/// Waits for what a test cannot do without.
pub(crate) async fn limited<T>(what: &str, wanted: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), wanted).await.unwrap_or_else(|_| panic!("{what}: never"))
}

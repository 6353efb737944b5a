//! `HttpOptions`: keywords of Python to the transport's own options.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcpace_serve::http::{self, Limits, ResponseMode, Tls, WorkerGroup};
use pyo3::prelude::*;

use crate::problem::{OrRaise, UsageProblem};
use crate::seconds::parse_seconds;
use crate::server::auth::token_verifier::PythonVerifier;
use crate::server::auth::tokens::NativeVerifier;
use crate::server::http::asgi_fallback::Application;
use crate::server::store::Store;
use crate::server::threads::function_host::FunctionHost;

/// How to serve over HTTP. The defaults are safe: loopback, bounded everywhere.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct HttpOptions {
    inner: http::Options,
    verification: Option<Verification>,
    asgi: Option<Arc<Py<PyAny>>>,
    store: Option<Store>,
}

/// Verifier of tokens, and the metadata that tells clients where to get one.
struct Verification {
    verify: Verify,
    resource: String,
    authorization_servers: Vec<String>,
    scopes: Vec<String>,
    limit: Duration,
}

/// Python's own verifier, or one that needs no Python.
enum Verify {
    Python(Py<PyAny>),
    Native(Arc<dyn http::TokenVerifier>),
}

#[pymethods]
impl HttpOptions {
    #[new]
    #[pyo3(signature = (
        *, host="127.0.0.1", port=8000, path="/mcp", response="auto", stateless=false, threads=1, shared_port=false, family=None,
        tls=None, allowed_hosts=vec![], allowed_origins=vec![], server_timing=false, access_log=false, legacy_sse=false, grace_s=10.0,
        resumable=true, retry_s=1.0, keep_alive_s=15.0, limits=None, token_verifier=None, resource=None,
        authorization_servers=vec![], required_scopes=vec![], token_timeout_s=10.0, check_resource=false, asgi=None,
        store=None, on_store_down="refuse", store_prefix="mcpace:".to_owned(),
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        host: &str,
        port: u16,
        path: &str,
        response: &str,
        stateless: bool,
        threads: usize,
        shared_port: bool,
        family: Option<(usize, Vec<PathBuf>)>,
        tls: Option<(Vec<u8>, Vec<u8>)>,
        allowed_hosts: Vec<String>,
        allowed_origins: Vec<String>,
        server_timing: bool,
        access_log: bool,
        legacy_sse: bool,
        grace_s: f64,
        resumable: bool,
        retry_s: f64,
        keep_alive_s: f64,
        limits: Option<HashMap<String, f64>>,
        token_verifier: Option<Bound<'_, PyAny>>,
        resource: Option<String>,
        authorization_servers: Vec<String>,
        required_scopes: Vec<String>,
        token_timeout_s: f64,
        check_resource: bool,
        asgi: Option<Py<PyAny>>,
        store: Option<String>,
        on_store_down: &str,
        store_prefix: String,
    ) -> PyResult<Self> {
        let host = if host == "localhost" { "127.0.0.1" } else { host };
        let host: IpAddr =
            host.parse().map_err(|_| UsageProblem::new_err(format!("host takes an IP address, not {host:?}")))?;
        let response = match response {
            "json" => ResponseMode::Json,
            "sse" => ResponseMode::Sse,
            "auto" => ResponseMode::Auto,
            other => return Err(UsageProblem::new_err(format!("response takes json, sse or auto, not {other:?}"))),
        };
        let family = match family {
            Some((own, sockets)) => {
                let said = format!("family takes a number and at most 256 paths, not {own} of {}", sockets.len());
                Some(WorkerGroup::new(own, sockets).ok_or_else(|| UsageProblem::new_err(said))?)
            }
            None => None,
        };
        let tls = tls.map(|(chain, key)| Tls::from_pem(&chain, &key)).transpose().or_raise()?;
        let mut bounds = Limits { stop: parse_seconds("grace_s", grace_s)?, ..Limits::default() };
        for (name, value) in limits.into_iter().flatten() {
            set_limit(&mut bounds, &name, value)?;
        }
        let verification = match token_verifier {
            Some(verify) => {
                let scheme = if tls.is_some() { "https" } else { "http" };
                let address = SocketAddr::new(host, port);
                let resource = match resource {
                    Some(resource) => resource,
                    None if port == 0 => {
                        return Err(UsageProblem::new_err("token_verifier needs resource: the URL that clients use"));
                    }
                    None => format!("{scheme}://{address}{path}"),
                };
                let limit = parse_seconds("token_timeout_s", token_timeout_s)?;
                let verify = match verify.cast::<NativeVerifier>() {
                    Ok(native) if check_resource => {
                        let NativeVerifier { inner, report } = native.get();
                        let report = Some(Arc::clone(report));
                        Verify::Native(Arc::new(mcpace_auth::Bound::new(Arc::clone(inner), &resource, report)))
                    }
                    Ok(native) => Verify::Native(Arc::clone(&native.get().inner)),
                    Err(_) => Verify::Python(verify.unbind()),
                };
                Some(Verification { verify, resource, authorization_servers, scopes: required_scopes, limit })
            }
            None => None,
        };
        let inner = http::Options {
            address: SocketAddr::new(host, port),
            shared_port,
            family,
            tls,
            allowed_hosts,
            allowed_origins,
            server_timing,
            access_log: access_log.then(crate::server::http::access_log::stderr_log),
            legacy_sse,
            resumable,
            retry: parse_seconds("retry_s", retry_s)?,
            keep_alive: parse_seconds("keep_alive_s", keep_alive_s)?,
            limits: bounds,
            path: path.to_owned(),
            response,
            stateless,
            workers: NonZeroUsize::new(threads),
            around: Some(http::Around::new(crate::server::server_handle::within_python)),
            ..http::Options::default()
        };
        let store = store.map(|url| Store::new(url, on_store_down, store_prefix)).transpose()?;
        Ok(Self { inner, verification, asgi: asgi.map(Arc::new), store })
    }
}

impl HttpOptions {
    /// For one server: what Python decides is asked on its event loop.
    pub(crate) fn resolve_options(&self, py: Python<'_>, shared: &Arc<FunctionHost>) -> PyResult<http::Options> {
        let mut options = self.inner.clone();
        if let Some(Verification { verify, resource, authorization_servers, scopes, limit }) = &self.verification {
            let verifier: Arc<dyn http::TokenVerifier> = match verify {
                Verify::Python(verify) => {
                    shared.want_loop(py)?;
                    Arc::new(PythonVerifier::new(verify.clone_ref(py), Arc::clone(shared), *limit))
                }
                Verify::Native(native) => Arc::clone(native),
            };
            options.authorization = Some(http::Authorization {
                verifier,
                resource: resource.clone(),
                authorization_servers: authorization_servers.clone(),
                scopes: scopes.clone(),
            });
        }
        if let Some(app) = &self.asgi {
            let event_loop_thread = shared.start_loop(py)?;
            let is_tls = options.tls.is_some();
            options.beside =
                Some(http::MountedService::new(Application { app: Arc::clone(app), event_loop_thread, is_tls }));
        }
        if let Some(store) = &self.store {
            let redis = store.open_redis(
                py,
                "requests of sessions are refused until it is back",
                "sessions are this process's own until it is back",
            )?;
            options.store = Some(redis.stores());
        }
        Ok(options)
    }
}

/// Sets one of [`Limits`] by its name; times are in seconds and end in `_s`.
fn set_limit(limits: &mut Limits, name: &str, value: f64) -> PyResult<()> {
    let count = || match value {
        whole if whole >= 0.0 && whole.fract() == 0.0 && whole < 9e15 => Ok(whole as usize),
        _ => Err(UsageProblem::new_err(format!("the limit {name} takes a whole number, not {value}"))),
    };
    match name {
        "body" => limits.body = count()?,
        "head" => limits.head = count()?,
        "nesting" => limits.nesting = count()?,
        "batch" => limits.batch = count()?,
        "connections" => limits.connections = count()?,
        "http2_streams" => limits.http2_streams = u32::try_from(count()?).unwrap_or(u32::MAX),
        "sessions" => limits.sessions = count()?,
        "standalone_streams" => limits.standalone_streams = count()?,
        "session_streams" => limits.session_streams = count()?,
        "stream_events" => limits.stream_events = count()?,
        "stream_bytes" => limits.stream_bytes = count()?,
        "connection_reply_bytes" => limits.connection_reply_bytes = count()?,
        "session_reply_bytes" => limits.session_reply_bytes = count()?,
        "session_replay_bytes" => limits.session_replay_bytes = count()?,
        "replay_bytes" => limits.replay_bytes = count()?,
        "session_idle_s" => limits.session_idle = parse_seconds(name, value)?,
        "session_life_s" => limits.session_life = Some(parse_seconds(name, value)?),
        "replay_time_s" => limits.replay_time = parse_seconds(name, value)?,
        "connection_idle_s" => limits.connection_idle = parse_seconds(name, value)?,
        "head_time_s" => limits.head_time = parse_seconds(name, value)?,
        "body_time_s" => limits.body_time = parse_seconds(name, value)?,
        "write_stall_s" => limits.write_stall = parse_seconds(name, value)?,
        other => return Err(UsageProblem::new_err(format!("there is no limit {other:?}"))),
    }
    Ok(())
}

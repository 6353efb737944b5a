//! `HttpOptions`: keywords of Python to the transport's own options.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use mcpace_serve::http::{self, Family, Limits, ResponseMode, Tls};
use pyo3::prelude::*;

use crate::problem::{OrRaise, UsageProblem};

/// How to serve over HTTP. The defaults are safe: loopback, bounded everywhere.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct HttpOptions {
    inner: http::Options,
}

#[pymethods]
impl HttpOptions {
    #[new]
    #[pyo3(signature = (
        *, host="127.0.0.1", port=8000, path="/mcp", response="auto", stateless=false, threads=1, shared_port=false, family=None,
        tls=None, allowed_hosts=vec![], allowed_origins=vec![], server_timing=false, legacy_sse=false, grace_s=10.0,
    ))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
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
        legacy_sse: bool,
        grace_s: f64,
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
                Some(Family::new(own, sockets).ok_or_else(|| UsageProblem::new_err(said))?)
            }
            None => None,
        };
        let tls = tls.map(|(chain, key)| Tls::from_pem(&chain, &key)).transpose().or_raise()?;
        let stop = Duration::try_from_secs_f64(grace_s)
            .map_err(|_| UsageProblem::new_err(format!("grace_s takes seconds, not {grace_s}")))?;
        let inner = http::Options {
            address: SocketAddr::new(host, port),
            shared_port,
            family,
            tls,
            allowed_hosts,
            allowed_origins,
            server_timing,
            legacy_sse,
            limits: Limits { stop, ..Limits::default() },
            path: path.to_owned(),
            response,
            stateless,
            workers: NonZeroUsize::new(threads),
            around: Some(http::Around::new(super::running::within_python)),
            ..http::Options::default()
        };
        Ok(Self { inner })
    }
}

impl HttpOptions {
    pub(super) fn resolve(&self) -> http::Options {
        self.inner.clone()
    }
}

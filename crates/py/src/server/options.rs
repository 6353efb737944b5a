//! `HttpOptions`: keywords of Python to the transport's own options.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;

use mcpace_serve::http::{self, ResponseMode};
use pyo3::prelude::*;

use crate::problem::UsageProblem;

/// How to serve over HTTP. The defaults are safe: loopback, bounded everywhere.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct HttpOptions {
    inner: http::Options,
}

#[pymethods]
impl HttpOptions {
    #[new]
    #[pyo3(signature = (*, host="127.0.0.1", port=8000, path="/mcp", response="auto", stateless=false, threads=1))]
    fn new(host: &str, port: u16, path: &str, response: &str, stateless: bool, threads: usize) -> PyResult<Self> {
        let host = if host == "localhost" { "127.0.0.1" } else { host };
        let host: IpAddr =
            host.parse().map_err(|_| UsageProblem::new_err(format!("host takes an IP address, not {host:?}")))?;
        let response = match response {
            "json" => ResponseMode::Json,
            "sse" => ResponseMode::Sse,
            "auto" => ResponseMode::Auto,
            other => return Err(UsageProblem::new_err(format!("response takes json, sse or auto, not {other:?}"))),
        };
        let inner = http::Options {
            address: SocketAddr::new(host, port),
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

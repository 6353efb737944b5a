//! `Target`: a scripted server that runs in this process.

use std::net::{IpAddr, Ipv4Addr};

use mcpace_target::{Faults, Options, Profile, ResponseMode, Secret};
use pyo3::prelude::*;

use crate::json;
use crate::problem::{IntoPython, OrRaise, Problem, UsageProblem};
use crate::runtime::wait_detached;
use crate::seconds::parse_seconds;

/// Raises `UsageProblem` for faults that no target would take.
#[pyfunction]
pub(crate) fn check_faults(faults: Vec<String>) -> PyResult<()> {
    Faults::parse(&faults).map_err(mcpace_target::TargetError::from).or_raise().map(drop)
}

/// A scripted MCP server on loopback, on threads of its own.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Target {
    running: std::sync::Mutex<Option<mcpace_target::Target>>,
    #[pyo3(get)]
    url: String,
    #[pyo3(get)]
    certificate_pem: Option<String>,
}

#[pymethods]
impl Target {
    #[new]
    #[pyo3(signature = (profile, *, port=0, hold_s=10.0, faults=Vec::new(), tls=false, response=None, token=None, server_timing=false))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        py: Python<'_>,
        profile: &str,
        port: u16,
        hold_s: f64,
        faults: Vec<String>,
        tls: bool,
        response: Option<&str>,
        token: Option<String>,
        server_timing: bool,
    ) -> PyResult<Self> {
        let profile: Profile = profile
            .parse()
            .map_err(|e: mcpace_target::UnknownProfile| mcpace_target::TargetError::from(e).into_python())?;
        let mut options = Options::new(profile);
        options.host = IpAddr::V4(Ipv4Addr::LOCALHOST);
        options.port = port;
        options.hold = parse_seconds("hold_s", hold_s)?;
        options.faults = Faults::parse(&faults).map_err(mcpace_target::TargetError::from).or_raise()?;
        options.tls = tls;
        options.server_timing = server_timing;
        options.bearer_token = token.map(Secret::new);
        match response {
            None => {}
            Some("json") => options.response = ResponseMode::Json,
            Some("sse") => options.response = ResponseMode::Sse,
            Some(other) => {
                return Err(UsageProblem::new_err(format!("response takes json or sse, not {other:?}")));
            }
        }
        let target = wait_detached(py, mcpace_target::Target::start(options))?.or_raise()?;
        Ok(Self {
            url: target.url().to_owned(),
            certificate_pem: target.certificate_pem().map(str::to_owned),
            running: std::sync::Mutex::new(Some(target)),
        })
    }

    /// Number of requests that reached the target, by kind.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let running = self.running.lock().map_err(|_| Problem::new_err("the target is broken"))?;
        let target = running.as_ref().ok_or_else(|| Problem::new_err("the target was stopped"))?;
        json::to_python(py, &target.counters())
    }

    /// Waits until a signal comes.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        wait_detached(py, std::future::pending())
    }

    /// Ends it; bounded in time. Does nothing the second time.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let target = self.running.lock().map_err(|_| Problem::new_err("the target is broken"))?.take();
        match target {
            Some(target) => wait_detached(py, target.stop()),
            None => Ok(()),
        }
    }
}

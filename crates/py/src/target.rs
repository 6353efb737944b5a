//! `Target`: a scripted server that runs in this process, and `RecordedServer`: the answers of a recording.

use std::fs::File;
use std::io::BufReader;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use mcpace_target::{Faults, Matching, Options, Profile, RecordedError, ResponseMode, Secret, serve_recording};
use pyo3::prelude::*;

use crate::json;
use crate::problem::{IntoPython, OrRaise, Problem, UsageProblem};
use crate::runtime::{run_detached, wait_detached};
use crate::seconds::parse_seconds;

/// Raises `UsageProblem` for faults that no target would take.
#[pyfunction]
pub(crate) fn check_faults(faults: Vec<String>) -> PyResult<()> {
    Faults::parse(&faults).map_err(mcpace_target::TargetError::from).or_raise().map(drop)
}

impl IntoPython for RecordedError {
    fn into_python(self) -> PyErr {
        match self {
            RecordedError::Record(error) => error.into_python(),
            _ => UsageProblem::new_err(self.to_string()),
        }
    }
}

/// The answers of a recording, to be served by a `Target` or over stdio.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct RecordedServer {
    recorded: Arc<mcpace_target::RecordedServer>,
}

#[pymethods]
impl RecordedServer {
    #[new]
    #[pyo3(signature = (path, *, lenient=false, time_scale=1.0))]
    fn new(py: Python<'_>, path: String, lenient: bool, time_scale: f64) -> PyResult<Self> {
        let matching = if lenient { Matching::Lenient } else { Matching::Strict };
        run_detached(py, move || {
            let open = || File::open(&path).map(BufReader::new);
            let recorded = mcpace_target::RecordedServer::read(open, matching, time_scale).or_raise()?;
            Ok(Self { recorded: Arc::new(recorded) })
        })
    }

    /// Counts of the recording's requests.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, self.recorded.summary())
    }

    /// Answers one client on this process's stdin and stdout until the client leaves; returns the counters.
    fn serve_stdio<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let serving = serve_recording(Arc::clone(&self.recorded), tokio::io::stdin(), tokio::io::stdout());
        json::to_python(py, &wait_detached(py, serving)?.or_raise()?)
    }
}

/// Content of a target: a profile or a recording.
#[derive(FromPyObject)]
enum Served<'py> {
    Recorded(PyRef<'py, RecordedServer>),
    Profile(String),
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
        profile: Served<'_>,
        port: u16,
        hold_s: f64,
        faults: Vec<String>,
        tls: bool,
        response: Option<&str>,
        token: Option<String>,
        server_timing: bool,
    ) -> PyResult<Self> {
        let mut options = match profile {
            Served::Recorded(server) => Options::of_recording(Arc::clone(&server.recorded)),
            Served::Profile(name) => {
                let profile = name.parse::<Profile>().map_err(mcpace_target::TargetError::from).or_raise()?;
                Options::new(profile)
            }
        };
        options.host = IpAddr::V4(Ipv4Addr::LOCALHOST);
        options.port = port;
        options.hold = parse_seconds("hold_s", hold_s)?;
        options.faults = Faults::parse(&faults).map_err(mcpace_target::TargetError::from).or_raise()?;
        options.tls = tls;
        options.server_timing = server_timing;
        options.bearer_token = token.map(Secret::new);
        match response {
            None => {}
            Some("json") => options.response = Some(ResponseMode::Json),
            Some("sse") => options.response = Some(ResponseMode::Sse),
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

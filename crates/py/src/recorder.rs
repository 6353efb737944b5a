//! `Recorder`: the proxy between any client and an HTTP server; and its sibling for stdio.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use mcpace_net::recorder::RecorderOptions;
use mcpace_net::stdio_recorder::{ProcessEnd, StdioOptions, record_own_stdio};
use mcpace_net::{NetError, RingOptions, Sink, SinkOptions, TrafficMetrics};
use mcpace_record::{Instrument, RecordingHead, Redactor};
use pyo3::prelude::*;
use url::Url;

use crate::client::parse_headers;
use crate::json::to_python;
use crate::problem::{OrRaise, UsageProblem};
use crate::recording::Recording;
use crate::runtime::wait_detached;
use crate::seconds::parse_seconds;

/// The proxy between any client and an HTTP server, on threads of its own.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Recorder {
    running: mcpace_net::recorder::Recorder,
    sink: Arc<Sink>,
    metrics: Option<Arc<TrafficMetrics>>,
}

#[pymethods]
impl Recorder {
    #[new]
    #[pyo3(signature = (upstream, *, file=None, keep=true, port=0, body_limit=65536, extra_root=None, quickack=false,
                        headers=Vec::new(), watch=None, traceparent=false, ring=None, duration_bounds=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        py: Python<'_>,
        upstream: &str,
        file: Option<PathBuf>,
        keep: bool,
        port: u16,
        body_limit: usize,
        extra_root: Option<String>,
        quickack: bool,
        headers: Vec<(String, String)>,
        watch: Option<u32>,
        traceparent: bool,
        ring: Option<(PathBuf, u64)>,
        duration_bounds: Option<Vec<f64>>,
    ) -> PyResult<Self> {
        if duration_bounds.is_some() && file.is_none() && ring.is_none() {
            return Err(UsageProblem::new_err("metrics need a recording: name a file"));
        }
        let metrics = duration_bounds.map(|bounds| traffic_metrics(&bounds)).transpose()?;
        let url = parse_url(upstream)?;
        let mut recorder_options = RecorderOptions::new(url);
        recorder_options.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        recorder_options.extra_root = extra_root;
        recorder_options.quickack = quickack;
        recorder_options.headers = parse_headers(&headers)?;
        recorder_options.watch = watch;
        recorder_options.traceparent = traceparent;
        py.detach(|| {
            let ring = ring.map(ring_options);
            let options = SinkOptions { keep, file, ring, body_limit, metrics: metrics.clone() };
            let sink = Sink::new(recording_head(Instrument::Recorder, upstream), options)?;
            let running = mcpace_net::recorder::Recorder::start(recorder_options, Arc::clone(&sink))?;
            Ok::<_, NetError>(Self { running, sink, metrics })
        })
        .or_raise()
    }

    /// URL for the client.
    #[getter]
    fn url(&self) -> &str {
        self.running.url()
    }

    /// Whether writing the file failed.
    #[getter]
    fn failed(&self) -> bool {
        self.sink.has_failed()
    }

    /// Why the server could not be reached when that was last tried; `None` where it could.
    #[getter]
    fn unreachable(&self) -> Option<String> {
        self.running.unreachable()
    }

    /// Exchanges seen so far.
    #[getter]
    fn exchanges(&self) -> u64 {
        self.sink.exchanges()
    }

    /// Counts of the traffic so far (`TrafficSnapshot`), where they are made.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let snapshot = py.detach(|| self.metrics.as_ref().map(|metrics| metrics.snapshot()));
        snapshot.map(|snapshot| to_python(py, &snapshot)).transpose()
    }

    /// The recording so far, where one is kept.
    fn recording(&self, py: Python<'_>) -> Recording {
        Recording::new(py.detach(|| self.sink.recording()))
    }

    /// Waits until a signal comes.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        wait_detached(py, std::future::pending())
    }

    /// Ends it, completes the file, and returns what was seen.
    fn stop(&self, py: Python<'_>) -> PyResult<Recording> {
        py.detach(|| {
            self.running.stop()?;
            // A failed file is told by `failed`: what is in memory is whole all the same.
            let _ = self.sink.finish();
            Ok::<_, NetError>(Recording::new(self.sink.recording()))
        })
        .or_raise()
    }
}

/// Runs a server between this process's stdin and stdout, recording to a file or to the files of a flight recorder;
/// returns its exit code.
#[pyfunction]
#[pyo3(signature = (command, file=None, body_limit=65536, *, ring=None))]
pub(crate) fn record_stdio(
    py: Python<'_>,
    command: Vec<String>,
    file: Option<PathBuf>,
    body_limit: usize,
    ring: Option<(PathBuf, u64)>,
) -> PyResult<i32> {
    let program = command.first().cloned().ok_or_else(|| UsageProblem::new_err("there is no command to run"))?;
    py.detach(|| {
        let options = SinkOptions { keep: false, file, ring: ring.map(ring_options), body_limit, metrics: None };
        let sink = Sink::new(recording_head(Instrument::StdioRecorder, &program), options)?;
        let end = record_own_stdio(&StdioOptions::new(command), &sink);
        sink.finish()?;
        end.map(ProcessEnd::exit_code)
    })
    .or_raise()
}

/// Counts of the traffic, with histograms of these upper bounds in seconds.
fn traffic_metrics(bounds: &[f64]) -> PyResult<Arc<TrafficMetrics>> {
    let bounds = bounds.iter().map(|bound| parse_seconds("duration_bounds", *bound)).collect::<PyResult<Vec<_>>>()?;
    Ok(Arc::new(TrafficMetrics::new(&bounds)))
}

/// A flight recorder's folder and its limit in bytes. Its failures are reported on stderr.
fn ring_options((folder, limit): (PathBuf, u64)) -> RingOptions {
    // A host may have closed stderr.
    RingOptions::new(folder, limit, |sentence| drop(writeln!(io::stderr(), "mcpace: {sentence}")))
}

/// Reads a URL that must be http or https.
pub(crate) fn parse_url(text: &str) -> PyResult<Url> {
    Url::parse(text).map_err(|error| UsageProblem::new_err(format!("{text:?} is not a usable URL: {error}")))
}

/// The first line of a recording that starts now.
pub(crate) fn recording_head(instrument: Instrument, upstream: &str) -> RecordingHead {
    let started = humantime::format_rfc3339_micros(SystemTime::now()).to_string();
    // Masked values of the head need not be recognised again, so the seed need not be secret.
    let upstream = Redactor::new(0).target(upstream).into_owned();
    let started_at = Some(mcpace_net::monotonic_now());
    RecordingHead { instrument, started, started_at, mcpace: env!("CARGO_PKG_VERSION").to_owned(), upstream }
}

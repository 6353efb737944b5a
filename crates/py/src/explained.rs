//! `Explained`: what a recording tells. It may have a million calls, so sums over them are made here, and Python is handed
//! the calls of one operation at a time, as plain tuples.

use mcpace_explain::{Account, CallCost, explain_recording, explain_spans, explain_with_spans, explained_file};
use mcpace_record::{CallId, CallOutcome, Reader, RecordError};
use mcpace_spans::SpanCounts;
use pyo3::prelude::*;

use crate::json;
use crate::problem::OrRaise;
use crate::recording_files::{open_recording, read_together};
use crate::runtime::run_detached;
use crate::span_files::{read_span_file, wall_clock_offset};

/// One operation of one kind: its id, seconds from its start to its return, how it ended, and the program's words where it
/// failed.
type Trial = (u64, f64, &'static str, Option<String>);

/// Ledger and findings of a recording.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Explained {
    explained: mcpace_explain::Explained,
    /// Cost of each finding for each call, in the order of the calls.
    costs: Vec<Vec<CallCost>>,
    /// Numbers of the spans in the file that was read.
    span_counts: Option<SpanCounts>,
}

impl Explained {
    pub(crate) fn new(mut explained: mcpace_explain::Explained) -> Self {
        let costs = explained.findings.iter_mut().map(|finding| std::mem::take(&mut finding.calls)).collect();
        Self { explained, costs, span_counts: None }
    }

    fn of_spans(explained: mcpace_explain::Explained, counts: SpanCounts) -> Self {
        Self { span_counts: Some(counts), ..Self::new(explained) }
    }

    /// Costs of the finding at `finding` for those of `calls` that have one.
    fn call_costs<'c>(&'c self, finding: usize, calls: &'c [u64]) -> impl Iterator<Item = &'c CallCost> {
        let costs = self.costs.get(finding).map_or(&[][..], Vec::as_slice);
        let cost = move |call: &u64| costs.binary_search_by_key(&CallId(*call), |cost| cost.call).ok();
        calls.iter().filter_map(cost).map(move |at| &costs[at])
    }
}

#[pymethods]
impl Explained {
    /// The causes, worst first; what each call pays is asked for by `cost` and `payers`.
    #[getter]
    fn findings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let findings = json::to_python(py, &self.explained.findings)?;
        for (finding, costs) in findings.try_iter()?.zip(&self.costs) {
            finding?.set_item("calls", costs.len())?;
        }
        Ok(findings)
    }

    /// The pictures of each operation's slowest warm call.
    #[getter]
    fn waterfalls<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.explained.waterfalls)
    }

    /// The client's requests by method.
    #[getter]
    fn methods<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.explained.methods)
    }

    /// Seconds from each server process's start to its first answer.
    #[getter]
    fn starts(&self) -> Vec<f64> {
        self.explained.starts.iter().map(|start| start.as_secs_f64()).collect()
    }

    /// How each server process ended.
    #[getter]
    fn exits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.explained.exits)
    }

    /// Where the time inside each tool went.
    #[getter]
    fn tool_times<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.explained.tool_times)
    }

    /// Sources of evidence about the inside of the server that gave nothing, each with the reason.
    #[getter]
    fn missing_sources<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.explained.missing_sources)
    }

    /// How the spans of programs were joined to the calls.
    #[getter]
    fn spans<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.explained.spans)
    }

    /// Counts of the file of spans: spans without an end, spans that end before they begin, and whether it is cut off; `None`
    /// where no file was read.
    #[getter]
    fn span_counts(&self) -> Option<(u64, u64, bool)> {
        self.span_counts.map(|counts| (counts.unended, counts.impossible, counts.cut_off))
    }

    /// The tool of a call.
    fn tool(&self, call: u64) -> Option<&str> {
        self.explained.accounts.get(CallId(call)).and_then(|account| self.explained.accounts.tool(account))
    }

    /// Tool calls that a foreign client made one after another within one turn.
    #[getter]
    fn serial_calls<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.explained.serial_calls)
    }

    /// How many events there are.
    #[getter]
    fn events(&self) -> u64 {
        self.explained.events
    }

    /// How many could not be kept.
    #[getter]
    fn lost(&self) -> u64 {
        self.explained.lost
    }

    /// Whether the end is missing.
    #[getter]
    fn partial(&self) -> bool {
        self.explained.partial
    }

    /// The calls of one operation, by their starts.
    fn trials(slf: Py<Self>, operation: String) -> Trials {
        Trials { of: slf, operation, next: 0 }
    }

    /// The ledgers of `calls`, added up.
    fn sum<'py>(&self, py: Python<'py>, calls: Vec<u64>) -> PyResult<Bound<'py, PyAny>> {
        let sum = py.detach(|| self.explained.accounts.sum(calls.into_iter().map(CallId)));
        json::to_python(py, &sum)
    }

    /// Start and return of a call on the recording's clock, in nanoseconds.
    fn window(&self, call: u64) -> Option<(u64, u64)> {
        self.explained.accounts.get(CallId(call)).map(|account| (account.start.0, account.end.0))
    }

    /// Those of `calls` that pay for a finding.
    fn payers(&self, finding: usize, calls: Vec<u64>) -> Vec<u64> {
        self.call_costs(finding, &calls).map(|cost| cost.call.0).collect()
    }

    /// How many of `calls` pay for a finding, and what together: nanoseconds, requests, bytes.
    fn cost(&self, finding: usize, calls: Vec<u64>) -> (u64, u64, u64, u64) {
        self.call_costs(finding, &calls).fold((0, 0, 0, 0), |(payers, time, requests, bytes), cost| {
            (
                payers + 1,
                cost.time.0.saturating_add(time),
                cost.requests.saturating_add(requests),
                cost.bytes.saturating_add(bytes),
            )
        })
    }
}

/// Goes through the calls of one operation, one at a time: all of them would take more than the accounts do.
#[pyclass(module = "mcpace._core")]
pub(crate) struct Trials {
    of: Py<Explained>,
    operation: String,
    next: usize,
}

#[pymethods]
impl Trials {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self) -> Option<Trial> {
        let accounts = &self.of.get().explained.accounts;
        let mut rest = accounts.iter().enumerate().skip(self.next);
        let (at, account) = rest.find(|(_, account)| accounts.operation(account) == self.operation)?;
        self.next = at + 1;
        Some(trial_of(account, accounts.outcome(account)))
    }
}

fn trial_of(account: &Account, outcome: Option<&CallOutcome>) -> Trial {
    let (ended, message) = match outcome {
        Some(CallOutcome::Ok) => ("ok", None),
        Some(CallOutcome::ToolError) => ("tool-error", None),
        Some(CallOutcome::Failed(words)) => ("failed", Some(words.clone())),
        None => ("open", None),
    };
    (account.call.0, account.end.since(account.start).as_secs_f64(), ended, message)
}

/// Explains a file of spans alone: the calls of MCP servers that its traces tell of.
#[pyfunction]
pub(crate) fn explained_spans(py: Python<'_>, path: String) -> PyResult<Explained> {
    run_detached(py, move || {
        let mut counts = SpanCounts::default();
        let explained = explain_spans(|take| read_span_file(&path, take).map(|read| counts = read))?;
        Ok(Explained::of_spans(explained, counts))
    })
}

/// Everything that findings can say: causes with the schemas of their contexts, families, roles, reasons, experiments.
#[pyfunction]
pub(crate) fn catalogue(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    json::to_python(py, &mcpace_explain::catalogue())
}

/// Explains saved recordings. A recording is explained while it is read, and only the events that rules need are kept.
/// Several, those from behind a gateway, and one with a file of spans are read whole first.
#[pyfunction]
#[pyo3(name = "explained", signature = (paths, *, behind=Vec::new(), spans=None))]
pub(crate) fn explained_at(
    py: Python<'_>,
    paths: Vec<String>,
    behind: Vec<String>,
    spans: Option<String>,
) -> PyResult<Explained> {
    run_detached(py, move || {
        let behind = if behind.is_empty() { None } else { Some(read_together(&behind)?) };
        if let Some(spans) = spans {
            let recording = read_together(&paths)?;
            let offset = wall_clock_offset(&recording);
            let mut counts = SpanCounts::default();
            let explained = explain_with_spans(&recording, behind.as_ref(), offset, |take| {
                read_span_file(&spans, take).map(|read| counts = read)
            })?;
            return Ok(Explained::of_spans(explained, counts));
        }
        if let [path] = paths.as_slice() {
            match explained_file(&mut Reader::events(open_recording(path)?).or_raise()?, behind.as_ref()) {
                Err(RecordError::OutOfOrder) => {}
                explained => return explained.map(Explained::new).or_raise(),
            }
        }
        Ok(Explained::new(explain_recording(&read_together(&paths)?, behind.as_ref())))
    })
}

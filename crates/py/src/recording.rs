//! `Recording`: the events that an instrument recorded.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcpace_explain::{call_ledgers, call_waterfall, explain_recording, find_causes, inside_sums};
use mcpace_export::ExportError;
use mcpace_net::create_private;
use mcpace_record::{
    CallId, CallOutcome, Event, EventKind, EvidenceSource, Instrument, Nanos, PauseCause, Peer, RecordingHead,
    StackFrame, StackId, Writer,
};
use pyo3::prelude::*;

use crate::explained::Explained;
use crate::json;
use crate::problem::{EnvironmentProblem, UsageProblem};
use crate::recording_files::{read_recording, read_together};
use crate::runtime::run_detached;

/// Function, file and line of a call in a stack.
type FrameFields = (String, String, u32);

/// Events of one recording, with the client program's own stamps added to them.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Recording {
    inner: Mutex<mcpace_record::Recording>,
}

impl Recording {
    pub(crate) fn new(recording: mcpace_record::Recording) -> Self {
        Self { inner: Mutex::new(recording) }
    }

    pub(crate) fn lock_recording(&self) -> MutexGuard<'_, mcpace_record::Recording> {
        // A recording is only ever replaced whole, so a panic elsewhere can't have left it half changed.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds events, each with the index of the stack that it names.
    fn add_with_stacks(
        &self,
        py: Python<'_>,
        stacks: Vec<Vec<FrameFields>>,
        events: Vec<(u64, Event)>,
    ) -> PyResult<()> {
        let count = stacks.len() as u64;
        if events.iter().any(|(stack, _)| *stack >= count) {
            return Err(UsageProblem::new_err("an event names a stack that does not exist"));
        }
        let first = events.iter().map(|(_, event)| event.at).min().unwrap_or_default();
        py.detach(|| {
            let frames = |stack: Vec<FrameFields>| {
                stack.into_iter().map(|(function, file, line)| StackFrame { function, file, line }).collect()
            };
            let seen = stacks.into_iter().enumerate().map(|(number, stack)| Event {
                at: first,
                kind: EventKind::StackSeen { stack: StackId(number as u64), frames: frames(stack) },
            });
            let events = seen.chain(events.into_iter().map(|(_, event)| event)).collect();
            let head = RecordingHead::bare(Instrument::Client);
            self.lock_recording().beside(mcpace_record::Recording::new(head, events));
        });
        Ok(())
    }
}

#[pymethods]
impl Recording {
    /// Reads a recording from a file.
    #[staticmethod]
    fn load(py: Python<'_>, path: &str) -> PyResult<Self> {
        let path = path.to_owned();
        run_detached(py, move || read_recording(&path)).map(Self::new)
    }

    /// Reads several stdio recordings, one a server process, as one.
    #[staticmethod]
    fn merge(py: Python<'_>, paths: Vec<String>) -> PyResult<Self> {
        run_detached(py, move || {
            let mut parts = paths.iter().map(|path| read_recording(path));
            let mut whole = parts.next().ok_or_else(|| UsageProblem::new_err("no recording to merge"))??;
            for part in parts {
                let part = part?;
                whole.partial |= part.partial;
                whole.add(part.events().to_vec());
            }
            Ok(Self::new(whole))
        })
    }

    /// Adds an operation of the client's program by its own stamps; returns its id.
    #[pyo3(signature = (operation, tool, start_ns, end_ns, outcome="ok", message=None))]
    fn add_call(
        &self,
        operation: String,
        tool: Option<String>,
        start_ns: u64,
        end_ns: u64,
        outcome: &str,
        message: Option<String>,
    ) -> PyResult<u64> {
        let outcome = match outcome {
            "ok" => CallOutcome::Ok,
            "tool-error" => CallOutcome::ToolError,
            "failed" => CallOutcome::failed(&message.unwrap_or_default()),
            other => return Err(UsageProblem::new_err(format!("no outcome is called {other:?}"))),
        };
        let mut recording = self.lock_recording();
        let last = recording.events().iter().filter_map(|event| match event.kind {
            EventKind::CallStart { call, .. } => Some(call.0),
            _ => None,
        });
        let call = CallId(last.max().unwrap_or(0) + 1);
        recording.add(vec![
            Event { at: Nanos(start_ns), kind: EventKind::CallStart { call, operation, tool } },
            Event { at: Nanos(end_ns), kind: EventKind::CallEnd { call, outcome } },
        ]);
        Ok(call.0)
    }

    /// Writes it to a file.
    fn save(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        py.detach(|| {
            let cannot =
                |error: &dyn std::fmt::Display| EnvironmentProblem::new_err(format!("cannot write {path}: {error}"));
            let recording = self.lock_recording();
            let file = create_private(Path::new(path)).map_err(|error| cannot(&error))?;
            let mut writer = Writer::new(file, &recording.head).map_err(|error| cannot(&error))?;
            for event in recording.events() {
                writer.write(event).map_err(|error| cannot(&error))?;
            }
            writer.finish().map(|_| ()).map_err(|error| cannot(&error))
        })
    }

    /// Writes it to a file in another tool's format: `har`, `trace` (Chrome's) or `otlp` (JSON lines).
    fn export(&self, py: Python<'_>, format: &str, path: &str) -> PyResult<()> {
        let write: fn(&mcpace_record::Recording, BufWriter<File>) -> Result<(), ExportError> = match format {
            "har" => mcpace_export::write_har,
            "trace" => mcpace_export::write_trace,
            "otlp" => mcpace_export::write_otlp,
            other => return Err(UsageProblem::new_err(format!("no format is called {other:?}"))),
        };
        py.detach(|| {
            let recording = self.lock_recording();
            let file = create_private(Path::new(path));
            let file = file.map_err(|error| EnvironmentProblem::new_err(format!("cannot write {path}: {error}")))?;
            write(&recording, BufWriter::new(file)).map_err(|error| match error {
                ExportError::NoHttp => UsageProblem::new_err(error.to_string()),
                other => EnvironmentProblem::new_err(format!("cannot write {path}: {other}")),
            })
        })
    }

    /// A ledger for each operation.
    fn ledgers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let found = py.detach(|| call_ledgers(&self.lock_recording()));
        json::to_python(py, &found)
    }

    /// Findings of the recording.
    fn findings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let found = py.detach(|| find_causes(&self.lock_recording()));
        json::to_python(py, &found)
    }

    /// Ledgers and findings. `behind` is the recording between a gateway and its servers.
    #[pyo3(signature = (*, behind=None))]
    fn explained(&self, py: Python<'_>, behind: Option<&Self>) -> PyResult<Explained> {
        if behind.is_some_and(|behind| ptr::eq(self, behind)) {
            return Err(UsageProblem::new_err("one recording can't be both before and behind a gateway"));
        }
        Ok(Explained::new(py.detach(|| match behind {
            Some(behind) => explain_recording(&self.lock_recording(), Some(&behind.lock_recording())),
            None => explain_recording(&self.lock_recording(), None),
        })))
    }

    /// Reads several recordings of one machine as one; each keeps its connections, exchanges and operations to itself.
    #[staticmethod]
    fn beside(py: Python<'_>, paths: Vec<String>) -> PyResult<Self> {
        run_detached(py, move || read_together(&paths)).map(Self::new)
    }

    /// Adds the events of another recording of this machine.
    fn add_recording(&self, other: &Self) -> PyResult<()> {
        if ptr::eq(self, other) {
            return Err(UsageProblem::new_err("a recording can't be added to itself"));
        }
        let other = other.lock_recording().clone();
        self.lock_recording().beside(other);
        Ok(())
    }

    /// Adds that a source of evidence (`spans`, `stacks`, `pauses`, `sockets` or `processes`) gave nothing.
    fn add_missing_source(&self, source: &str, reason: String) -> PyResult<()> {
        let source = match source {
            "spans" => EvidenceSource::Spans,
            "stacks" => EvidenceSource::Stacks,
            "pauses" => EvidenceSource::Pauses,
            "sockets" => EvidenceSource::Sockets,
            "processes" => EvidenceSource::Processes,
            other => return Err(UsageProblem::new_err(format!("no source is called {other:?}"))),
        };
        let mut recording = self.lock_recording();
        let at = recording.events().last().map_or(Nanos::ZERO, |event| event.at);
        recording.add(vec![Event { at, kind: EventKind::SourceMissing { source, pid: None, reason } }]);
        Ok(())
    }

    /// Adds what a process was seen to use: `samples` are (clock, processor time, resident bytes, threads), times in
    /// nanoseconds.
    fn add_samples(&self, of: &str, pid: u32, samples: Vec<(u64, u64, u64, u32)>) -> PyResult<()> {
        let of = match of {
            "client" => Peer::Client,
            "server" => Peer::Server,
            other => return Err(UsageProblem::new_err(format!("no side is called {other:?}"))),
        };
        let event = |(at, cpu, resident, threads)| Event {
            at: Nanos(at),
            kind: EventKind::ProcessSample { of, pid, cpu: Nanos(cpu), resident, threads },
        };
        self.lock_recording().add(samples.into_iter().map(event).collect());
        Ok(())
    }

    /// Adds samples of the stacks of a process's threads. Each stack is a list of frames (function, file, line), the
    /// innermost first. `samples` are (clock in nanoseconds, thread, index of the stack, whether the thread ran).
    fn add_stacks(
        &self,
        py: Python<'_>,
        pid: u32,
        stacks: Vec<Vec<FrameFields>>,
        samples: Vec<(u64, u64, u64, bool)>,
    ) -> PyResult<()> {
        let sampled = |(at, thread, stack, running)| Event {
            at: Nanos(at),
            kind: EventKind::StackSample { pid, thread, stack: StackId(stack), running, lock: None },
        };
        self.add_with_stacks(py, stacks, samples.into_iter().map(|sample| (sample.2, sampled(sample))).collect())
    }

    /// Adds pauses of a process's runtime for the collection of garbage: beginning and end of each, in nanoseconds.
    fn add_pauses(&self, pid: u32, pauses: Vec<(u64, u64)>) {
        let cause = PauseCause::GarbageCollection;
        let event = |(began, ended)| Event {
            at: Nanos(ended),
            kind: EventKind::RuntimePause { pid, cause, began: Nanos(began) },
        };
        self.lock_recording().add(pauses.into_iter().map(event).collect());
    }

    /// Adds timers that a process's code waited for: when each was set, when it went off, and the index of the stack that set
    /// it. Each stack is a list of frames (function, file, line), the innermost first.
    fn add_timers(
        &self,
        py: Python<'_>,
        pid: u32,
        stacks: Vec<Vec<FrameFields>>,
        timers: Vec<(u64, u64, u64)>,
    ) -> PyResult<()> {
        let fired = |(began, ended, stack)| Event {
            at: Nanos(ended),
            kind: EventKind::TimerFired { pid, stack: StackId(stack), began: Nanos(began) },
        };
        self.add_with_stacks(py, stacks, timers.into_iter().map(|timer| (timer.2, fired(timer))).collect())
    }

    /// Adds work that the runtime of a process's language did on threads of its own: beginning, end and name of each.
    fn add_pool_work(&self, pid: u32, stretches: Vec<(u64, u64, String)>) {
        let event = |(began, ended, work)| Event {
            at: Nanos(ended),
            kind: EventKind::PoolWork { pid, work, began: Nanos(began) },
        };
        self.lock_recording().add(stretches.into_iter().map(event).collect());
    }

    /// Sums over what the server's programs did from one moment to another, in nanoseconds of the recording's clock.
    fn inside_sums<'py>(&self, py: Python<'py>, from_ns: u64, to_ns: u64) -> PyResult<Bound<'py, PyAny>> {
        let sums = py.detach(|| inside_sums(&self.lock_recording(), Nanos(from_ns), Nanos(to_ns)));
        json::to_python(py, &sums)
    }

    /// One operation's exchanges on a time axis; `None` where there is no such operation.
    fn waterfall<'py>(&self, py: Python<'py>, call: u64) -> PyResult<Bound<'py, PyAny>> {
        let shape = py.detach(|| call_waterfall(&self.lock_recording(), CallId(call)));
        json::to_python(py, &shape)
    }

    /// All events, earliest first.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.lock_recording().events())
    }

    /// Whether its end is missing.
    #[getter]
    fn partial(&self) -> bool {
        self.lock_recording().partial
    }

    /// How many events could not be kept.
    #[getter]
    fn lost(&self) -> u64 {
        self.lock_recording().lost()
    }

    fn __len__(&self) -> usize {
        self.lock_recording().events().len()
    }
}

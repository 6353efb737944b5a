//! The time of each tool, added up over its calls.

use std::collections::HashMap;

use mcpace_record::{EvidenceSource, Nanos};
use schemars::JsonSchema;
use serde::Serialize;

use super::flame_graph::{FlameGraph, FlameTree, ThreadState};
use super::frames::{Origin, origin_of, own_call, working_package};
use super::{DependencyKind, Doing, ToolCall, WarmCalls, split_tool_calls};
use crate::view::{SampledStack, SpanOwner, StackCall, View};

/// Lines, packages and dependencies of one tool that are told, and tools.
const MOST_ROWS: usize = 20;
const MOST_TOOLS: usize = 64;

/// A line of source code.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
pub struct SourceLine {
    /// Path of the file.
    pub file: String,
    /// Number of the line.
    pub line: u32,
    /// The function that it belongs to.
    pub function: String,
}

impl SourceLine {
    pub(crate) fn of_call(call: &StackCall<'_>) -> Self {
        Self { file: call.file.to_owned(), line: call.line, function: call.function.to_owned() }
    }
}

/// Where the time of a tool's calls went inside the server. The times are sums over all calls and add up to `server`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolTime {
    /// The tool.
    pub tool: String,
    /// Calls that can be told apart: those that were alone at the server, and those that traces lead to.
    pub calls: u64,
    /// Calls that were the first of their process and are left out: a program loads and compiles code then.
    pub first_calls: u64,
    /// Calls that overlapped others and are told apart by their traces.
    pub traced: u64,
    /// Calls that overlapped others and are left out.
    pub overlapping: u64,
    /// Time from the requests to the results at the server.
    #[serde(rename = "server_ns")]
    pub server: Nanos,
    /// Waits for dependencies, the longest first.
    pub dependencies: Vec<DependencyTime>,
    /// Time in which a thread ran, by the package that it worked for, the longest first.
    pub packages: Vec<PackageTime>,
    /// Time in which a thread ran or waited, by the line of the server's own code, the longest first.
    pub lines: Vec<LineTime>,
    /// Time in which a thread waited within the tool and no span covers that.
    #[serde(rename = "waiting_ns")]
    pub waiting: Nanos,
    /// Time of which no source tells.
    #[serde(rename = "rest_ns")]
    pub rest: Nanos,
    /// Moments that were sampled within the calls.
    pub samples: u64,
    /// Spans within the calls.
    pub spans: u64,
    /// Spans within the calls whose trace leads to the call. The others are joined by time.
    pub traced_spans: u64,
    /// The stacks as a tree, with the time of all packages and of `waiting`.
    pub flame: FlameGraph,
}

/// The wait for one dependency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DependencyTime {
    /// Its kind.
    pub kind: DependencyKind,
    /// Its name: `api.example.org:8080`, `postgresql shop`.
    pub name: String,
    /// Requests to it; 0 where only the connection is known, a program, work of the runtime and timers.
    pub requests: u64,
    /// Time in which the program waited for it and did nothing else.
    #[serde(rename = "time_ns")]
    pub time: Nanos,
}

/// Processor time of one package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PackageTime {
    /// Its name; `None` for the server's own code.
    pub package: Option<String>,
    /// Time in which a thread ran for it.
    #[serde(rename = "time_ns")]
    pub time: Nanos,
}

/// The time of one line of the server's own code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LineTime {
    /// The line.
    #[serde(flatten)]
    pub line: SourceLine,
    /// The function of a library that the line calls; `None` where the line itself takes the time.
    pub callee: Option<String>,
    /// Time in which a thread ran there.
    #[serde(rename = "running_ns")]
    pub running: Nanos,
    /// Time in which a thread waited there, without a span.
    #[serde(rename = "waiting_ns")]
    pub waiting: Nanos,
}

#[derive(Default)]
struct ToolSum<'a> {
    calls: u64,
    first_calls: u64,
    traced: u64,
    overlapping: u64,
    server: Nanos,
    waiting: Nanos,
    rest: Nanos,
    samples: u64,
    spans: u64,
    traced_spans: u64,
    tables: TimeTables<'a>,
    flame: FlameTree<'a>,
}

/// Times by dependency, by package, and by line of the server's own code.
#[derive(Default)]
pub(super) struct TimeTables<'a> {
    dependencies: HashMap<&'a str, (DependencyKind, u64, Nanos)>,
    packages: HashMap<Option<&'a str>, Nanos>,
    /// Running and waiting, by the own call and what it calls.
    lines: HashMap<(StackCall<'a>, Option<&'a str>), (Nanos, Nanos)>,
}

/// The time of each tool, in the order in which tools first occur, tools whose calls all overlapped last.
pub(crate) fn tool_times(view: &View<'_>) -> Vec<ToolTime> {
    let split = split_tool_calls(view);
    let mut tools: Vec<(&str, ToolSum<'_>)> = Vec::new();
    for tool in WarmCalls::of_tools(view, split.calls).into_iter().take(MOST_TOOLS) {
        let mut sum = ToolSum { calls: tool.calls.len() as u64, server: tool.server_time(), ..ToolSum::default() };
        sum.first_calls = if tool.has_first_calls { 0 } else { tool.first_calls.len() as u64 };
        tool.calls.iter().for_each(|call| sum.add_call(call));
        tools.push((tool.tool, sum));
    }
    for name in split.overlapping {
        if let Some((_, sum)) = tools.iter_mut().find(|(tool, _)| *tool == name) {
            sum.overlapping += 1;
        } else if tools.len() < MOST_TOOLS {
            tools.push((name, ToolSum { overlapping: 1, ..ToolSum::default() }));
        }
    }
    tools.into_iter().map(|(tool, sum)| sum.into_tool_time(tool)).collect()
}

impl<'a> ToolSum<'a> {
    fn add_call(&mut self, call: &ToolCall<'_, 'a>) {
        self.traced += u64::from(!call.is_alone);
        self.samples += call.samples;
        self.spans += call.spans.len() as u64;
        self.traced_spans += call.spans.iter().filter(|span| span.owner != SpanOwner::Unknown).count() as u64;
        for span in &call.spans {
            self.tables.add_dependency(span.dependency, span.kind, 1, Nanos::ZERO);
        }
        for stretch in &call.stretches {
            self.add_stretch(stretch.doing, stretch.time());
        }
    }

    fn add_stretch(&mut self, doing: Doing<'_, 'a>, time: Nanos) {
        match doing {
            Doing::Running(stack) => {
                self.tables.add_running(stack, time);
                self.flame.add_stack(stack, ThreadState::Running, time);
            }
            Doing::Dependency { span, .. } => self.tables.add_dependency(span.dependency, span.kind, 0, time),
            Doing::Outside { kind, name, thread } => {
                self.tables.add_dependency(name, kind, 0, time);
                if let Some((stack, _)) = thread {
                    self.tables.add_waiting(stack, time);
                }
            }
            Doing::Waiting { stack, .. } => {
                self.waiting = self.waiting + time;
                self.flame.add_stack(stack, ThreadState::Waiting, time);
                self.tables.add_waiting(stack, time);
            }
            Doing::Unknown => self.rest = self.rest + time,
        }
    }

    fn into_tool_time(self, tool: &str) -> ToolTime {
        let (dependencies, packages, lines) = self.tables.into_rows();
        ToolTime {
            tool: tool.to_owned(),
            calls: self.calls,
            first_calls: self.first_calls,
            traced: self.traced,
            overlapping: self.overlapping,
            server: self.server,
            dependencies,
            packages,
            lines,
            waiting: self.waiting,
            rest: self.rest,
            samples: self.samples,
            spans: self.spans,
            traced_spans: self.traced_spans,
            flame: self.flame.into_graph(),
        }
    }
}

impl<'a> TimeTables<'a> {
    pub(super) fn add_dependency(&mut self, name: &'a str, kind: DependencyKind, requests: u64, time: Nanos) {
        let entry = self.dependencies.entry(name).or_insert((kind, 0, Nanos::ZERO));
        (entry.1, entry.2) = (entry.1 + requests, entry.2 + time);
    }

    /// Adds the time of a thread that ran, to its package and to its line.
    pub(super) fn add_running(&mut self, stack: SampledStack<'a>, time: Nanos) {
        let package = self.packages.entry(working_package(stack)).or_default();
        *package = *package + time;
        self.add_line(stack, |(running, _)| *running = *running + time);
    }

    /// Adds the time of a thread that waited, to its line.
    pub(super) fn add_waiting(&mut self, stack: SampledStack<'a>, time: Nanos) {
        self.add_line(stack, |(_, waiting)| *waiting = *waiting + time);
    }

    fn add_line(&mut self, stack: SampledStack<'a>, add: impl FnOnce(&mut (Nanos, Nanos))) {
        if let Some(own) = own_call(stack) {
            add(self.lines.entry((stack[own], called_function(stack, own))).or_default());
        }
    }

    /// The rows with the longest times, the longest first.
    pub(super) fn into_rows(self) -> (Vec<DependencyTime>, Vec<PackageTime>, Vec<LineTime>) {
        let dependencies = self.dependencies.into_iter().map(|(name, (kind, requests, time))| DependencyTime {
            kind,
            name: name.to_owned(),
            requests,
            time,
        });
        let packages =
            self.packages.into_iter().map(|(name, time)| PackageTime { package: name.map(str::to_owned), time });
        let lines = self.lines.into_iter().map(|((call, callee), (running, waiting))| LineTime {
            line: SourceLine::of_call(&call),
            callee: callee.map(str::to_owned),
            running,
            waiting,
        });
        let mut dependencies: Vec<_> = dependencies.collect();
        let mut packages: Vec<_> = packages.collect();
        let mut lines: Vec<_> = lines.collect();
        dependencies.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
        packages.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.package.cmp(&b.package)));
        let time = |line: &LineTime| line.running + line.waiting;
        lines.sort_by(|a, b| time(b).cmp(&time(a)).then_with(|| (&a.line, &a.callee).cmp(&(&b.line, &b.callee))));
        dependencies.truncate(MOST_ROWS);
        packages.truncate(MOST_ROWS);
        lines.truncate(MOST_ROWS);
        (dependencies, packages, lines)
    }
}

/// The function of a library or of Python that the own call at `own` calls.
pub(crate) fn called_function<'a>(stack: SampledStack<'a>, own: usize) -> Option<&'a str> {
    let callee = stack[..own].last()?;
    (origin_of(callee.file) != Origin::Own).then_some(callee.function)
}

/// Sources that gave nothing, with the reason, for the report.
pub(crate) fn missing_sources(view: &View<'_>) -> Vec<(EvidenceSource, String)> {
    view.inside.missing.iter().map(|(source, reason)| (*source, (*reason).to_owned())).collect()
}

//! The flame graph of a tool: the time of its stacks as a tree of calls.
//!
//! The tree is made of the stretches from which [`ToolTime`](super::ToolTime) is added up, so its outermost calls together
//! have the time in which a thread ran or waited there. Its size is bounded: calls that take the least time are joined.

use std::collections::{HashMap, HashSet};

use mcpace_record::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

use super::frames::{Origin, origin_of, own_call, path_in_package, work_root};
use crate::view::{SampledStack, StackCall};

/// Calls that are kept at most. Each may have one more node, for the calls beneath it that are joined.
const MOST_CALLS: usize = 1_000;
/// Nodes of the tree while it grows, and its depth. Time of deeper calls counts for the calls above them.
const MOST_GROWN: usize = 200_000;
const MOST_DEPTH: usize = 200;

/// Where a function comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CodeOrigin {
    /// The server's own code.
    Own,
    /// An installed package.
    Library,
    /// Python itself.
    Interpreter,
}

/// A function in a [`FlameGraph`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlameFrame {
    /// Its name.
    pub function: String,
    /// Its file: a path within the packages for code that is not the server's own.
    pub file: String,
    /// Line of the call, for the server's own code.
    pub line: Option<u32>,
    /// Where it comes from.
    pub origin: CodeOrigin,
}

/// A call in a [`FlameGraph`], as one of all calls that its parent makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FlameNode {
    /// Position of the node that calls this one, counted from 1, always before it; 0 for the outermost calls.
    pub parent: u32,
    /// Index into [`FlameGraph::frames`]; `None` for several calls that are joined because they take little time.
    pub frame: Option<u32>,
    /// Time in which a thread ran in it and in the calls within.
    #[serde(rename = "running_ns")]
    pub running: Nanos,
    /// Time in which a thread waited in it and in the calls within, without a span.
    #[serde(rename = "waiting_ns")]
    pub waiting: Nanos,
}

/// The stacks of a tool's calls as a tree: sums over all calls.
///
/// A stack begins at the code of the tool. The calls of the SDK that lead to the tool are left out. Stacks outside of the
/// tool begin where the event loop or a thread begins its work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlameGraph {
    /// The functions.
    pub frames: Vec<FlameFrame>,
    /// The calls, each before those within it, the longest first.
    pub nodes: Vec<FlameNode>,
}

/// A function, and the line for the server's own code.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct FrameKey<'a> {
    call: StackCall<'a>,
    origin: CodeOrigin,
}

#[derive(Clone, Copy)]
struct GrownNode<'a> {
    parent: usize,
    /// `None` for the root.
    frame: Option<FrameKey<'a>>,
    running: Nanos,
    waiting: Nanos,
}

impl GrownNode<'_> {
    fn time(&self) -> Nanos {
        self.running + self.waiting
    }
}

/// Whether a thread runs or waits.
#[derive(Clone, Copy)]
pub(super) enum ThreadState {
    Running,
    Waiting,
}

/// A tree to which stacks are added.
pub(super) struct FlameTree<'a> {
    /// The first one is the root. Parents stand before their children.
    nodes: Vec<GrownNode<'a>>,
    known: HashMap<(usize, FrameKey<'a>), usize>,
}

impl Default for FlameTree<'_> {
    fn default() -> Self {
        let root = GrownNode { parent: 0, frame: None, running: Nanos::ZERO, waiting: Nanos::ZERO };
        Self { nodes: vec![root], known: HashMap::new() }
    }
}

impl<'a> FlameTree<'a> {
    pub(super) fn add_stack(&mut self, stack: SampledStack<'a>, state: ThreadState, time: Nanos) {
        let own = own_call(stack).map(|own| origin_of(stack[own].file));
        let mut at = 0;
        self.add_time(at, state, time);
        for call in stack.iter().take(work_root(stack) + 1).rev().take(MOST_DEPTH) {
            let key = FrameKey::of_call(call, own);
            let Some(child) = self.child(at, key) else { break };
            at = child;
            self.add_time(at, state, time);
        }
    }

    fn add_time(&mut self, at: usize, state: ThreadState, time: Nanos) {
        let node = &mut self.nodes[at];
        match state {
            ThreadState::Running => node.running = node.running + time,
            ThreadState::Waiting => node.waiting = node.waiting + time,
        }
    }

    /// The node of a call beneath another; `None` where there is no room for a new one.
    fn child(&mut self, parent: usize, frame: FrameKey<'a>) -> Option<usize> {
        if let Some(known) = self.known.get(&(parent, frame)) {
            return Some(*known);
        }
        if self.nodes.len() == MOST_GROWN {
            return None;
        }
        self.nodes.push(GrownNode { parent, frame: Some(frame), running: Nanos::ZERO, waiting: Nanos::ZERO });
        self.known.insert((parent, frame), self.nodes.len() - 1);
        Some(self.nodes.len() - 1)
    }

    pub(super) fn into_graph(self) -> FlameGraph {
        // A call takes no less time than the calls within it and stands before them: the first ones form a tree.
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by(|a, b| self.nodes[*b].time().cmp(&self.nodes[*a].time()).then_with(|| a.cmp(b)));
        let (kept, joined) = order.split_at(order.len().min(MOST_CALLS + 1));
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        kept.iter().filter(|at| **at > 0).for_each(|at| children[self.nodes[*at].parent].push(*at));
        let mut rest: HashMap<usize, (Nanos, Nanos)> = HashMap::new();
        let is_kept: HashSet<usize> = kept.iter().copied().collect();
        for node in joined.iter().map(|at| self.nodes[*at]).filter(|node| is_kept.contains(&node.parent)) {
            let (running, waiting) = rest.entry(node.parent).or_default();
            (*running, *waiting) = (*running + node.running, *waiting + node.waiting);
        }
        let mut writer = GraphWriter::default();
        // The nodes whose children are not written yet, with their positions in the graph.
        let mut open: Vec<(usize, u32)> = vec![(0, 0)];
        while let Some((at, parent)) = open.pop() {
            let first = open.len();
            for child in &children[at] {
                let node = self.nodes[*child];
                let frame = node.frame.map(|frame| writer.frame(frame));
                open.push((
                    *child,
                    writer.node(FlameNode { parent, frame, running: node.running, waiting: node.waiting }),
                ));
            }
            if let Some((running, waiting)) = rest.get(&at) {
                writer.node(FlameNode { parent, frame: None, running: *running, waiting: *waiting });
            }
            open[first..].reverse();
        }
        writer.graph
    }
}

impl<'a> FrameKey<'a> {
    fn of_call(call: &StackCall<'a>, own: Option<Origin<'a>>) -> Self {
        let found = origin_of(call.file);
        let origin = match found {
            Origin::Library(_) if own != Some(found) => CodeOrigin::Library,
            Origin::Standard(_) => CodeOrigin::Interpreter,
            Origin::Own | Origin::Library(_) => CodeOrigin::Own,
        };
        let line = if origin == CodeOrigin::Own { call.line } else { 0 };
        Self { call: StackCall { line, ..*call }, origin }
    }
}

#[derive(Default)]
struct GraphWriter<'a> {
    graph: FlameGraph,
    known: HashMap<FrameKey<'a>, u32>,
}

impl<'a> GraphWriter<'a> {
    /// Writes a node, and returns its position, counted from 1.
    fn node(&mut self, node: FlameNode) -> u32 {
        self.graph.nodes.push(node);
        self.graph.nodes.len() as u32
    }

    fn frame(&mut self, key: FrameKey<'a>) -> u32 {
        let frames = &mut self.graph.frames;
        *self.known.entry(key).or_insert_with(|| {
            frames.push(FlameFrame {
                function: key.call.function.to_owned(),
                file: path_in_package(key.call.file).to_owned(),
                line: (key.origin == CodeOrigin::Own).then_some(key.call.line),
                origin: key.origin,
            });
            frames.len() as u32 - 1
        })
    }
}

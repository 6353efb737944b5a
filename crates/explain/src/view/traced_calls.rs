//! The calls of MCP servers that spans tell of, where no traffic was recorded.

use std::collections::HashSet;

use mcpace_record::{CallId, ConnectionId, ExchangeId, MessageKind, MessageNote, Side, TraceContext};

use super::call_name::CallName;
use super::calls::PackedOutcome;
use super::leg::Fact;
use super::span_tree::SpanTree;
use super::texts::Keeper;
use super::{Call, Exchange, Stamp, Transport};

/// Name of calls whose tool the spans do not tell.
const HTTP_CALL: &str = "POST /mcp";

/// The calls of all servers in the traces.
pub(super) struct TracedCalls<'a> {
    pub(super) exchanges: Vec<Exchange<'a>>,
    pub(super) calls: Vec<Call<'a>>,
    /// The span and the service of each exchange.
    pub(super) spans: Vec<(Option<TraceContext>, &'a str)>,
}

/// Makes an operation and an exchange of each call, in the order in which they began.
pub(super) fn traced_calls<'a>(keeper: &mut Keeper<'a>, tree: &SpanTree<'a>) -> TracedCalls<'a> {
    let mut found = call_spans(tree);
    found.sort_by_key(|(node, _)| tree.nodes[*node as usize].began);
    let mut traced = TracedCalls { exchanges: Vec::new(), calls: Vec::new(), spans: Vec::new() };
    for (number, (node, tool)) in found.into_iter().enumerate() {
        let node = &tree.nodes[node as usize];
        let (id, call) = (ExchangeId(number as u64), CallId(number as u64));
        let (began, ended) = (Stamp { at: node.began, ..node.ended }, node.ended);
        let mut exchange = Exchange::new(id, Transport::Stdio, began);
        exchange.call = Some(call);
        exchange.messages = keeper.keep_notes(&[request_note(tool)]);
        exchange.answer = keeper.keep_notes(&[answer_note(node.failed)]).first();
        let leg = exchange.leg_mut(Side::Back);
        leg.set_fact(Fact::RequestStart, Some(began));
        leg.set_fact(Fact::RequestEnd, Some(began));
        leg.set_result(Some(ended), Some(ended));
        leg.set_fact(Fact::End, Some(ended));
        traced.exchanges.push(exchange);
        traced.calls.push(Call {
            id: call,
            operation: keeper.keep_text("call"),
            tool: Some(tool),
            start: began,
            end: Some(ended),
            outcome: Some(if node.failed { PackedOutcome::ToolError } else { PackedOutcome::Ok }),
            exchanges: keeper.keep_list([id]),
            in_flight: &[],
            failed_connects: &[] as &[ConnectionId],
        });
        traced.spans.push((node.id, node.service));
    }
    traced
}

/// The spans that are calls, each with its tool. Where several spans stand for one call, the outermost in
/// its program counts.
fn call_spans<'a>(tree: &SpanTree<'a>) -> Vec<(u32, &'a str)> {
    // Whether a request of MCP stands above a node within its program.
    let is_within = tree.fold_up(|node, parent, above: Option<bool>| match parent {
        None => Some(false),
        Some(parent) if tree.is_hop(node, parent) => Some(false),
        Some(parent) => match tree.nodes[parent as usize].call {
            Some(CallName::Tool(_) | CallName::Other) => Some(true),
            _ => above,
        },
    });
    let told: HashSet<&str> = tree
        .nodes
        .iter()
        .filter(|node| matches!(node.call, Some(CallName::Tool(_))))
        .map(|node| node.service)
        .collect();
    let name = |node: u32| match tree.nodes[node as usize].call {
        Some(CallName::Tool(tool)) if !is_within[node as usize] => Some(tool),
        // Where a program tells of its tools, its other HTTP requests are none.
        Some(CallName::HttpRequest) if !told.contains(tree.nodes[node as usize].service) => Some(HTTP_CALL),
        _ => None,
    };
    (0..tree.nodes.len() as u32).filter_map(|node| Some((node, name(node)?))).collect()
}

fn request_note(tool: &str) -> MessageNote {
    let (method, name) = (Some("tools/call".to_owned()), Some(tool.to_owned()));
    MessageNote { method, name, ..bare_note(MessageKind::Request) }
}

fn answer_note(failed: bool) -> MessageNote {
    MessageNote { is_error: failed, ..bare_note(MessageKind::Result) }
}

fn bare_note(kind: MessageKind) -> MessageNote {
    MessageNote {
        kind,
        id: None,
        method: None,
        name: None,
        content: None,
        arguments: None,
        tools: None,
        code: None,
        is_error: false,
        timing: None,
        traceparent: None,
    }
}

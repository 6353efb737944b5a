//! Spans by their traces: the call that the way up from a span leads to.
//!
//! Spans come from hostile programs: ids may repeat and parents may form a circle. Each span is visited once.

use std::collections::HashMap;

use mcpace_record::{Nanos, SpanKind, TraceContext};

use super::Stamp;
use super::call_name::CallName;

/// A span of any kind, as far as its place in its trace goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpanNode<'a> {
    /// Its trace and its id; `None` where it has none.
    pub(super) id: Option<TraceContext>,
    /// Id of the span that began it; 0 of none.
    pub(super) parent: u64,
    pub(super) kind: SpanKind,
    pub(super) began: Nanos,
    pub(super) ended: Stamp,
    /// The program that reported it; empty where that is unknown.
    pub(super) service: &'a str,
    /// The call of an MCP server that it is.
    pub(super) call: Option<CallName<'a>>,
    pub(super) failed: bool,
    /// Whether it comes from a file, with a clock that may be another machine's.
    pub(super) from_file: bool,
}

impl SpanNode<'_> {
    fn parent_id(&self) -> Option<TraceContext> {
        let id = self.id.filter(|_| self.parent != 0)?;
        Some(TraceContext { span: self.parent, ..id })
    }
}

/// The nodes of all traces.
#[derive(Debug, Default)]
pub(super) struct SpanTree<'a> {
    pub(super) nodes: Vec<SpanNode<'a>>,
    by_id: HashMap<TraceContext, u32>,
}

/// Where the way up from a span leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lead {
    /// Position of the exchange; `None` where the trace leads to none.
    pub(super) exchange: Option<u32>,
    /// Whether another program stands between: the span is work of a dependency.
    pub(super) is_remote: bool,
    /// Whether the request itself began the span.
    pub(super) is_direct: bool,
    /// Whether a span on the way up was not reported.
    pub(super) is_broken: bool,
}

impl<'a> SpanTree<'a> {
    /// Adds a node; `None` where its id is known already.
    pub(super) fn add_node(&mut self, node: SpanNode<'a>) -> Option<u32> {
        let number = u32::try_from(self.nodes.len()).ok()?;
        if let Some(id) = node.id {
            if self.by_id.contains_key(&id) {
                return None;
            }
            self.by_id.insert(id, number);
        }
        self.nodes.push(node);
        Some(number)
    }

    pub(super) fn parent_of(&self, node: u32) -> Option<u32> {
        let parent = self.nodes[node as usize].parent_id()?;
        self.by_id.get(&parent).copied().filter(|parent| *parent != node)
    }

    /// Whether a node stands in another program than its parent.
    pub(super) fn is_hop(&self, node: u32, parent: u32) -> bool {
        let (node, parent) = (&self.nodes[node as usize], &self.nodes[parent as usize]);
        matches!(node.kind, SpanKind::Server | SpanKind::Consumer)
            && matches!(parent.kind, SpanKind::Client | SpanKind::Producer)
    }

    /// The lead of each node. `anchors` are the spans that requests were sent from, each with the position of its exchange.
    pub(super) fn find_leads(&self, anchors: &HashMap<TraceContext, u32>) -> Vec<Lead> {
        self.fold_up(|node, parent, lead_of_parent| {
            let anchor = self.nodes[node as usize].parent_id().and_then(|parent| anchors.get(&parent));
            if let Some(exchange) = anchor {
                return Some(Lead { exchange: Some(*exchange), is_direct: true, ..Lead::default() });
            }
            let Some((parent, lead)) = parent.zip(lead_of_parent) else {
                let is_broken = self.nodes[node as usize].parent != 0;
                return parent.is_none().then(|| Lead { is_broken, ..Lead::default() });
            };
            Some(Lead { is_remote: lead.is_remote || self.is_hop(node, parent), is_direct: false, ..lead })
        })
    }

    /// Whether each node is one of `spans`, or stands above one.
    pub(super) fn mark_above<'s>(&self, spans: impl Iterator<Item = &'s TraceContext>) -> Vec<bool> {
        let mut above = vec![false; self.nodes.len()];
        for span in spans {
            let mut at = self.by_id.get(span).copied();
            while let Some(node) = at.filter(|node| !above[*node as usize]) {
                above[node as usize] = true;
                at = self.parent_of(node);
            }
        }
        above
    }

    /// Works out a value for each node, from the value of its parent. `value` gets the node, its parent, and the parent's
    /// value where that is known; it returns `None` where it needs the parent's.
    pub(super) fn fold_up<T: Copy + Default>(
        &self,
        mut value: impl FnMut(u32, Option<u32>, Option<T>) -> Option<T>,
    ) -> Vec<T> {
        #[derive(Clone, Copy, PartialEq, Eq)]
        enum Visit {
            Not,
            Begun,
            Done,
        }
        let mut values = vec![T::default(); self.nodes.len()];
        let mut visits = vec![Visit::Not; self.nodes.len()];
        let mut path: Vec<u32> = Vec::new();
        for start in 0..self.nodes.len() as u32 {
            let mut node = start;
            loop {
                if visits[node as usize] != Visit::Not {
                    break;
                }
                visits[node as usize] = Visit::Begun;
                let parent = self.parent_of(node);
                let known = parent.filter(|parent| visits[*parent as usize] == Visit::Done);
                if let Some(found) = value(node, parent, known.map(|parent| values[parent as usize])) {
                    (values[node as usize], visits[node as usize]) = (found, Visit::Done);
                    break;
                }
                path.push(node);
                // Without a parent, there is a value.
                let Some(parent) = parent else { break };
                node = parent;
            }
            while let Some(node) = path.pop() {
                let parent = self.parent_of(node);
                // A parent that is not done is part of a circle.
                let known = parent.filter(|parent| visits[*parent as usize] == Visit::Done);
                let of_parent = known.map_or_else(T::default, |parent| values[parent as usize]);
                values[node as usize] = value(node, parent, Some(of_parent)).unwrap_or_default();
                visits[node as usize] = Visit::Done;
            }
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::view::EventIndex;

    fn node(span: u64, parent: u64, kind: SpanKind) -> SpanNode<'static> {
        SpanNode {
            id: (span != 0).then_some(TraceContext { trace: 1, span }),
            parent,
            kind,
            began: Nanos(1),
            ended: Stamp { at: Nanos(2), event: EventIndex::new(0) },
            service: "",
            call: None,
            failed: false,
            from_file: true,
        }
    }

    fn tree(nodes: &[(u64, u64, SpanKind)]) -> SpanTree<'static> {
        let mut tree = SpanTree::default();
        for (span, parent, kind) in nodes {
            tree.add_node(node(*span, *parent, *kind));
        }
        tree
    }

    fn leads(nodes: &[(u64, u64, SpanKind)]) -> Vec<Lead> {
        tree(nodes).find_leads(&HashMap::from([(TraceContext { trace: 1, span: 100 }, 7)]))
    }

    #[test]
    fn the_way_up_leads_to_the_request_and_past_another_program_it_is_remote() {
        use SpanKind::{Client, Internal, Server};
        let nodes =
            [(5, 4, Client), (4, 3, Server), (3, 2, Client), (2, 1, Internal), (1, 100, Server), (9, 8, Client)];
        let leads = leads(&nodes);
        let told: Vec<_> = leads.iter().map(|lead| (lead.exchange, lead.is_remote, lead.is_direct)).collect();
        let here = Some(7);
        assert_eq!(
            told,
            [
                (here, true, false),
                (here, true, false),
                (here, false, false),
                (here, false, false),
                (here, false, true),
                (None, false, false)
            ]
        );
    }

    #[test]
    fn an_id_that_is_known_is_no_second_node() {
        let mut tree = tree(&[(1, 100, SpanKind::Client)]);
        assert_eq!(tree.add_node(node(1, 0, SpanKind::Client)), None);
        assert_eq!(tree.add_node(node(0, 0, SpanKind::Client)), Some(1));
        assert_eq!(tree.add_node(node(0, 0, SpanKind::Client)), Some(2));
    }

    #[test]
    fn a_circle_leads_nowhere() {
        for nodes in [&[(1, 1, SpanKind::Client)][..], &[(1, 2, SpanKind::Client), (2, 1, SpanKind::Client)]] {
            assert!(leads(nodes).iter().all(|lead| lead.exchange.is_none()));
        }
    }

    /// The way up, walked from each node.
    fn slow_lead(tree: &SpanTree<'_>, node: u32) -> Option<u32> {
        let mut at = node;
        for _ in 0..=tree.nodes.len() {
            if tree.nodes[at as usize].parent == 100 && tree.nodes[at as usize].id.is_some() {
                return Some(7);
            }
            at = tree.parent_of(at)?;
        }
        None
    }

    proptest! {
        #[test]
        fn leads_are_those_of_the_way_up(edges in prop::collection::vec((0..12_u64, prop_oneof![0..12_u64, Just(100)]), 0..12)) {
            let nodes: Vec<_> = edges.iter().map(|(span, parent)| (*span, *parent, SpanKind::Client)).collect();
            let tree = tree(&nodes);
            let leads = tree.find_leads(&HashMap::from([(TraceContext { trace: 1, span: 100 }, 7)]));
            for (number, lead) in leads.iter().enumerate() {
                prop_assert_eq!(lead.exchange, slow_lead(&tree, number as u32));
            }
        }
    }
}

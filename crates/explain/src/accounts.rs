//! Compact record of each call once its time is split: enough for sums over any set of calls.
//!
//! A recording has a million calls, so an account has neither stretches nor exchanges; those of one call are worked out
//! again where they are asked for ([`call_ledgers`](crate::call_ledgers), [`call_waterfall`](crate::call_waterfall)).

use std::collections::HashMap;
use std::hash::Hash;

use mcpace_record::{CallId, CallOutcome, Nanos, ServerTiming};
use serde::Serialize;

use crate::Parts;
use crate::findings::Stalls;
use crate::ledger::{processor_time, sweep_call};
use crate::server_split::ServerSplit;
use crate::view::{Call, PackedOutcome, Positions, View};

/// One call and where its time went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The call.
    pub call: CallId,
    /// Its start.
    pub start: Nanos,
    /// Its return; the recording's end where it never returned.
    pub end: Nanos,
    /// The split. Adds up to `end - start`, exactly.
    pub parts: Parts,
    layers: Option<Box<(ServerTiming, ServerSplit)>>,
    processor: Option<Nanos>,
    operation: u32,
    outcome: u32,
    tool: u32,
}

/// The accounts of all calls, in the order of their starts.
#[derive(Debug, Default)]
pub struct Accounts {
    calls: Vec<Account>,
    index: Positions,
    operations: Vec<String>,
    outcomes: Vec<Option<CallOutcome>>,
    tools: Vec<Option<String>>,
}

impl Accounts {
    pub(crate) fn from_view<'a>(view: &View<'a>, stalls: &Stalls) -> Self {
        let mut operations: Numbered<&'a str> = Numbered::default();
        let mut outcomes: Numbered<Option<PackedOutcome<'a>>> = Numbered::default();
        let mut tools: Numbered<Option<&'a str>> = Numbered::default();
        let mut account = |call: &Call<'a>| {
            let swept = sweep_call(view, stalls, call);
            Account {
                call: call.id,
                start: call.start.at,
                end: swept.end,
                parts: Parts::of(&swept.segments),
                layers: swept.server_layers(view, call).map(Box::new),
                processor: processor_time(view, call),
                operation: operations.number_of(call.operation),
                outcome: outcomes.number_of(call.outcome),
                tool: tools.number_of(call.tool),
            }
        };
        Self {
            calls: view.calls.iter().map(&mut account).collect(),
            index: view.calls.iter().map(|call| call.id.0).collect(),
            operations: operations.values.into_iter().map(str::to_owned).collect(),
            outcomes: outcomes.values.into_iter().map(|outcome| outcome.map(CallOutcome::from)).collect(),
            tools: tools.values.into_iter().map(|tool| tool.map(str::to_owned)).collect(),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Account> {
        self.calls.iter()
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether there is none: a recording of a foreign client.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// That of `call`.
    #[must_use]
    pub fn get(&self, call: CallId) -> Option<&Account> {
        self.index.get(call.0).map(|at| &self.calls[at])
    }

    /// `provider`, `connect`, `list`, `call`, `disconnect`.
    #[must_use]
    pub fn operation(&self, account: &Account) -> &str {
        &self.operations[account.operation as usize]
    }

    /// The tool, for `call`.
    #[must_use]
    pub fn tool(&self, account: &Account) -> Option<&str> {
        self.tools[account.tool as usize].as_deref()
    }

    /// How the call ended; `None` where it never returned.
    #[must_use]
    pub fn outcome(&self, account: &Account) -> Option<&CallOutcome> {
        self.outcomes[account.outcome as usize].as_ref()
    }

    /// The sum over those of `calls` that there are.
    #[must_use]
    pub fn sum(&self, calls: impl IntoIterator<Item = CallId>) -> AccountSum {
        let mut sum = AccountSum::default();
        calls.into_iter().filter_map(|call| self.get(call)).for_each(|account| sum.add_account(account));
        sum
    }
}

/// Accounts added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AccountSum {
    /// How many calls.
    pub calls: u64,
    /// Their time by part.
    pub parts: Parts,
    /// `parts.server` by the server's layers; what it did not report is `rest`.
    pub layers: ServerSplit,
    /// Number of calls whose layers the server reported.
    pub reported: u64,
    /// Number of calls whose reported layers can't be true.
    pub rejected: u64,
    /// All that the server reported of those.
    #[serde(rename = "rejected_ns")]
    pub rejected_time: Nanos,
    /// Number of calls for which the processor time of the server's process is known.
    pub processor_calls: u64,
    /// The server's part of those calls.
    #[serde(rename = "processor_wall_ns")]
    pub processor_wall: Nanos,
    /// Processor time of the server's process in those calls.
    #[serde(rename = "processor_ns")]
    pub processor: Nanos,
}

impl AccountSum {
    fn add_account(&mut self, account: &Account) {
        self.calls += 1;
        self.parts = self.parts + account.parts;
        if let Some(processor) = account.processor {
            self.processor_calls += 1;
            self.processor_wall = self.processor_wall + account.parts.server;
            self.processor = self.processor + processor;
        }
        let Some((timing, split)) = account.layers.as_deref() else {
            self.layers.rest = self.layers.rest + account.parts.server;
            return;
        };
        let doubt = self.layers.doubt.or(split.doubt);
        self.layers = ServerSplit {
            transport: self.layers.transport + split.transport,
            dispatch: self.layers.dispatch + split.dispatch,
            service: self.layers.service + split.service,
            rest: self.layers.rest + split.rest,
            doubt,
        };
        self.reported += 1;
        if split.doubt.is_some() {
            self.rejected += 1;
            self.rejected_time = self.rejected_time + timing.total();
        }
    }
}

/// Values by the number of their first occurrence.
struct Numbered<T> {
    values: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { values: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Copy + Eq + Hash> Numbered<T> {
    fn number_of(&mut self, value: T) -> u32 {
        *self.numbers.entry(value).or_insert_with(|| {
            self.values.push(value);
            // There are no more of them than events, which are counted with as many bits.
            (self.values.len() - 1) as u32
        })
    }
}

//! `repeated-listing`: a listing that a client already has, fetched again and again: before every call, every turn, as a
//! health check (litellm #23544, openai-agents #803, context-forge #2033).
//!
//! Counts listings of one session that bring what an earlier one brought, with no word of a change in between. A program
//! that was asked to list (`list`, `connect`) lists; listings between a result and its return are `hidden-listing`'s.
//! Sessions that a client begins only to list, and ends, count as one (fastmcp #1218).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use mcpace_record::{CallId, Digest, Nanos};

use crate::findings::groups::{Group, Groups};
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason, RepeatedListing, Severity};
use crate::view::{EventIndex, Exchange};

/// Repeats beside tool calls, and without any, below which nothing is concluded. Two are enough where each call has one.
const FEWEST: (u64, u64) = (3, 5);
const FEWEST_OF_EACH_CALL: u64 = 2;

/// Bytes that are more than hardly felt.
const LARGE: u64 = 100_000;

const LISTS: [(&str, &str); 4] = [
    ("tools/list", "notifications/tools/list_changed"),
    ("resources/list", "notifications/resources/list_changed"),
    ("resources/templates/list", "notifications/resources/list_changed"),
    ("prompts/list", "notifications/prompts/list_changed"),
];

#[derive(Default)]
struct RepeatedListings<'a> {
    tally: Tally,
    methods: BTreeSet<&'a str>,
    repeats: u64,
    tool_calls: u64,
    largest: u64,
    named: bool,
}

/// A listing and the earlier one that brought the same.
struct Repeat<'s, 'a> {
    method: &'static str,
    first: &'s Exchange<'a>,
    again: &'s Exchange<'a>,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let changes = list_changes(scene);
    let results = result_times(scene);
    let mut operations: ByOperation<'_, RepeatedListings<'_>> = ByOperation::new();
    let groups = Rc::clone(&scene.groups);
    let listing_sessions = listing_sessions(scene, &groups);
    let all_calls = scene.view.exchanges.iter().filter(|e| e.requests("tools/call")).count() as u64;
    let each_session = groups.iter().map(|(group, used)| {
        let tool_calls = used.iter().filter(|e| e.requests("tools/call")).count() as u64;
        (used, tool_calls, matches!(group, Group::Session(_)))
    });
    for (used, tool_calls, named) in each_session.chain([(&listing_sessions, all_calls, false)]) {
        let repeats = find_repeats(scene, used, &changes, &results);
        let count = repeats.len() as u64;
        let enough = match tool_calls {
            0 => FEWEST.1,
            _ if count >= tool_calls => FEWEST_OF_EACH_CALL,
            _ => FEWEST.0,
        };
        if count < enough || count * 5 < tool_calls * 4 {
            continue;
        }
        for repeat in &repeats {
            let listings = operations.value_of(scene.operation_of(repeat.again));
            charge_repeat(scene, repeat, listings);
            listings.named |= named;
            // Each operation is told the sessions' calls, not its own: a session may list in one and call in another.
            listings.tool_calls = listings.tool_calls.max(tool_calls);
        }
    }
    operations.into_iter().map(|(operation, listings)| make_finding(scene, operation, listings)).collect()
}

/// Exchanges of the sessions that were begun, listed and ended, and called no tool, in a recording of a foreign client.
fn listing_sessions<'s, 'a>(scene: &Scene<'s, 'a>, groups: &Groups<'s, 'a>) -> Vec<&'s Exchange<'a>> {
    if !scene.view.calls.is_empty() {
        return Vec::new();
    }
    let deleted = scene.view.exchanges.iter().filter(|exchange| exchange.method() == "DELETE");
    let deleted: HashSet<&str> = deleted.filter_map(|exchange| exchange.session_sent()).collect();
    let only_lists = |group: &Group<'_>, used: &[&Exchange<'a>]| {
        let is_ended = matches!(group, Group::Session(session) if deleted.contains(session));
        // A session with more listings is counted by itself.
        is_ended
            && !used.iter().any(|e| e.requests("tools/call"))
            && used.iter().filter(|e| is_listing(e)).count() as u64 <= FEWEST.1
    };
    let mut exchanges: Vec<_> =
        groups.iter().filter(|(group, used)| only_lists(group, used)).flat_map(|(_, used)| used).copied().collect();
    exchanges.sort_by_key(|exchange| exchange.start.event);
    exchanges
}

fn is_listing(exchange: &Exchange<'_>) -> bool {
    LISTS.iter().any(|(method, _)| exchange.requests(method))
}

/// When a server said that a list had changed: positions of events, by the notification's name.
fn list_changes(scene: &Scene<'_, '_>) -> HashMap<&'static str, Vec<EventIndex>> {
    let mut changes: HashMap<&'static str, Vec<EventIndex>> = HashMap::new();
    let streamed = scene.view.exchanges.iter().flat_map(|exchange| &exchange.events);
    let streamed = streamed.filter_map(|event| Some((event.read()?, event.messages)));
    let lines = scene.view.notifying.iter().map(|line| (line.read, line.messages));
    for (read, messages) in streamed.chain(lines) {
        for (_, notification) in &LISTS {
            if messages.iter().any(|message| message.notifies(notification)) {
                changes.entry(notification).or_default().push(read.event);
            }
        }
    }
    for events in changes.values_mut() {
        events.sort_unstable();
    }
    changes
}

/// When each call had its tool's result: a listing after it is `hidden-listing`'s.
fn result_times(scene: &Scene<'_, '_>) -> HashMap<CallId, Nanos> {
    let mut results: HashMap<CallId, Nanos> = HashMap::new();
    for exchange in scene.view.exchanges.iter().filter(|e| e.requests("tools/call") && e.answer.is_some()) {
        if let (Some(call), Some(completed)) = (exchange.call, exchange.completed()) {
            let first = results.entry(call).or_insert(completed.at);
            *first = completed.at.min(*first);
        }
    }
    results
}

fn find_repeats<'s, 'a>(
    scene: &Scene<'s, 'a>,
    used: &[&'s Exchange<'a>],
    changes: &HashMap<&'static str, Vec<EventIndex>>,
    results: &HashMap<CallId, Nanos>,
) -> Vec<Repeat<'s, 'a>> {
    let mut known: HashMap<(&str, Digest), &'s Exchange<'a>> = HashMap::new();
    let mut found = Vec::new();
    for listing in used {
        let method = LISTS.iter().find(|(method, _)| listing.requests(method));
        let (Some((method, notification)), true) = (method, listing.succeeded()) else { continue };
        let Some(content) = listing.answer.and_then(|answer| answer.content) else { continue };
        let Some(first) = known.insert((method, content), listing) else { continue };
        let changed = changes.get(notification).is_some_and(|events| {
            let next = events.partition_point(|event| *event <= first.start.event);
            events.get(next).is_some_and(|event| *event <= listing.start.event)
        });
        let hidden =
            listing.call.and_then(|call| results.get(&call)).is_some_and(|result| *result <= listing.sent().at);
        if !changed && !hidden && !asked_for(scene, listing) && !scene.is_repeat(listing) {
            found.push(Repeat { method, first, again: listing });
        }
    }
    found
}

fn asked_for(scene: &Scene<'_, '_>, listing: &Exchange<'_>) -> bool {
    matches!(scene.operation_of(listing), Some("list" | "connect"))
}

fn charge_repeat(scene: &mut Scene<'_, '_>, repeat: &Repeat<'_, '_>, listings: &mut RepeatedListings<'_>) {
    let again = repeat.again;
    let from = again.sent();
    let to = again.completed().map_or(from.at, |stamp| stamp.at);
    let time = scene.claim_stretch(again.call, from.at, to);
    listings.tally.add_cost(again.call, time, 1, again.bytes());
    listings.tally.prove_events(&[
        (ProofRole::Listing, Some(repeat.first.sent())),
        (ProofRole::RepeatedListing, Some(from)),
        (ProofRole::ListingResult, again.completed()),
    ]);
    listings.methods.insert(repeat.method);
    listings.repeats += 1;
    listings.largest = listings.largest.max(again.reply_bytes);
}

fn make_finding(scene: &Scene<'_, '_>, operation: Option<&str>, listings: RepeatedListings<'_>) -> Finding {
    let large = if listings.largest >= LARGE { Severity::Medium } else { Severity::Low };
    let severity = listings.tally.median_severity().max(large);
    let level = if listings.named { Level::High } else { Level::Medium };
    let context = RepeatedListing {
        methods: listings.methods.into_iter().map(str::to_owned).collect(),
        repeats: listings.repeats,
        tool_calls: listings.tool_calls,
        largest_bytes: listings.largest,
    };
    listings.tally.into_finding(
        Cause::RepeatedListing(context),
        operation,
        severity,
        scene.confidence_for(level, Reason::Repeated),
        Disproof::KeepListing,
    )
}

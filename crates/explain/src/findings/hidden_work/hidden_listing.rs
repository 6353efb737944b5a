//! `hidden-listing`: a `tools/list` between a call's result and the call's return (python-sdk #3513: the client fetches
//! the output schemas to check the result against).

use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, HiddenListing, Level, ProofRole, Reason};
use crate::view::{Call, Exchange, Stamp};

#[derive(Default)]
struct HiddenListings {
    tally: Tally,
    context: HiddenListing,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut operations: ByOperation<'_, HiddenListings> = ByOperation::new();
    for call in &scene.view.calls {
        let exchanges = scene.exchanges_of(call);
        let Some(result) = tool_result(&exchanges) else {
            continue;
        };
        let listings = operations.value_of(Some(call.operation));
        listings.context.of_calls += 1;
        charge_listings(scene, call, &exchanges, result, listings);
    }
    operations
        .into_iter()
        .filter(|(_, listings)| listings.context.calls > 0)
        .map(|(operation, listings)| make_finding(scene, operation, listings))
        .collect()
}

/// The first result of a `tools/call`.
fn tool_result(exchanges: &[&Exchange<'_>]) -> Option<Stamp> {
    let mut calls = exchanges.iter().filter(|e| e.requests("tools/call"));
    calls.find_map(|call| call.near()?.result_end.filter(|_| call.answer.is_some()))
}

fn charge_listings(
    scene: &mut Scene<'_, '_>,
    call: &Call<'_>,
    exchanges: &[&Exchange<'_>],
    result: Stamp,
    listings: &mut HiddenListings,
) {
    let hidden = exchanges.iter().filter(|e| {
        // Repeats of a listing are duplicate-request's, with their time.
        e.requests("tools/list") && e.sent().at >= result.at && !scene.is_repeat(e)
    });
    let hidden: Vec<_> = hidden.collect();
    let later_call =
        exchanges.iter().rfind(|e| e.requests("tools/call") && !scene.is_repeat(e)).map(|later| later.sent().at);
    let (mut from, mut charged) = (result.at, false);
    for listing in &hidden {
        // A program that lists and then calls again inside one operation asked for the listing.
        if later_call.is_some_and(|later| later >= listing.sent().at) {
            continue;
        }
        let to = listing.completed().map_or(scene.view.end_of(call), |stamp| stamp.at);
        let time = scene.claim_stretch(Some(call.id), from.min(listing.sent().at), to);
        (from, charged) = (to, true);
        let tally = &mut listings.tally;
        tally.add_cost(Some(call.id), time, 1, listing.bytes());
        tally.prove_events(&[
            (ProofRole::Result, Some(result)),
            (ProofRole::Listing, Some(listing.sent())),
            (ProofRole::ListingResult, listing.completed()),
            (ProofRole::CallReturned, call.end),
        ]);
        listings.context.listings += 1;
    }
    listings.context.calls += u64::from(charged);
}

fn make_finding(scene: &Scene<'_, '_>, operation: Option<&str>, listings: HiddenListings) -> Finding {
    let severity = listings.tally.median_severity();
    listings.tally.into_finding(
        Cause::HiddenListing(listings.context),
        operation,
        severity,
        scene.confidence_for(Level::High, Reason::OrderInsideCall),
        Disproof::CallWithoutOutputSchema,
    )
}

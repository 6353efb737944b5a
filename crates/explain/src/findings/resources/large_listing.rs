//! `large-listing`: a listing of tools that takes a good part of a model's context, and of the transfer (mcp2cli #1: 142
//! tools, some 93,000 tokens).
//!
//! Tokens are estimated from bytes: tokenizers differ, and schemas are mostly ASCII.

use std::collections::BTreeMap;
use std::rc::Rc;

use mcpace_record::{Digest, Nanos};

use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, LargeListing, Level, ProofRole, Reason, Severity};
use crate::view::Exchange;

/// Bytes of JSON for a token, nearly.
const BYTES_PER_TOKEN: u64 = 4;

/// Tokens from which on a listing is large, and very large.
const LARGE: (u64, u64) = (25_000, 50_000);

#[derive(Clone, Copy, Default)]
struct Size {
    bytes: u64,
    tools: Option<u64>,
    pages: u64,
}

#[derive(Default)]
struct LargeListings {
    tally: Tally,
    largest: Size,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut operations: ByOperation<'_, LargeListings> = ByOperation::new();
    let mut transferred = 0_u64;
    for used in Rc::clone(&scene.groups).values() {
        let listings: Vec<_> = used.iter().filter(|e| e.requests("tools/list") && e.succeeded()).collect();
        let size = listing_size(&listings);
        transferred = listings.iter().map(|listing| listing.reply_bytes).fold(transferred, u64::saturating_add);
        if size.bytes / BYTES_PER_TOKEN < LARGE.0 {
            continue;
        }
        for listing in listings {
            let operation = operations.value_of(scene.operation_of(listing));
            // No time: that is charged where a listing is needless.
            operation.tally.add_cost(listing.call, Nanos::ZERO, 0, listing.reply_bytes);
            operation.tally.prove_events(&[
                (ProofRole::Listing, Some(listing.sent())),
                (ProofRole::ListingResult, listing.completed()),
            ]);
            if size.bytes > operation.largest.bytes {
                operation.largest = size;
            }
        }
    }
    let all = scene.view.exchanges.iter().map(Exchange::bytes).fold(0, u64::saturating_add);
    operations.into_iter().map(|(operation, it)| make_finding(scene, operation, it, (transferred, all))).collect()
}

/// One session's whole listing: its pages, each once.
fn listing_size(listings: &[&&Exchange<'_>]) -> Size {
    let mut pages: BTreeMap<Option<Digest>, (u64, Option<u64>)> = BTreeMap::new();
    for listing in listings {
        let asked = listing.messages.iter().find(|message| message.requests("tools/list"));
        let tools = listing.answer.and_then(|answer| answer.tools()).map(u64::from);
        // A page that is asked for again counts once. If it changed, the largest version counts.
        let page = pages.entry(asked.and_then(|message| message.content)).or_default();
        *page = (*page).max((listing.reply_bytes, tools));
    }
    Size {
        bytes: pages.values().map(|(bytes, _)| *bytes).fold(0, u64::saturating_add),
        tools: pages.values().map(|(_, tools)| *tools).sum(),
        pages: pages.len() as u64,
    }
}

fn make_finding(
    scene: &Scene<'_, '_>,
    operation: Option<&str>,
    listings: LargeListings,
    (transferred, all): (u64, u64),
) -> Finding {
    let Size { bytes, tools, pages } = listings.largest;
    let tokens = bytes / BYTES_PER_TOKEN;
    let severity = if tokens >= LARGE.1 { Severity::Medium } else { Severity::Low };
    let context = LargeListing { tools, pages, bytes, tokens, bytes_in_all: transferred, of_bytes: all };
    listings.tally.into_finding(
        Cause::LargeListing(context),
        operation,
        severity,
        scene.confidence_for(Level::High, Reason::SizeOnTheWire),
        Disproof::CountTokens,
    )
}

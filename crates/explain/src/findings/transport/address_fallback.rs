//! `address-fallback`: the first address of a name doesn't answer, and the next one does: `::1` first, then `127.0.0.1`.
//!
//! Seen where the instrument connects; a client that asks for the same name takes the same way. A refusal that costs
//! nothing is no finding.

use mcpace_record::Nanos;

use super::AddressFallback;
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason};
use crate::view::{Connection, View};

/// A failed try below this is not felt.
const FELT: Nanos = Nanos::from_millis(1);

/// The next address is tried at once.
const AT_ONCE: Nanos = Nanos::from_millis(5);

/// Connections that others may open between a failed try and the next.
const AMONG: usize = 16;

#[derive(Default)]
struct Tries<'a> {
    tally: Tally,
    tries: u64,
    first: Option<(&'a str, &'a str)>,
    longest: Nanos,
}

/// A try that failed, and the one after it that stood.
struct Fallback<'v, 'a> {
    failed: &'v Connection<'a>,
    took: Nanos,
    stood: &'v Connection<'a>,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let view = scene.view;
    let mut operations: ByOperation<'_, Tries<'_>> = ByOperation::new();
    for Fallback { failed, took, stood } in find_fallbacks(view) {
        let exchange = stood.first_exchange.and_then(|id| view.exchange(id));
        let call = exchange.and_then(|exchange| exchange.call);
        let (Some(from), Some(to)) = (failed.connecting, failed.failed) else { continue };
        let time = scene.claim_stretch(call, from.at, to.at);
        let tries = operations.value_of(exchange.and_then(|exchange| scene.operation_of(exchange)));
        tries.tally.add_cost(call, time, 0, 0);
        tries.tally.prove_events(&[
            (ProofRole::ConnectTried, Some(from)),
            (ProofRole::ConnectFailed, Some(to)),
            (ProofRole::ConnectionOpened, stood.opened),
        ]);
        tries.tries += 1;
        tries.longest = tries.longest.max(took);
        tries.first.get_or_insert((failed.address, stood.address));
    }
    operations.into_iter().map(|(operation, tries)| make_finding(scene, operation, tries)).collect()
}

fn find_fallbacks<'v, 'a>(view: &'v View<'a>) -> Vec<Fallback<'v, 'a>> {
    let connections = &view.connections;
    let tries = connections.iter().enumerate().filter_map(|(at, failed)| {
        let end = failed.failed.filter(|_| failed.opened.is_none())?;
        let took = end.at.since(failed.connecting?.at);
        let next = |other: &&Connection<'a>| {
            other.connecting.is_some_and(|begun| begun.at >= end.at && begun.at.since(end.at) <= AT_ONCE)
                && other.address != failed.address
                && address_port(other.address) == address_port(failed.address)
        };
        let stood = connections[at + 1..].iter().take(AMONG).find(next)?;
        (took >= FELT && stood.opened.is_some()).then_some(Fallback { failed, took, stood })
    });
    tries.collect()
}

fn address_port(address: &str) -> Option<&str> {
    address.rsplit_once(':').map(|(_, port)| port)
}

fn make_finding(scene: &Scene<'_, '_>, operation: Option<&str>, tries: Tries<'_>) -> Finding {
    let severity = tries.tally.median_severity();
    let (from, to) = tries.first.unwrap_or_default();
    let context =
        AddressFallback { tries: tries.tries, from: from.to_owned(), to: to.to_owned(), longest: tries.longest };
    let confidence = match tries.tries {
        1 => scene.confidence_for(Level::Medium, Reason::SeenOnce),
        _ => scene.confidence_for(Level::High, Reason::Repeated),
    };
    let cause = Cause::AddressFallback(context);
    tries.tally.into_finding(cause, operation, severity, confidence, Disproof::ConnectByAddress)
}

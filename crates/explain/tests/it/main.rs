//! Recordings written by hand, and what is concluded from them.

mod duplicate_request;
mod healthy;
mod hidden_listing;
mod hostile;
mod late_delivery;
mod ledger;
mod script;
mod sessions;
mod slow_start;
mod transport;
mod view;
mod waits_for_get;

use mcpace_explain::{Cause, Finding, findings, ledgers};
use mcpace_record::Recording;

/// Everything that is found in `recording`.
fn found(recording: &Recording) -> Vec<Finding> {
    findings(recording, &ledgers(recording))
}

/// The codes of everything that is found.
fn codes(recording: &Recording) -> Vec<&'static str> {
    found(recording).iter().map(|f| f.cause.code()).collect()
}

/// Fails when a cause, or the reason or experiment that goes with it, has no case that shows it.
#[test]
fn every_cause_reason_and_disproof_is_shown_by_a_case() {
    let cases = [
        duplicate_request::python_1_12_with_oauth(),
        duplicate_request::only_notifications(),
        hidden_listing::after_the_result(),
        late_delivery::drained_bodies(),
        late_delivery::nothing_on_the_wire(),
        late_delivery::incomplete(),
        transport::connection_per_request(),
        transport::replies_left_early(),
        sessions::session_per_call(),
        sessions::discovery_repeated(),
        waits_for_get::held(Some("Bearer t"), 1),
        waits_for_get::held(None, 2),
        slow_start::slow(),
    ];
    let all: Vec<Finding> = cases.iter().flat_map(found).collect();
    for code in Cause::CODES {
        assert!(all.iter().any(|f| f.cause.code() == code), "no case shows {code}");
    }
    let mut shown: Vec<String> = all.iter().map(|f| format!("{:?}", f.confidence.reason)).collect();
    shown.extend(all.iter().map(|f| format!("{:?}", f.disproof)));
    shown.sort();
    shown.dedup();
    // 10 reasons and 10 experiments.
    assert_eq!(shown.len(), 20, "{shown:?}");
    for finding in &all {
        let json = serde_json::to_value(finding).unwrap();
        assert_eq!(json["code"], finding.cause.code());
        assert!(json["context"].is_object());
    }
}

//! Recordings written by hand, and what is concluded from them.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod auth_deadlock;
mod concurrency;
mod constant_cost;
mod duplicate_request;
mod gateway;
mod healthy;
mod hidden_listing;
mod hostile;
mod inside;
mod inside_connections;
mod inside_contention;
mod inside_processor;
mod inside_timers;
mod late_delivery;
mod ledger;
mod loops;
mod measurement;
mod methods;
mod network;
mod rates;
mod repeated_listing;
mod resources;
mod retried_execution;
mod script;
mod serial_calls;
mod sessions;
mod simulation;
mod slow_start;
mod streams;
mod time_outs;
mod traces;
mod transport;
mod view;
mod waits_for_get;
mod ways;

use mcpace_explain::{Code, Disproof, Finding, ProofRole, Reason, find_causes};
use mcpace_record::Recording;

/// Everything that is found in `recording`.
fn found(recording: &Recording) -> Vec<Finding> {
    find_causes(recording)
}

/// The codes of everything that is found.
fn codes(recording: &Recording) -> Vec<&'static str> {
    found(recording).iter().map(|f| f.cause.code()).collect()
}

/// Fails when a cause, or the reason or experiment that goes with it, has no case that shows it.
#[test]
fn every_cause_reason_and_disproof_is_shown_by_a_case() {
    let cases = [
        duplicate_request::cases(),
        hidden_listing::cases(),
        late_delivery::cases(),
        transport::cases(),
        sessions::cases(),
        waits_for_get::cases(),
        slow_start::cases(),
        retried_execution::cases(),
        repeated_listing::cases(),
        constant_cost::cases(),
        auth_deadlock::cases(),
        loops::cases(),
        resources::cases(),
        concurrency::cases(),
        ways::cases(),
        streams::cases(),
        time_outs::cases(),
        network::cases(),
        measurement::cases(),
        inside::cases(),
        inside_processor::cases(),
        inside_connections::cases(),
        inside_contention::cases(),
        inside_timers::cases(),
    ];
    let mut all: Vec<Finding> = cases.iter().flatten().flat_map(found).collect();
    all.extend(gateway::shown());
    for code in Code::ALL {
        assert!(all.iter().any(|f| f.cause.kind() == *code), "no case shows {code:?}");
    }
    for reason in Reason::ALL {
        assert!(all.iter().any(|f| f.confidence.reason == *reason), "no case shows {reason:?}");
    }
    let decides = |f: &Finding, disproof| {
        f.disproof == disproof || f.alternatives.iter().any(|other| other.decided_by == disproof)
    };
    for disproof in Disproof::ALL {
        assert!(all.iter().any(|f| decides(f, *disproof)), "no case shows {disproof:?}");
    }
    for role in ProofRole::ALL {
        assert!(all.iter().any(|f| f.evidence.iter().any(|e| e.role == *role)), "no case shows {role:?}");
    }
    for finding in &all {
        let json = serde_json::to_value(finding).unwrap();
        assert_eq!(json["code"], finding.cause.code());
        assert!(json["context"].is_object());
    }
}

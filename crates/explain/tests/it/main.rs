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
mod late_delivery;
mod ledger;
mod loops;
mod measurement;
mod methods;
mod repeated_listing;
mod resources;
mod retried_execution;
mod script;
mod sessions;
mod slow_start;
mod streams;
mod transport;
mod view;
mod waits_for_get;
mod ways;

use mcpace_explain::{Code, Disproof, Finding, Reason, Role, findings};
use mcpace_record::Recording;

/// Everything that is found in `recording`.
fn found(recording: &Recording) -> Vec<Finding> {
    findings(recording)
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
        transport::some_replies_left_early(),
        sessions::session_per_call(),
        sessions::discovery_repeated(),
        waits_for_get::held(Some("Bearer t"), 1),
        waits_for_get::held(None, 2),
        slow_start::slow(),
        retried_execution::after_a_timeout(),
        retried_execution::at_once(),
        repeated_listing::before_each_call(),
        constant_cost::with_token(),
        constant_cost::with_session(),
        auth_deadlock::hanging(),
        transport::replies_left_early_beside_others(),
        loops::get_loop(),
        loops::resume_loop(),
        loops::steady(),
        loops::in_step(),
        resources::session_leak(),
        resources::sessions_for_each_call(),
        resources::task_leak(),
        resources::rebuilt(),
        resources::large_listing(),
        concurrency::blocked(),
        concurrency::blocked_or_serial(),
        concurrency::blocked_stdio(),
        concurrency::serial(),
        concurrency::serial_by_heads(),
        concurrency::waves(),
        concurrency::waves_or_pool(),
        concurrency::pool(),
        concurrency::pool_by_heads(),
        concurrency::head_of_line(),
        concurrency::buffered_stdout(),
        ways::redirected(),
        ways::dead_address(),
        ways::probing(),
        ways::acknowledged_late(),
        streams::bunched(),
        streams::packed(),
        streams::cut_by_the_server(),
        streams::cut_by_the_client(),
        streams::no_connection_free(),
        measurement::busy(),
        measurement::kept_from_running(),
        measurement::squared(),
    ];
    let mut all: Vec<Finding> = cases.iter().flat_map(found).collect();
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
    for role in Role::ALL {
        assert!(all.iter().any(|f| f.evidence.iter().any(|e| e.role == *role)), "no case shows {role:?}");
    }
    for finding in &all {
        let json = serde_json::to_value(finding).unwrap();
        assert_eq!(json["code"], finding.cause.code());
        assert!(json["context"].is_object());
    }
}

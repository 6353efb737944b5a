//! Server processes that take long to answer first.

use mcpace_explain::explain_recording;
use mcpace_record::{LineFrom, Recording};

use crate::script::{Reply, Script, call_tool, ms, request};
use crate::{codes, found};

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![slow()]
}

/// A process that is spawned at 1 ms, asked at `asked`, answers at `first`, and answers later requests in `later`.
fn process(asked: f64, first: f64, later: f64) -> Recording {
    let mut script = Script::stdio();
    script.call("connect", 0.0, first + 1.0);
    script.spawn(1.0, 42, "/usr/bin/npx");
    let initialize = || Some(request(0.0, 0, "initialize", Reply::Silence));
    script.line(asked, LineFrom::Client, initialize());
    script.line(first / 2.0, LineFrom::ServerStderr, None);
    script.line(first, LineFrom::Server, initialize());
    for id in 1..4 {
        let at = first + 10_000.0 * id as f64;
        script.call("call", at, at + later + 3.0);
        let call = || Some(call_tool(0.0, id, Reply::Silence));
        script.line(at + 1.0, LineFrom::Client, call());
        script.line(at + 1.0 + later, LineFrom::Server, call());
    }
    script.recording()
}

pub(crate) fn slow() -> Recording {
    process(2.0, 4_000.0, 5.0)
}

#[test]
fn a_slow_first_answer_is_named_with_what_would_tell_its_reason() {
    insta::assert_json_snapshot!(found(&slow()));
}

#[test]
fn a_start_under_a_second_is_usual() {
    assert_eq!(codes(&process(2.0, 900.0, 5.0)), [""; 0]);
}

#[test]
fn a_client_that_asks_late_is_not_the_servers_start() {
    assert_eq!(codes(&process(3_990.0, 4_000.0, 5.0)), [""; 0]);
}

#[test]
fn a_server_that_is_always_slow_does_not_start_slowly() {
    assert_eq!(codes(&process(2.0, 4_000.0, 2_000.0)), [""; 0]);
}

/// Processes one after another, each with its time to the first answer.
fn starts(firsts: &[f64]) -> Recording {
    let mut script = Script::stdio();
    for (pid, first) in (40..).zip(firsts) {
        let at = f64::from(pid) * 100_000.0;
        script.call("connect", at, at + first + 1.0);
        script.spawn(at + 1.0, pid, "server");
        script.line(at + 2.0, LineFrom::Client, Some(request(0.0, 0, "initialize", Reply::Silence)));
        script.line(at + first, LineFrom::Server, Some(request(0.0, 0, "initialize", Reply::Silence)));
    }
    script.recording()
}

#[test]
fn one_slow_start_among_several_is_no_cause() {
    assert_eq!(codes(&starts(&[4_000.0, 400.0, 410.0, 390.0, 400.0])), [""; 0]);
    assert_eq!(codes(&starts(&[4_000.0, 4_100.0, 400.0])), ["slow-start"]);
}

#[test]
fn what_starts_take_is_told_whatever_it_is() {
    let told = explain_recording(&starts(&[301.0, 201.0]), None).starts;
    assert!(told[0] >= ms(300.0) && told[0] < ms(301.0) && told[1] >= ms(200.0) && told[1] < ms(201.0), "{told:?}");
}

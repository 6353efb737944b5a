//! Processor time, memory and sizes.

use mcpace_explain::{Cause, Code, Disproof, Severity};
use mcpace_record::{Peer, Recording};

use crate::script::{Post, Reply, Script, call_tool, ms, request};
use crate::{codes, found};

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![session_leak(), sessions_for_each_call(), task_leak(), rebuilt(), large_listing()]
}

/// Texts for ids, as a script wants them.
fn name(number: u64) -> &'static str {
    Box::leak(format!("s{number}").into_boxed_str())
}

/// Sessions with `calls` calls each, ten calls a second, and a sample of the server's memory each second.
struct Sessions {
    number: u64,
    calls: u64,
    ended: bool,
    ids: bool,
}

fn sessions(given: &Sessions, mebibytes: impl Fn(u64) -> u64) -> Recording {
    let mut script = Script::client();
    script.connect(1, 0.0, 0.5, None);
    for number in 0..given.number {
        let at = 1_000.0 + number as f64 * 100.0;
        if number % 10 == 0 {
            script.sample(at - 1.0, Peer::Server, 7, 0.0, mebibytes(number));
        }
        let session = given.ids.then(|| name(number));
        script.begin(1, at, session, at + 1.0);
        for call in 0..given.calls {
            let at = at + 5.0 + call as f64 * 3.0;
            script.post(Post { session, ..call_tool(at, call + 1, Reply::Json(at + 1.0, at + 1.5)) });
        }
        if given.ended {
            script.delete(1, at + 90.0, session.unwrap_or(""), at + 91.0);
        }
    }
    let end = 1_000.0 + given.number as f64 * 100.0;
    script.sample(end, Peer::Server, 7, 0.0, mebibytes(given.number));
    script.recording()
}

const LEFT: Sessions = Sessions { number: 200, calls: 6, ended: false, ids: true };

pub(crate) fn session_leak() -> Recording {
    sessions(&LEFT, |number| 60 + number / 2)
}

pub(crate) fn sessions_for_each_call() -> Recording {
    sessions(&Sessions { calls: 1, ..LEFT }, |number| 60 + number / 2)
}

pub(crate) fn task_leak() -> Recording {
    sessions(&Sessions { ids: false, ..LEFT }, |number| 60 + number / 2)
}

#[test]
fn memory_that_rises_with_sessions_is_named_with_what_each_takes() {
    let found = found(&session_leak());
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::SessionLeak(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.begun, context.ended), (200, 0));
    assert_eq!(context.bytes_each, 512 * 1024);
    assert_eq!(finding.total.bytes, 100 * 1024 * 1024);
    assert!(finding.alternatives.is_empty());
}

#[test]
fn with_a_session_for_each_call_two_causes_look_alike() {
    let found = found(&sessions_for_each_call());
    let leak = found.iter().find(|finding| finding.cause.kind() == Code::SessionLeak).unwrap();
    assert_eq!(leak.alternatives.iter().map(|other| other.code).collect::<Vec<_>>(), [Code::TaskLeak]);
}

#[test]
fn sessions_that_nobody_ends_are_no_leak_where_memory_stays() {
    assert_eq!(codes(&sessions(&LEFT, |_| 60)), [""; 0]);
    assert_eq!(codes(&sessions(&LEFT, |number| 60 + number.min(40) * 3)), [""; 0]);
}

#[test]
fn memory_that_rises_with_ended_sessions_may_rise_with_requests_as_well() {
    let ended = Sessions { ended: true, ..LEFT };
    let found = found(&sessions(&ended, |number| 60 + number / 2));
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::SessionLeak(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.begun, context.ended), (200, 200));
    // That each session is ended would prove nothing.
    assert_eq!(finding.disproof, Disproof::WaitAndLookAgain);
    assert_eq!(finding.alternatives.iter().map(|other| other.code).collect::<Vec<_>>(), [Code::TaskLeak]);
    assert_eq!(codes(&sessions(&ended, |_| 60)), [""; 0]);
}

#[test]
fn memory_that_rises_with_requests_of_a_stateless_server_is_named() {
    let found = found(&task_leak());
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::TaskLeak(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!(context.requests, 1_400);
    assert!(context.bytes_each > 70_000);
}

#[test]
fn a_stateless_server_whose_memory_stays_is_healthy() {
    assert_eq!(codes(&sessions(&Sessions { ids: false, ..LEFT }, |_| 60)), [""; 0]);
}

/// One program with different numbers of tools, one process after another. `given` has pairs of the number of tools and
/// the processor time of a request in ms.
fn catalogues(of: Peer, given: &[(u32, f64)]) -> Recording {
    let mut script = Script::client();
    script.connect(1, 0.0, 0.5, None);
    for (process, (tools, each)) in given.iter().enumerate() {
        let at = 10.0 + process as f64 * 10_000.0;
        script.sample(at, of, process as u32 + 1, 100.0, 50);
        let list = request(at + 1.0, 1, "tools/list", Reply::Json(at + 2.0, at + 3.0));
        script.post(Post { tools: Some(*tools), result: Some(u64::from(*tools)), ..list });
        for call in 0..39_u64 {
            let at = at + 10.0 + call as f64 * 20.0;
            script.post(call_tool(at, call + 2, Reply::Json(at + 5.0, at + 5.5)));
        }
        script.sample(at + 900.0, of, process as u32 + 1, 100.0 + each * 40.0, 50);
    }
    script.recording()
}

pub(crate) fn rebuilt() -> Recording {
    catalogues(Peer::Server, &[(5, 0.2), (50, 1.1), (200, 4.0)])
}

#[test]
fn processor_time_that_rises_with_the_tools_is_named() {
    let found = found(&rebuilt());
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::RebuiltPerRequest(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.of, context.few_tools, context.many_tools), (Peer::Server, 5, 200));
    assert_eq!((context.each_with_few, context.each_with_many), (ms(0.2), ms(4.0)));
    assert_eq!(finding.total.time, ms(3.8 * 40.0));
}

#[test]
fn the_clients_processor_is_told_as_the_clients() {
    let found = found(&catalogues(Peer::Client, &[(5, 0.2), (200, 4.0)]));
    let Some(Cause::RebuiltPerRequest(context)) = found.first().map(|f| &f.cause) else { panic!("{found:?}") };
    assert_eq!(context.of, Peer::Client);
}

#[test]
fn processor_time_that_does_not_follow_the_tools_is_another_matter() {
    assert_eq!(codes(&catalogues(Peer::Server, &[(5, 0.2), (200, 0.25)])), [""; 0]);
    assert_eq!(codes(&catalogues(Peer::Server, &[(5, 0.2), (6, 4.0)])), [""; 0]);
    assert_eq!(codes(&catalogues(Peer::Server, &[(5, 0.2), (50, 6.0), (200, 4.0)])), [""; 0]);
}

/// A listing of so many tools and bytes on so many pages.
fn listing(pages: u64, tools: u32, bytes: u64) -> Recording {
    let mut script = Script::recorder();
    script.call("list", 0.0, pages as f64 * 20.0);
    for page in 0..pages {
        let at = 1.0 + page as f64 * 20.0;
        let list = request(at, page, "tools/list", Reply::Json(at + 5.0, at + 9.0));
        script.post(Post { content: Some(page), tools: Some(tools), bytes: Some(bytes), ..list });
    }
    script.recording()
}

/// 142 tools (mcp2cli #1).
pub(crate) fn large_listing() -> Recording {
    listing(2, 71, 186_000)
}

#[test]
fn a_large_listing_is_named_with_its_tokens() {
    let found = found(&large_listing());
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::LargeListing(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.tools, context.pages, context.tokens), (Some(142), 2, 93_000));
    assert_eq!((finding.severity, finding.total.bytes), (Severity::Medium, 372_000));
    assert_eq!(finding.total.time, ms(0.0));
}

#[test]
fn a_usual_listing_is_healthy() {
    assert_eq!(codes(&listing(1, 40, 60_000)), [""; 0]);
}

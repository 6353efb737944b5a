//! Tools that wait for a timer, and timers that no tool waits for.

use mcpace_explain::{Cause, DependencyKind, TimerWait};
use mcpace_record::{Nanos, Recording};

use crate::inside::{HTTP, Inside, LOOP, OWN, Work, only_tool, request, running};
use crate::script::ms;
use crate::{codes, found};

type Stack = &'static [(&'static str, &'static str)];

const SLEEP: (&str, &str) = ("asyncio.sleep", "/srv/python/mcpace/lab/inside/start/sitecustomize.py");
const SLEEP_IN_THREAD: (&str, &str) = ("sleep", "/srv/python/mcpace/lab/inside/start/sitecustomize.py");
const RETRY: (&str, &str) = ("AsyncRetrying.__call__", "/v/site-packages/tenacity/asyncio/__init__.py");
const ANYIO: (&str, &str) = ("sleep", "/v/site-packages/anyio/_core/_eventloop.py");
const SESSION: (&str, &str) = ("ServerSession.run", "/v/site-packages/mcp/server/session.py");

const SLEEPS: Stack = &[SLEEP, OWN, LOOP];
const TRIES_AGAIN: Stack = &[SLEEP, ANYIO, RETRY, OWN, LOOP];
const SENDS_PINGS: Stack = &[SLEEP, ANYIO, SESSION, LOOP];
const IN_LOOP: Stack = &[SLEEP_IN_THREAD, OWN, LOOP];
const IN_THREAD: Stack = &[SLEEP_IN_THREAD, OWN];

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![waiting(&[(10.0, 90.0, SLEEPS)])]
}

fn waiting(timers: &[(f64, f64, Stack)]) -> Recording {
    Inside { timers, ..Inside::default() }.recording()
}

fn only_wait(recording: &Recording) -> TimerWait {
    let found = found(recording);
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::TimerWait(context) = &finding.cause else { panic!("{finding:?}") };
    context.clone()
}

/// Time of the calls in which the tool waited for a timer, and in which no source tells.
fn timer_and_rest(recording: &Recording) -> (Nanos, Nanos) {
    let tool = only_tool(recording);
    let timer = tool.dependencies.iter().find(|row| row.kind == DependencyKind::Timer);
    (timer.map_or(Nanos::ZERO, |row| row.time), tool.rest)
}

#[test]
fn a_tool_that_waits_for_a_timer_is_named_with_the_line_that_set_it() {
    let recording = waiting(&[(10.0, 30.0, SLEEPS), (40.0, 60.0, SLEEPS), (50.0, 65.0, SLEEPS)]);
    let context = only_wait(&recording);
    assert_eq!((context.timers, context.library), (3, None));
    assert_eq!((context.line.file.as_str(), context.line.line), ("/srv/weather.py", 14));
    assert_eq!((context.times.cause, context.times.gain), (ms(45.0), ms(45.0)));
    let tool = only_tool(&recording);
    assert_eq!(timer_and_rest(&recording), (ms(180.0), Nanos(tool.server.0 - ms(180.0).0)));
    let [line] = tool.lines.as_slice() else { panic!("{tool:?}") };
    assert_eq!((line.callee.as_deref(), line.waiting), (Some("asyncio.sleep"), ms(180.0)));
}

#[test]
fn the_library_that_waits_between_tries_is_named_and_frameworks_are_not() {
    let context = only_wait(&waiting(&[(10.0, 90.0, TRIES_AGAIN)]));
    assert_eq!((context.library.as_deref(), context.line.function.as_str()), (Some("tenacity"), "forecast"));
}

#[test]
fn code_that_runs_and_a_dependency_come_before_a_timer() {
    let timers = [(0.5, 99.5, SLEEPS)];
    let works = [running(0.0, 50.0, &[OWN, LOOP])];
    let requests = [request(50.0, 95.0, HTTP)];
    let recording = Inside { requests: &requests, works: &works, timers: &timers, ..Inside::default() }.recording();
    assert!(!codes(&recording).contains(&"timer-wait"), "{:?}", codes(&recording));
    // The last request ends before the timer, and a sample stands for some time around it.
    assert!((ms(5.0 * 4.5)..ms(5.0 * 8.0)).contains(&timer_and_rest(&recording).0), "{:?}", timer_and_rest(&recording));
}

#[test]
fn a_sleep_on_the_thread_of_the_event_loop_blocks_it_and_one_in_another_thread_waits() {
    let slept = |stack| {
        let works = [Work { from: 10.0, to: 90.0, running: false, stack }];
        Inside { works: &works, timers: &[(10.0, 90.0, stack)], ..Inside::default() }.recording()
    };
    assert_eq!(codes(&slept(IN_LOOP)), ["blocking-call-in-event-loop"]);
    // Few samples are taken where the machine is busy.
    assert_eq!(codes(&waiting(&[(10.0, 90.0, IN_LOOP)])), ["blocking-call-in-event-loop"]);
    assert_eq!(codes(&slept(IN_THREAD)), ["timer-wait"]);
}

#[test]
fn timers_in_the_background_are_no_waits_of_a_call() {
    // The loop was asleep when the call began; it woke and slept again within the call.
    assert_eq!(codes(&waiting(&[(-20.0, 5.0, SLEEPS), (6.0, 60.0, SLEEPS), (61.0, 120.0, SLEEPS)])), [""; 0]);
    assert_eq!(codes(&waiting(&[(10.0, 90.0, SENDS_PINGS)])), [""; 0]);
    // Time between the calls is nobody's.
    let between = waiting(&[(101.0, 150.0, SLEEPS)]);
    assert_eq!(timer_and_rest(&between), (Nanos::ZERO, only_tool(&between).server));
    // A timer of the call counts also while a loop in the background waits.
    assert_eq!(codes(&waiting(&[(10.0, 90.0, SLEEPS), (-20.0, 120.0, TRIES_AGAIN)])), ["timer-wait"]);
}

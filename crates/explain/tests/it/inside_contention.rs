//! Servers whose threads wait for each other: for a pool, for a lock, for the interpreter.

use mcpace_explain::{Cause, LockWait, PoolWait};
use mcpace_record::{EventKind, LineFrom, Nanos, Recording, StackFrame, StackId, ThreadLock};

use crate::script::{Reply, Script, call_tool, ms};
use crate::{codes, found};

/// Milliseconds between two samples.
const PERIOD: f64 = 5.0;

type Stack = &'static [(&'static str, &'static str, u32)];

const POOL: Stack = &[
    ("Condition.wait", "/usr/lib/python3.11/threading.py", 300),
    ("Queue.get", "/v/lib/python3.11/site-packages/sqlalchemy/util/queue.py", 180),
    ("QueuePool._do_get", "/v/lib/python3.11/site-packages/sqlalchemy/pool/impl.py", 150),
    ("Engine.connect", "/v/lib/python3.11/site-packages/sqlalchemy/engine/base.py", 90),
    ("lookup", "/srv/orders.py", 7),
];
/// A queue of the author's own.
const QUEUE: Stack = &[
    ("Condition.wait", "/usr/lib/python3.11/threading.py", 300),
    ("Queue.get", "/usr/lib/python3.11/queue.py", 171),
    ("lookup", "/srv/orders.py", 7),
];
const QUERY: Stack =
    &[("execute", "/v/lib/python3.11/site-packages/psycopg/cursor.py", 90), ("lookup", "/srv/orders.py", 9)];
const COMPUTES: Stack = &[("lookup", "/srv/orders.py", 12)];
const ENTERS: Stack = &[("lookup", "/srv/orders.py", 11)];
/// A library that waits in the kernel for its own threads.
const PARKED: Stack =
    &[("request", "/v/lib/python3.11/site-packages/quick/__init__.py", 3), ("lookup", "/srv/orders.py", 7)];

/// A thread in each of the calls: its stack, and its state.
type Thread = (Stack, bool, Option<ThreadLock>);

/// Three rounds of `together` calls of 100 ms each at one time, with these threads all the time.
fn recording(together: u64, threads: &[Thread]) -> Recording {
    let mut script = Script::stdio();
    script.spawn(0.0, 42, "python");
    for (number, (stack, ..)) in threads.iter().enumerate() {
        let frame = |(function, file, line): &(&str, &str, u32)| StackFrame {
            function: (*function).to_owned(),
            file: (*file).to_owned(),
            line: *line,
        };
        let frames = stack.iter().map(frame).collect();
        script.event(1.0, EventKind::StackSeen { stack: StackId(number as u64), frames });
    }
    for round in 0..3 {
        let at = 1_000.0 + 200.0 * round as f64;
        for id in 0..together {
            script.line(at, LineFrom::Client, Some(call_tool(0.0, round * together + id, Reply::Silence)));
        }
        let mut moment = PERIOD / 2.0;
        while moment < 100.0 {
            for (number, (_, running, lock)) in threads.iter().enumerate() {
                let (thread, stack) = (number as u64, StackId(number as u64));
                let (running, lock) = (*running, *lock);
                script.event(at + moment, EventKind::StackSample { pid: 42, thread, stack, running, lock });
            }
            moment += PERIOD;
        }
        for id in 0..together {
            script.line(at + 100.0, LineFrom::Server, Some(call_tool(0.0, round * together + id, Reply::Silence)));
        }
    }
    script.recording()
}

const HOLDS_INTERPRETER: Thread = (COMPUTES, true, Some(ThreadLock::HoldsInterpreter));
const WAITS_FOR_INTERPRETER: Thread = (COMPUTES, false, Some(ThreadLock::WaitsLimited));
const WAITS_FOR_POOL: Thread = (POOL, false, Some(ThreadLock::Waits));
const WAITS_FOR_LOCK: Thread = (ENTERS, false, Some(ThreadLock::Waits));

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![
        recording(3, &[WAITS_FOR_POOL, WAITS_FOR_POOL, (QUERY, false, None)]),
        recording(2, &[HOLDS_INTERPRETER, WAITS_FOR_INTERPRETER]),
    ]
}

/// Lines and samples take some microseconds of a call.
fn is_near(time: Nanos, millis: f64) -> bool {
    (ms(millis - 0.5)..=ms(millis + 0.5)).contains(&time)
}

fn pool_found(recording: &Recording) -> PoolWait {
    let found = found(recording);
    let context = found.iter().find_map(|finding| match &finding.cause {
        Cause::PoolWait(context) => Some(context.clone()),
        _ => None,
    });
    context.unwrap_or_else(|| panic!("{found:?}"))
}

fn lock_found(recording: &Recording) -> LockWait {
    let found = found(recording);
    let context = found.iter().find_map(|finding| match &finding.cause {
        Cause::LockWait(context) => Some(context.clone()),
        _ => None,
    });
    context.unwrap_or_else(|| panic!("{found:?}"))
}

#[test]
fn threads_that_wait_for_a_pool_are_named_with_what_each_call_waits() {
    let context = pool_found(&cases()[0]);
    assert_eq!(
        (context.pool.as_str(), context.line.file.as_str(), context.line.line),
        ("sqlalchemy", "/srv/orders.py", 7)
    );
    // Two of three calls wait all the time.
    assert!(is_near(context.times.cause, 200.0 / 3.0) && is_near(context.times.gain, 200.0 / 3.0), "{context:?}");
    // One call whose threads wait for each other waits as long as any of them.
    let alone = pool_found(&recording(1, &[WAITS_FOR_POOL, WAITS_FOR_POOL, (QUERY, false, None)]));
    assert!(is_near(alone.times.cause, 100.0), "{alone:?}");
}

#[test]
fn threads_that_wait_for_a_lock_are_named_with_the_line_that_holds_it() {
    let context = lock_found(&cases()[1]);
    assert_eq!((context.interpreter, context.threads, context.holder_line), (true, 2, Some(12)));
    // Each of the two calls waits half of the time: the other half would be saved by taking no turns.
    assert!(is_near(context.times.cause, 50.0) && is_near(context.times.gain, 50.0), "{context:?}");
    let context = lock_found(&recording(2, &[WAITS_FOR_LOCK, (QUERY, false, None)]));
    assert_eq!((context.interpreter, context.line.line, context.holder_line), (false, 11, Some(9)));
    // One call with four threads: in processes, each quarter would take its own time.
    let waits = WAITS_FOR_INTERPRETER;
    let alone = lock_found(&recording(1, &[HOLDS_INTERPRETER, waits, waits, waits]));
    assert!(alone.threads == 4 && is_near(alone.times.cause, 100.0) && is_near(alone.times.gain, 75.0), "{alone:?}");
}

#[test]
fn waits_for_no_pool_and_waits_for_no_lock_are_no_cause() {
    let parked = (PARKED, false, Some(ThreadLock::Waits));
    let queue = (QUEUE, false, Some(ThreadLock::Waits));
    let near_misses = [
        // A worker of the author's own waits for work; a library's threads wait for an answer.
        recording(2, &[queue, (QUERY, false, None)]),
        recording(2, &[parked, parked]),
        // Nobody holds the interpreter.
        recording(2, &[WAITS_FOR_INTERPRETER, (QUERY, false, None)]),
        // Connections are free.
        recording(2, &[(QUERY, false, None), (QUERY, false, None)]),
        recording(2, &[HOLDS_INTERPRETER, (QUERY, false, None)]),
    ];
    for (number, recording) in near_misses.iter().enumerate() {
        let codes = codes(recording);
        assert!(!codes.contains(&"pool-wait") && !codes.contains(&"lock-wait"), "{number}: {codes:?}");
    }
}

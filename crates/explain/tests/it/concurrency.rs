//! Requests that hold each other up at the server, told apart by what else gets through.

use mcpace_explain::{Cause, Code, Disproof, Level};
use mcpace_record::{LineFrom, Recording};

use crate::script::{Post, Reply, Script, call_tool, request};
use crate::{codes, found};

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![
        blocked(),
        blocked_or_serial(),
        blocked_stdio(),
        serial(),
        serial_by_heads(),
        waves(),
        waves_or_pool(),
        pool(),
        pool_by_heads(),
        head_of_line(),
        buffered_stdout(),
    ]
}

const SESSIONS: [&str; 3] = ["s0", "s1", "s2"];

/// A tool's call that the server has at `asked` and answers at `answered`, as JSON.
fn call(id: u64, session: Option<&'static str>, asked: f64, answered: f64) -> Post {
    let reply = Reply::Json(answered, answered + 0.1);
    Post { conn: id, session, content: Some(1), ..call_tool(asked, id, reply) }
}

/// Tool call that is answered by an event stream whose head comes at `head`.
fn streamed(id: u64, session: Option<&'static str>, asked: f64, head: f64, answered: f64) -> Post {
    let reply = Reply::Sse(head, answered, Some(answered + 0.1));
    Post { reply, ..call(id, session, asked, answered) }
}

fn ping(id: u64, session: Option<&'static str>, asked: f64, answered: f64) -> Post {
    let reply = Reply::Json(answered, answered + 0.1);
    Post { conn: id, session, ..request(asked, id, "ping", reply) }
}

fn recorded(posts: impl IntoIterator<Item = Post>) -> Recording {
    let mut script = Script::recorder();
    posts.into_iter().for_each(|post| {
        script.post(post);
    });
    script.recording()
}

/// The code, its sureness, and what would look the same.
type Named = (&'static str, Level, Option<(Code, Disproof)>);

fn named(recording: &Recording) -> Vec<Named> {
    let found = found(recording);
    let named = found.iter().map(|f| {
        let other = f.alternatives.first().map(|other| (other.code, other.decided_by));
        (f.cause.code(), f.confidence.level, other)
    });
    named.collect()
}

/// A tool of one session runs for 500 ms; another session's pings are answered when it ends.
pub(crate) fn blocked() -> Recording {
    let mut posts = vec![call(1, Some("s0"), 0.0, 500.0)];
    posts.extend((2..5).map(|id| ping(id, Some("s1"), id as f64 * 50.0, 500.0 + id as f64)));
    recorded(posts)
}

#[test]
fn a_server_that_answers_no_session_while_a_tool_runs_is_blocked() {
    insta::assert_json_snapshot!(found(&blocked()));
}

/// Blocked requests within one session, which may as well have its requests take turns.
pub(crate) fn blocked_or_serial() -> Recording {
    let mut posts = vec![call(1, Some("s0"), 0.0, 500.0)];
    posts.extend((2..5).map(|id| ping(id, Some("s0"), id as f64 * 50.0, 500.0 + id as f64)));
    recorded(posts)
}

#[test]
fn within_one_session_its_turns_would_look_the_same() {
    let other = Some((Code::SerialSession, Disproof::CallFromSecondSession));
    assert_eq!(named(&blocked_or_serial()), [("blocked-event-loop", Level::Medium, other)]);
}

#[test]
fn heads_sent_between_two_tools_of_a_blocked_loop_are_no_other_work() {
    // The official Python SDK, version 1.30: two blocking tools and a ping, in rounds. The loop is free for a moment
    // after the first tool, and sends the heads of all that waits.
    let round = |n: u64| {
        let (at, id) = (n as f64 * 620.0, n * 3);
        [
            streamed(id + 1, Some("s0"), at, at + 2.0, at + 608.0),
            streamed(id + 2, Some("s0"), at + 0.5, at + 304.8, at + 608.5),
            Post {
                conn: id + 3,
                session: Some("s0"),
                ..request(at + 0.8, id + 3, "ping", Reply::Sse(at + 305.5, at + 609.0, Some(at + 609.1)))
            },
        ]
    };
    let other = Some((Code::SerialSession, Disproof::CallFromSecondSession));
    assert_eq!(named(&recorded((0..3).flat_map(round))), [("blocked-event-loop", Level::Medium, other)]);
}

/// FastMCP 2.14 with a blocking tool of 207 ms, three calls at once and no ping. The heads of the second and third call come
/// when the first tool ends; in the second round, the first result is written after the heads.
fn blocked_by_heads() -> Recording {
    recorded([
        streamed(1, Some("s0"), 0.0, 1.1, 206.6),
        streamed(2, Some("s0"), 1.9, 211.1, 625.5),
        streamed(3, Some("s0"), 2.2, 211.3, 632.7),
        streamed(4, Some("s0"), 1000.0, 1001.0, 1414.2),
        streamed(5, Some("s0"), 1000.8, 1207.8, 1620.1),
        streamed(6, Some("s0"), 1001.3, 1211.0, 1621.0),
    ])
}

#[test]
fn heads_that_come_when_a_tool_ends_show_a_blocked_loop_without_a_ping() {
    let other = Some((Code::SerialSession, Disproof::CallFromSecondSession));
    assert_eq!(named(&blocked_by_heads()), [("blocked-event-loop", Level::Medium, other)]);
}

#[test]
fn heads_that_come_at_once_beside_a_running_tool_acquit_the_loop() {
    let beside = [(7, 2000.0, 2001.0, 2300.0), (8, 2050.0, 2051.0, 2350.0), (9, 2100.0, 2101.0, 2400.0)];
    let mut posts = vec![
        streamed(1, Some("s0"), 0.0, 1.1, 206.6),
        streamed(2, Some("s0"), 1.9, 211.1, 625.5),
        streamed(3, Some("s0"), 2.2, 211.3, 632.7),
    ];
    posts.extend(beside.map(|(id, asked, head, answered)| streamed(id, Some("s0"), asked, head, answered)));
    assert_eq!(codes(&recorded(posts)), [""; 0]);
}

#[test]
fn a_ping_that_always_takes_a_second_was_not_held_by_a_tool() {
    // punkpeye/fastmcp #142: the server waits a second before it handles any request, without blocking.
    let mut posts = vec![ping(100, None, 0.0, 1010.0), ping(101, None, 12_000.0, 13_010.0)];
    for number in 1..6 {
        let at = number as f64 * 2000.0;
        posts.push(call(number * 2, None, at, at + 1012.0));
        posts.push(ping(number * 2 + 1, None, at + 2.0, at + 1013.0));
    }
    assert!(!codes(&recorded(posts)).contains(&"blocked-event-loop"));
}

#[test]
fn a_few_late_heads_among_calls_that_end_all_the_time_show_no_pool() {
    // python-sdk #1221: a sound server, twenty calls at once; of 1,000 heads, six came late, just after an end.
    let posts = (0..300).map(|number| {
        let at = number as f64 * 5.0;
        let head = if number % 60 == 30 { at + 55.5 } else { at + 1.0 };
        streamed(number + 1, Some("s0"), at, head, at + 100.0)
    });
    assert_eq!(codes(&recorded(posts)), [""; 0]);
}

#[test]
fn a_ping_that_is_answered_just_before_the_tool_that_blocked_was_held_as_well() {
    // mobile-mcp #438: the tool's answer is written last, 2.5 ms after the ping's.
    let mut script = Script::stdio();
    script.spawn(0.0, 1, "server");
    for round in 0..3 {
        let (at, id) = (10.0 + round as f64 * 2500.0, round * 3);
        let tool = |id| Some(Post { content: Some(1), ..call_tool(0.0, id, Reply::Silence) });
        let ping = |id| Some(request(0.0, id, "ping", Reply::Silence));
        script.line(at, LineFrom::Client, tool(id + 1));
        script.line(at + 0.1, LineFrom::Client, tool(id + 2));
        script.line(at + 0.2, LineFrom::Client, ping(id + 3));
        script.line(at + 1215.0, LineFrom::Server, tool(id + 1));
        script.line(at + 2423.5, LineFrom::Server, ping(id + 3));
        script.line(at + 2426.0, LineFrom::Server, tool(id + 2));
    }
    assert!(codes(&script.recording()).contains(&"blocked-event-loop"));
}

/// Over stdio there is one session only.
pub(crate) fn blocked_stdio() -> Recording {
    let mut script = Script::stdio();
    let tool = |id| Some(Post { content: Some(1), ..call_tool(0.0, id, Reply::Silence) });
    script.spawn(0.0, 1, "server");
    for id in 1..5 {
        script.line(10.0 + id as f64, LineFrom::Client, tool(id));
        script.line(10.0 + id as f64 * 100.0, LineFrom::Server, tool(id));
    }
    script.recording()
}

#[test]
fn over_stdio_a_tool_that_only_waits_decides() {
    let other = Some((Code::SerialSession, Disproof::CallToolThatOnlyWaits));
    assert_eq!(named(&blocked_stdio()), [("blocked-event-loop", Level::Low, other)]);
}

#[test]
fn a_ping_that_gets_through_acquits_the_loop() {
    let mut posts = vec![call(1, Some("s0"), 0.0, 500.0)];
    posts.extend((2..5).map(|id| ping(id, Some("s1"), id as f64 * 50.0, id as f64 * 50.0 + 1.0)));
    assert_eq!(codes(&recorded(posts)), [""; 0]);
}

#[test]
fn where_others_get_through_those_that_end_with_a_tool_are_chance() {
    let mut posts = vec![call(1, Some("s0"), 0.0, 500.0)];
    posts.extend((2..4).map(|id| ping(id, Some("s1"), id as f64 * 50.0, 500.0 + id as f64)));
    posts.extend((4..7).map(|id| ping(id, Some("s1"), id as f64 * 50.0, id as f64 * 50.0 + 1.0)));
    assert_eq!(codes(&recorded(posts)), [""; 0]);
}

#[test]
fn one_request_that_ends_with_a_tool_is_chance() {
    let posts = [call(1, Some("s0"), 0.0, 500.0), ping(2, Some("s1"), 100.0, 501.0)];
    assert_eq!(codes(&recorded(posts)), [""; 0]);
}

/// Three sessions with three calls each, whose own take turns.
pub(crate) fn serial() -> Recording {
    let calls = (0..9_u64).map(|at| {
        let (session, turn) = (at as usize % 3, at / 3);
        call(at + 1, Some(SESSIONS[session]), at as f64 * 0.1, 100.0 + turn as f64 * 100.0)
    });
    recorded(calls)
}

#[test]
fn sessions_whose_own_calls_take_turns_beside_each_other_are_serial() {
    let found = found(&serial());
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].cause.code(), found[0].confidence.level), ("serial-session", Level::High));
    let Cause::SerialSession(context) = &found[0].cause else { panic!() };
    assert_eq!(context.held, 6);
}

/// One session: heads of later calls come while the first one runs, their results one after another.
pub(crate) fn serial_by_heads() -> Recording {
    let calls = (0..4_u64).map(|at| {
        let asked = at as f64 * 21.0;
        streamed(at + 1, Some("s0"), asked, asked + 1.0, 100.0 + at as f64 * 100.0)
    });
    recorded(calls)
}

#[test]
fn heads_that_come_meanwhile_acquit_the_loop() {
    let other = Some((Code::CompletionWaves, Disproof::CallFromSecondSession));
    assert_eq!(named(&serial_by_heads()), [("serial-session", Level::Low, other)]);
}

/// Twelve equal calls without sessions, four at a time; pings are answered as `pings` says.
fn four_at_a_time(pings: impl Fn(f64) -> Option<f64>) -> Recording {
    let mut posts: Vec<Post> = (0..12_u64)
        .map(|at| {
            let wave = (at / 4 + 1) as f64;
            call(at + 1, None, at as f64 * 0.2, wave * 100.0 + (at % 4) as f64)
        })
        .collect();
    for (id, asked) in [(20, 40.0), (21, 45.0)] {
        posts.extend(pings(asked).map(|answered| ping(id, None, asked, answered)));
    }
    recorded(posts)
}

pub(crate) fn waves() -> Recording {
    four_at_a_time(|asked| Some(asked + 1.0))
}

pub(crate) fn waves_or_pool() -> Recording {
    four_at_a_time(|_| None)
}

pub(crate) fn pool() -> Recording {
    four_at_a_time(|_| Some(104.0))
}

#[test]
fn equal_calls_that_end_in_waves_name_the_cap() {
    insta::assert_json_snapshot!(found(&waves()));
}

#[test]
fn without_anything_else_asked_a_pool_for_all_requests_would_look_the_same() {
    let other = Some((Code::ThreadPoolSaturation, Disproof::PingMeanwhile));
    assert_eq!(named(&waves_or_pool()), [("completion-waves", Level::Low, other)]);
}

#[test]
fn where_pings_wait_too_it_is_the_pool_for_all_requests() {
    assert_eq!(named(&pool()), [("thread-pool-saturation", Level::High, None)]);
}

#[test]
fn equal_calls_that_end_together_are_healthy() {
    let posts = (0..12_u64).map(|at| call(at + 1, None, at as f64 * 0.2, 100.0 + at as f64));
    assert_eq!(codes(&recorded(posts)), [""; 0]);
}

#[test]
fn a_straggler_is_no_wave() {
    let posts = (0..6_u64).map(|at| call(at + 1, None, at as f64 * 0.2, if at == 5 { 200.0 } else { 100.0 }));
    assert_eq!(codes(&recorded(posts)), [""; 0]);
}

/// The first four calls of a load on a server that isn't warm yet.
#[test]
fn two_and_two_are_chance_and_four_and_four_are_not() {
    let waves_of = |size: u64| {
        let ends =
            (0..2 * size).map(move |at| call(at + 1, None, at as f64 * 0.2, if at < size { 24.0 } else { 48.0 }));
        codes(&recorded(ends))
    };
    assert_eq!(waves_of(2), [""; 0]);
    assert_eq!(waves_of(4), ["completion-waves"]);
}

#[test]
fn calls_that_take_longer_each_are_no_turns() {
    let posts = (0..4_u64)
        .map(|at| Post { content: Some(at), ..call(at + 1, Some("s0"), at as f64 * 0.2, 100.0 + at as f64 * 100.0) });
    assert_eq!(codes(&recorded(posts)), [""; 0]);
}

/// A pool of three: the head of a fourth reply comes only as one of the three ends, whatever each takes. Its stamp lies
/// behind that end by `later`, of each of the three that wait.
/// Four tasks of one host, each of which calls again as soon as it has its answer. The server works on so many calls at a time;
/// the first takes long.
fn busy_tasks(at_a_time: usize) -> Recording {
    let (mut tasks, mut free) = ([0.0_f64; 4], vec![0.0_f64; at_a_time]);
    let earliest = |times: &[f64]| (0..times.len()).min_by(|a, b| times[*a].total_cmp(&times[*b])).unwrap();
    let calls = (0..80_u32).map(|number| {
        let (task, place) = (earliest(&tasks), earliest(&free));
        let asked = tasks[task] + 1.0;
        let service = if number == 0 { 90.0 } else { 15.0 + f64::from(number * number * 13 % 79) };
        free[place] = asked.max(free[place]) + service;
        tasks[task] = free[place] + 1.0;
        call(u64::from(number), None, asked, free[place])
    });
    recorded(calls.collect::<Vec<_>>())
}

#[test]
fn ends_that_never_come_close_though_the_times_vary_show_one_call_at_a_time() {
    let named = named(&busy_tasks(1));
    assert_eq!(named.iter().map(|(code, ..)| *code).collect::<Vec<_>>(), ["blocked-event-loop"]);
}

#[test]
fn calls_of_varied_times_beside_each_other_end_close_to_each_other_now_and_then() {
    assert_eq!(named(&busy_tasks(4)), []);
}

fn pool_by_heads_that_come(later: [f64; 3]) -> Recording {
    recorded([
        streamed(1, None, 0.0, 1.0, 300.0),
        streamed(2, None, 0.2, 1.2, 410.0),
        streamed(3, None, 0.4, 1.4, 560.0),
        streamed(4, None, 0.6, 300.0 + later[0], 700.0),
        streamed(5, None, 0.8, 410.0 + later[1], 650.0),
        streamed(6, None, 1.0, 560.0 + later[2], 800.0),
        streamed(7, None, 1.2, 651.0, 900.0),
        streamed(8, None, 1.4, 701.0, 950.0),
    ])
}

pub(crate) fn pool_by_heads() -> Recording {
    pool_by_heads_that_come([2.0, 3.0, 1.0])
}

fn size_and_held(recording: &Recording) -> Option<(u64, u64)> {
    let found = found(recording);
    let [finding] = found.as_slice() else { return None };
    let Cause::ThreadPoolSaturation(context) = &finding.cause else { panic!("{finding:?}") };
    Some((context.at_a_time, context.held))
}

#[test]
fn heads_that_wait_for_an_end_each_time_name_the_pool() {
    assert_eq!(size_and_held(&pool_by_heads()), Some((3, 5)));
}

#[test]
fn heads_whose_stamps_cross_the_ends_that_let_them_go_name_the_pool_too() {
    assert_eq!(size_and_held(&pool_by_heads_that_come([-0.5, 0.4, -1.5])), Some((3, 5)));
}

#[test]
fn of_heads_that_wait_one_in_five_may_come_at_another_moment() {
    assert_eq!(size_and_held(&pool_by_heads_that_come([-2.3, 0.4, 1.0])), Some((3, 4)));
    assert_eq!(size_and_held(&pool_by_heads_that_come([-22.0, 25.0, 1.0])), None);
}

/// Calls that take 60 ms by themselves come with a slow one that was asked before.
pub(crate) fn behind_a_slow_reply(answered: f64) -> Recording {
    let quick = |id: u64, asked: f64, answered: f64| Post { name: Some("quick"), ..call(id, None, asked, answered) };
    let slow = Post { content: Some(2), ..call(3, None, 1_000.0, 1_500.0) };
    recorded([quick(1, 0.0, 60.0), slow, quick(4, 1_100.0, answered), quick(5, 1_150.0, answered + 1.0)])
}

pub(crate) fn head_of_line() -> Recording {
    behind_a_slow_reply(1_502.0)
}

#[test]
fn replies_that_were_ready_and_come_with_a_slow_one_are_held() {
    let found = found(&head_of_line());
    let Some(Cause::HeadOfLine(context)) = found.first().map(|f| &f.cause) else { panic!("{found:?}") };
    assert_eq!(context.held, 2);
}

#[test]
fn replies_that_come_when_they_are_ready_are_healthy() {
    assert_eq!(codes(&behind_a_slow_reply(1_162.0)), [""; 0]);
}

#[test]
fn calls_that_begin_only_when_a_slow_one_ends_are_not_held_replies() {
    assert_eq!(codes(&behind_a_slow_reply(1_562.0)), [""; 0]);
}

#[test]
fn equal_calls_that_a_busy_server_ends_together_are_not_held_replies() {
    let mut posts: Vec<Post> = (1..6).map(|id| call(id, None, id as f64, 500.0 + id as f64)).collect();
    // Under way for a while already when the server has less time for them: all come 100 ms late.
    posts.extend((6..16).map(|id| call(id, None, 990.0 + id as f64, 1_600.0 + id as f64 / 10.0)));
    assert_eq!(codes(&recorded(posts)), [""; 0]);
}

/// Replies over stdio, which come in bursts of `lines` at a time, to requests that were all asked before.
fn stdio_bursts(lines: u64) -> Recording {
    let mut script = Script::stdio();
    let ask = |id| Some(Post { name: None, ..call_tool(0.0, id, Reply::Silence) });
    script.spawn(0.0, 1, "server");
    for id in 1..121_u64 {
        script.line(id as f64, LineFrom::Client, ask(id));
        let burst = 200.0 + ((id - 1) / lines) as f64 * 100.0;
        script.sized_line(burst, LineFrom::Server, ask(id), 204);
    }
    script.recording()
}

/// 205 bytes a line: twenty of them pass 4 KiB.
pub(crate) fn buffered_stdout() -> Recording {
    stdio_bursts(20)
}

#[test]
fn a_runtime_that_writes_before_a_line_without_room_fills_its_buffer_too() {
    assert_eq!(codes(&stdio_bursts(19)), ["head-of-line"]);
}

#[test]
fn replies_in_bursts_of_a_buffers_size_wait_for_it_to_fill() {
    let found = found(&buffered_stdout());
    let Some(Cause::HeadOfLine(context)) = found.first().map(|f| &f.cause) else { panic!("{found:?}") };
    assert_eq!(serde_json::to_value(context.released_with).unwrap(), "full-buffer");
}

#[test]
fn bursts_of_another_size_fill_no_buffer() {
    assert_eq!(codes(&stdio_bursts(15)), [""; 0]);
}

/// Rounds of `calls` at the same time, each call of 100 ms, whose replies come in one read; `straggler` leaves another call
/// open meanwhile.
fn stdio_rounds(calls: u64, bytes: u64, straggler: bool) -> Recording {
    let mut script = Script::stdio();
    let ask = |id| Some(Post { name: None, ..call_tool(0.0, id, Reply::Silence) });
    script.spawn(0.0, 1, "server");
    if straggler {
        script.line(1.0, LineFrom::Client, ask(9_999));
    }
    for round in 0..12_u64 {
        let ids = || round * calls..(round + 1) * calls;
        for id in ids() {
            script.line(round as f64 * 200.0 + 2.0, LineFrom::Client, ask(id));
        }
        for id in ids() {
            script.sized_line(round as f64 * 200.0 + 102.0, LineFrom::Server, ask(id), bytes);
        }
    }
    script.recording()
}

#[test]
fn replies_that_come_together_because_they_were_asked_together_fill_no_buffer() {
    for bytes in [500, 511, 1_023, 2_500, 5_000, 20_000] {
        for calls in [2, 4, 8] {
            assert_eq!(codes(&stdio_rounds(calls, bytes, false)), [""; 0], "{calls} of {bytes} bytes");
        }
    }
}

#[test]
fn long_replies_tell_nothing_of_a_buffer_whatever_else_is_open() {
    for bytes in [2_500, 5_000, 20_000] {
        assert_eq!(codes(&stdio_rounds(4, bytes, true)), [""; 0], "{bytes} bytes");
    }
}

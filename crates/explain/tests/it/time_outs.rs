//! Clients that give up, by a timer or by a person's hand.

use mcpace_explain::{Cause, ClientTimeOut, CountedFrom, GiveUpLayer, GiveUpSign, Level, ProgressIgnored, Reason};
use mcpace_record::{CallId, CallOutcome, EventKind, LineFrom, MessageKind, MessageNote, Recording, ReplyEnding};

use crate::script::{Post, Reply, Script, call_tool, note, notification, request};
use crate::{codes, found};

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![closed(&[3_000.0; 3]), with_and_without_progress()]
}

/// One call each 20 s that the client closes at this age, before the head of the reply.
fn closed(ages: &[f64]) -> Recording {
    let mut script = Script::recorder();
    for (id, age) in (1..).zip(ages) {
        let at = id as f64 * 20_000.0;
        let left = at + age;
        let ex = script.post(Post { conn: id, session: Some("s"), ..call_tool(at, id, Reply::Silence) });
        script.reply_end(ex, left, ReplyEnding::ClientLeft, "", Vec::new());
    }
    script.recording()
}

fn about(method: &'static str, at: f64, id: u64) -> Post {
    Post { id: Some(id), ..notification(at, method, at + 1.0) }
}

/// A server process that answers soon after its start.
fn start(script: &mut Script) {
    script.spawn(0.0, 7, "server");
    let asked = || Some(request(1.0, 1_000, "initialize", Reply::Silence));
    script.line(1.0, LineFrom::Client, asked());
    script.line(2.0, LineFrom::Server, asked());
}

/// Calls over stdio, each with its age at which the client says that it gave up, and the time between two notifications of
/// progress; 0 for none. The server answers after 30 s.
fn on_pipe(calls: &[(f64, f64)]) -> Recording {
    let mut script = Script::stdio();
    start(&mut script);
    for (id, (age, apart)) in (1..).zip(calls) {
        let at = id as f64 * 40_000.0;
        script.line(at, LineFrom::Client, Some(call_tool(at, id, Reply::Silence)));
        let mut next = at + apart;
        while *apart > 0.0 && next < at + age {
            script.line(next, LineFrom::Server, Some(about("notifications/progress", next, id)));
            next += apart;
        }
        script.line(at + age, LineFrom::Client, Some(about("notifications/cancelled", at + age, id)));
        script.line(at + 30_000.0, LineFrom::Server, Some(call_tool(at, id, Reply::Silence)));
    }
    script.recording()
}

fn with_and_without_progress() -> Recording {
    on_pipe(&[(4_000.0, 0.0), (4_000.0, 500.0), (4_010.0, 0.0), (4_005.0, 700.0)])
}

fn time_out(recording: &Recording) -> (ClientTimeOut, Level) {
    let found = found(recording);
    let mut contexts = found.iter().filter_map(|finding| match &finding.cause {
        Cause::ClientTimeOut(context) => Some((context.clone(), finding.confidence.level)),
        _ => None,
    });
    contexts.next().unwrap_or_else(|| panic!("{found:?}"))
}

fn ignored(recording: &Recording) -> Option<(ProgressIgnored, Level, Reason)> {
    found(recording).into_iter().find_map(|finding| match finding.cause {
        Cause::ProgressIgnored(context) => Some((context, finding.confidence.level, finding.confidence.reason)),
        _ => None,
    })
}

#[test]
fn calls_that_end_at_one_age_before_their_head_are_timed_out() {
    let (context, level) = time_out(&closed(&[3_000.0, 3_004.0, 3_020.0, 3_001.0]));
    assert_eq!((context.calls, context.of_calls, context.tool.as_deref()), (4, 4, Some("greet")));
    assert_eq!((context.layer, context.sign), (GiveUpLayer::Head, GiveUpSign::Closed));
    assert_eq!((context.counted_from, context.answered_later, level), (CountedFrom::Beginning, 0, Level::High));
    assert!((3_000..3_010).contains(&(context.time_out.0 / 1_000_000)), "{context:?}");
}

#[test]
fn two_calls_are_enough_at_an_age_that_people_choose_and_less_sure() {
    assert_eq!(time_out(&closed(&[3_000.0, 3_010.0])).1, Level::Medium);
    assert_eq!(codes(&closed(&[3_412.0, 3_420.0])), [""; 0]);
    assert_eq!(codes(&closed(&[3_000.0])), [""; 0]);
}

#[test]
fn a_person_who_cancels_is_no_time_out() {
    assert_eq!(codes(&closed(&[7_000.0])), [""; 0]);
    assert_eq!(codes(&closed(&[2_130.0, 9_870.0, 3_300.0, 14_020.0, 5_610.0])), [""; 0]);
    assert_eq!(codes(&on_pipe(&[(6_000.0, 0.0)])), [""; 0]);
    assert_eq!(codes(&on_pipe(&[(6_100.0, 500.0), (2_950.0, 500.0), (11_400.0, 500.0)])), [""; 0]);
}

#[test]
fn calls_that_end_at_one_moment_are_a_client_that_exits() {
    let mut script = Script::recorder();
    for id in 1..=6 {
        let ex = script.post(Post { conn: id, session: Some("s"), ..call_tool(id as f64, id, Reply::Silence) });
        script.reply_end(ex, 4_000.0, ReplyEnding::ClientLeft, "", Vec::new());
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn a_client_that_waits_longer_for_the_same_tool_has_no_such_time_out() {
    let calls = |answered: u64| {
        let mut script = Script::recorder();
        for id in 1..=3 + answered {
            let at = id as f64 * 20_000.0;
            let late = id > 3;
            let reply = if late { Reply::Json(at + 9_000.0, at + 9_001.0) } else { Reply::Silence };
            let ex = script.post(Post { conn: id, session: Some("s"), ..call_tool(at, id, reply) });
            if !late {
                script.reply_end(ex, at + 3_000.0, ReplyEnding::ClientLeft, "", Vec::new());
            }
        }
        codes(&script.recording())
    };
    assert_eq!(calls(1), ["client-time-out"]);
    assert_eq!(calls(3), [""; 0]);
}

#[test]
fn a_server_that_breaks_off_was_not_given_up() {
    let mut script = Script::recorder();
    for id in 1..=4 {
        let at = id as f64 * 20_000.0;
        script.post(Post { conn: id, ..call_tool(at, id, Reply::Broken(at + 1.0, at + 3_000.0)) });
    }
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn a_server_process_that_dies_was_not_given_up() {
    let calls = |dies: bool| {
        let mut script = Script::stdio();
        for id in 1..=3_u64 {
            let at = id as f64 * 20_000.0;
            script.spawn(at, 7, "server");
            script.event(at + 100.0, EventKind::CallStart { call: CallId(id), operation: "call".into(), tool: None });
            script.line(at + 100.0, LineFrom::Client, Some(call_tool(at, id, Reply::Silence)));
            if dies {
                let exited = EventKind::ProcessExited { pid: 7, code: Some(1), signal: None };
                script.event(at + 3_099.0, exited);
            }
            let outcome = CallOutcome::Failed("no answer".into());
            script.event(at + 3_101.0, EventKind::CallEnd { call: CallId(id), outcome });
        }
        script.recording()
    };
    assert_eq!(time_out(&calls(false)).0.sign, GiveUpSign::CallFailed);
    assert_eq!(codes(&calls(true)), [""; 0]);
}

#[test]
fn a_pipe_tells_which_request_was_given_up_and_what_was_answered_later() {
    let (context, level) = time_out(&on_pipe(&[(4_000.0, 0.0); 3]));
    assert_eq!((context.sign, context.layer, level), (GiveUpSign::Cancelled, GiveUpLayer::Call, Level::High));
    assert_eq!((context.answered_later, context.calls), (3, 3));
    assert_eq!(context.longest_answer.map(|time| time.0 / 1_000_000_000), Some(30));
    assert_eq!(codes(&on_pipe(&[(4_000.0, 0.0); 3])), ["client-time-out"]);
}

#[test]
fn progress_that_does_not_extend_a_time_out_is_ignored() {
    let only_progress = on_pipe(&[(4_000.0, 500.0); 4]);
    let (context, level, reason) = ignored(&only_progress).unwrap();
    assert_eq!((context.calls, context.without_progress, context.notifications), (4, 0, 28));
    assert_eq!((level, reason), (Level::Medium, Reason::Repeated));
    assert!(context.silence.0 <= 501_000_000, "{context:?}");
    let both = with_and_without_progress();
    let (context, level, reason) = ignored(&both).unwrap();
    assert_eq!((context.calls, context.without_progress), (2, 2));
    assert_eq!((level, reason), (Level::High, Reason::SameWithoutProgress));
    assert_eq!(time_out(&both).0.calls, 4);
}

#[test]
fn progress_that_extends_a_time_out_is_heard() {
    // It counts from the last progress, which came at different times.
    let mut script = Script::stdio();
    start(&mut script);
    for (id, last) in (1..).zip([1_000.0, 3_000.0, 5_500.0, 9_000.0]) {
        let at = id as f64 * 40_000.0;
        script.line(at, LineFrom::Client, Some(call_tool(at, id, Reply::Silence)));
        let mut next = at + 500.0;
        while next <= at + last {
            script.line(next, LineFrom::Server, Some(about("notifications/progress", next, id)));
            next += 500.0;
        }
        let left = at + last + 4_000.0;
        script.line(left, LineFrom::Client, Some(about("notifications/cancelled", left, id)));
    }
    let recording = script.recording();
    assert_eq!(codes(&recording), ["client-time-out"]);
    assert_eq!(time_out(&recording).0.counted_from, CountedFrom::LastEvent);
    // Progress extends it up to a longest time.
    let longest = on_pipe(&[
        (4_000.0, 0.0),
        (4_000.0, 0.0),
        (4_002.0, 0.0),
        (9_000.0, 500.0),
        (9_000.0, 500.0),
        (9_001.0, 500.0),
    ]);
    assert_eq!(codes(&longest), ["client-time-out", "client-time-out"]);
}

#[test]
fn the_progress_of_another_request_is_none() {
    let mut script = Script::stdio();
    start(&mut script);
    for id in 1..=4 {
        let at = id as f64 * 40_000.0;
        script.line(at, LineFrom::Client, Some(call_tool(at, id, Reply::Silence)));
        for step in 1..7 {
            let next = at + f64::from(step) * 500.0;
            script.line(next, LineFrom::Server, Some(about("notifications/progress", next, 99)));
        }
        script.line(at + 4_000.0, LineFrom::Client, Some(about("notifications/cancelled", at + 4_000.0, id)));
    }
    assert_eq!(codes(&script.recording()), ["client-time-out"]);
}

#[test]
fn progress_on_a_reply_counts_as_that_of_a_pipe() {
    let recording = |closes: &[f64]| {
        let mut script = Script::recorder();
        for (id, age) in (1..).zip(closes) {
            let at = id as f64 * 20_000.0;
            let ex =
                script.post(Post { conn: id, session: Some("s"), ..request(at, id, "tools/call", Reply::Silence) });
            for step in 0..5 {
                let method = Some("notifications/progress".to_owned());
                let messages = vec![MessageNote { method, ..note(MessageKind::Notification, Some(id)) }];
                script.stream_event(ex, step, at + 400.0 * f64::from(step + 1), messages);
            }
            script.reply_end(ex, at + age, ReplyEnding::ClientLeft, "", Vec::new());
        }
        script.recording()
    };
    assert_eq!(codes(&recording(&[2_200.0, 2_203.0, 2_210.0])), ["client-time-out", "progress-ignored"]);
    assert_eq!(codes(&recording(&[2_200.0, 3_100.0, 2_810.0])), [""; 0]);
}

/// Shares of named scenes, over many: a timer of some length, with calls that end before it, and people who cancel.
#[test]
fn time_outs_are_named_and_people_who_cancel_are_not() {
    const SCENES: u64 = 400;
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut dice = move |from: f64, to: f64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        from + (to - from) * ((state >> 11) as f64 / (1_u64 << 53) as f64)
    };
    let (mut named, mut wrongly, mut progress, mut wrong_progress) = (0, 0, 0, 0);
    for scene in 0..SCENES {
        let calls = 3 + scene as usize % 10;
        let limit = dice(7.1, 10.1).exp();
        let over_http = scene % 2 == 0;
        let late: Vec<f64> = (0..calls).map(|_| limit + dice(0.0, 25.0)).collect();
        let by_hand: Vec<f64> = (0..calls).map(|_| dice(7.0, 10.0).exp() * 0.9).collect();
        let apart = limit / dice(4.0, 20.0);
        let scenes = |ages: &[f64], apart: f64| {
            let calls: Vec<(f64, f64)> = ages.iter().map(|age| (*age, apart)).collect();
            codes(&if over_http && apart == 0.0 { closed(ages) } else { on_pipe(&calls) })
        };
        named += u32::from(scenes(&late, 0.0) == ["client-time-out"]);
        let found = scenes(&late, apart);
        progress += u32::from(found == ["client-time-out", "progress-ignored"]);
        wrongly += u32::from(!scenes(&by_hand, 0.0).is_empty());
        wrong_progress += u32::from(!scenes(&by_hand, 700.0).is_empty());
    }
    assert!(named >= 396 && progress >= 396, "of {SCENES}: {named}, with progress {progress}");
    assert!(wrongly <= 4 && wrong_progress <= 4, "of {SCENES}: {wrongly}, with progress {wrong_progress}");
}

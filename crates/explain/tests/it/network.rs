//! The kernel's statistics of connections: segments that are lost, clients that do not read, servers that are far away.

use mcpace_explain::{Cause, Finding, Level, Severity, Texts, Way, join_events};
use mcpace_record::{ConnectionId, EventKind, Nanos, Recording, Side, TcpInfo};

use crate::script::{Post, Reply, Script, call_tool, ms, request};
use crate::{codes, found};

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![
        lost_requests(20, &[4, 9, 14, 17], 1),
        lost_requests(20, &[9], 2),
        lost_replies(),
        slow_reader(300.0, 400.0),
        slow_reader(300.0, 1.0),
        distant_server(40.0, true),
    ]
}

fn add_sample(script: &mut Script, at: f64, side: Side, conn: u64, info: TcpInfo) {
    script.event(at, EventKind::TcpInfo { side, conn: ConnectionId(conn), info });
}

fn near() -> TcpInfo {
    TcpInfo { rtt: ms(41.0), min_rtt: ms(0.05), ..TcpInfo::default() }
}

fn only(recording: &Recording) -> Finding {
    let mut found = found(recording);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// Calls of 20 ms, one a second, over one connection. `slow` calls take 250 ms more, or 700 ms where a segment is sent
/// again twice; `resent` are the calls during which the kernel sends segments again.
fn calls(number: u64, slow: &[u64], resent: &[u64], times: u32, side: Side) -> Recording {
    let mut script = Script::recorder();
    script.accept(1, 0.0);
    script.connect(101, 0.1, 0.3, Some(1));
    let mut info = near();
    for id in 1..=number {
        let at = id as f64 * 1_000.0;
        let pause = if times > 1 { 700.0 } else { 250.0 };
        let pause = if slow.contains(&id) { pause } else { 0.0 };
        let back = if side == Side::Back { at + 20.0 + pause } else { at + 20.0 };
        script.call("call", at, at + 22.0 + pause);
        script.post(call_tool(at + 1.0, id, Reply::Json(back - 0.2, back)));
        info.segments_out += 2;
        // A lost segment of a reply is sent again after the sample that its end brings.
        let after = if side == Side::Back { back + 0.1 } else { back + 900.0 };
        info.retransmitted += if resent.contains(&id) { times } else { 0 };
        add_sample(&mut script, after, side, if side == Side::Back { 101 } else { 1 }, info);
    }
    script.recording()
}

fn lost_requests(number: u64, lost: &[u64], times: u32) -> Recording {
    calls(number, lost, lost, times, Side::Back)
}

fn lost_replies() -> Recording {
    let lost = [3, 8, 9, 15, 19];
    calls(20, &lost, &lost, 1, Side::Front)
}

#[test]
fn calls_that_wait_for_a_segment_to_be_sent_again_are_named() {
    let finding = only(&lost_requests(20, &[4, 9, 14, 17], 1));
    let Cause::PacketLoss(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.way, context.stalls, context.retransmitted), (Way::ToServer, 4, 4));
    assert_eq!((context.of_exchanges, context.typical), (20, ms(250.0)));
    assert_eq!((finding.confidence.level, finding.severity), (Level::High, Severity::Medium));
    assert_eq!(finding.total.time, ms(1_000.0));
}

#[test]
fn a_segment_that_is_sent_again_twice_in_one_long_pause_is_possible_loss() {
    let finding = only(&lost_requests(20, &[9], 2));
    assert_eq!((finding.cause.code(), finding.confidence.level), ("packet-loss", Level::Low));
}

#[test]
fn calls_that_return_late_after_a_lost_reply_are_named() {
    let found = found(&lost_replies());
    let loss = found.iter().find_map(|finding| match &finding.cause {
        Cause::PacketLoss(context) => Some(context),
        _ => None,
    });
    assert_eq!(loss.map(|context| (context.way, context.stalls)), Some((Way::ToClient, 5)), "{found:?}");
}

#[test]
fn one_segment_that_is_sent_again_is_no_loss() {
    assert_eq!(codes(&lost_requests(20, &[9], 1)), [""; 0]);
}

#[test]
fn segments_that_are_sent_again_without_a_pause_are_no_loss() {
    assert_eq!(codes(&calls(20, &[], &[4, 9, 14, 17], 1, Side::Back)), [""; 0]);
    assert_eq!(codes(&calls(20, &[5, 10, 16], &[4, 9, 14, 17], 1, Side::Back)), [""; 0]);
}

#[test]
fn pauses_without_a_segment_that_is_sent_again_are_no_loss() {
    assert_eq!(codes(&calls(20, &[4, 9, 14, 17], &[], 1, Side::Back)), [""; 0]);
}

/// Calls of 50 ms, one each two seconds, whose reply the client takes `reading` to read; the kernel counts `limited`.
fn slow_reader(limited: f64, reading: f64) -> Recording {
    let mut script = Script::recorder();
    script.accept(1, 0.0);
    script.connect(101, 0.1, 0.3, Some(1));
    let mut info = near();
    for id in 1..=5 {
        let at = id as f64 * 2_000.0;
        script.call("call", at, at + 52.0 + reading.max(limited));
        let reply = Reply::Json(at + 49.0, at + 50.0 + reading);
        script.post(Post { bytes: Some(2_000_000), ..call_tool(at + 1.0, id, reply) });
        add_sample(&mut script, at + 49.2, Side::Front, 1, info);
        info.rwnd_limited = info.rwnd_limited + ms(limited * 0.8);
        info.sndbuf_limited = info.sndbuf_limited + ms(limited * 0.2);
        add_sample(&mut script, at + 51.0 + reading, Side::Front, 1, TcpInfo { rwnd_limited: Nanos::ZERO, ..info });
        add_sample(&mut script, at + 1_000.0, Side::Front, 1, info);
    }
    script.recording()
}

/// One sample after each reply, which the client reads in 150 ms.
fn replies_read_late(limited: f64) -> Recording {
    let mut script = Script::recorder();
    script.accept(1, 0.0);
    let mut info = near();
    for id in 1..=5 {
        let at = id as f64 * 2_000.0;
        script.call("call", at, at + 52.0 + limited);
        script.post(call_tool(at + 1.0, id, Reply::Json(at + 49.0, at + 50.0)));
        add_sample(&mut script, at + 50.2, Side::Front, 1, info);
        info.rwnd_limited = info.rwnd_limited + ms(limited);
    }
    add_sample(&mut script, 20_000.0, Side::Front, 1, info);
    script.recording()
}

#[test]
fn replies_that_wait_for_a_client_to_read_are_named() {
    let finding = only(&replies_read_late(150.0));
    let Cause::SlowReader(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.replies, context.of_replies, context.typical), (5, 5, ms(150.0)));
    assert_eq!((finding.confidence.level, finding.severity), (Level::High, Severity::Medium));
    assert_eq!(finding.calls.len(), 5);
    assert_eq!(found(&slow_reader(300.0, 400.0))[0].cause.code(), "slow-reader");
}

#[test]
fn a_moment_for_which_a_large_reply_waits_is_no_slow_reader() {
    assert_eq!(codes(&replies_read_late(3.0)), [""; 0]);
}

#[test]
fn a_distant_client_that_waits_for_a_window_is_no_slow_reader() {
    let mut script = Script::recorder();
    script.accept(1, 0.0);
    let far = TcpInfo { min_rtt: ms(60.0), ..near() };
    script.post(call_tool(1.0, 1, Reply::Json(49.0, 250.0)));
    add_sample(&mut script, 251.0, Side::Front, 1, TcpInfo { rwnd_limited: ms(190.0), ..far });
    assert_eq!(codes(&script.recording()), [""; 0]);
}

/// Calls of 100 ms and a round trip, over one connection or a connection each.
fn distant_server(round_trip: f64, one_connection: bool) -> Recording {
    let mut script = Script::recorder();
    for id in 1..=6 {
        let at = id as f64 * 1_000.0;
        let conn = if one_connection { 1 } else { id };
        let opens = id == 1 || !one_connection;
        let connect = if opens { round_trip } else { 0.0 };
        if opens {
            script.accept(conn, at + 0.5);
            script.connect(conn + 100, at + 0.6, at + 0.6 + round_trip, Some(conn));
        }
        let back = at + 100.0 + connect + round_trip;
        script.call("call", at, back + 1.0);
        script.post(Post { conn, ..call_tool(at + 1.0, id, Reply::Json(back - 0.1, back)) });
        let info = TcpInfo { rtt: ms(round_trip + 40.0), min_rtt: ms(round_trip), ..TcpInfo::default() };
        add_sample(&mut script, back + 0.2, Side::Back, conn + 100, info);
    }
    script.recording()
}

#[test]
fn a_round_trip_that_is_a_notable_part_of_each_call_is_named() {
    let finding = only(&distant_server(40.0, true));
    let Cause::DistantServer(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.round_trip, context.round_trips, context.connections), (ms(40.0), 1, 1));
    assert_eq!((context.of_calls, finding.confidence.level), (6, Level::High));
    assert_eq!(finding.total.time, ms(7.0 * 40.0));
}

#[test]
fn a_connection_for_each_call_takes_a_round_trip_more() {
    let found = found(&distant_server(40.0, false));
    let distant = found.iter().find_map(|finding| match &finding.cause {
        Cause::DistantServer(context) => Some(context),
        _ => None,
    });
    assert_eq!(distant.map(|context| (context.round_trips, context.connections)), Some((2, 6)), "{found:?}");
}

#[test]
fn a_near_server_whose_acknowledgements_are_delayed_is_not_distant() {
    // The smoothed round-trip time is 40 ms here.
    assert_eq!(codes(&distant_server(0.5, true)), [""; 0]);
    // Little beside the call.
    assert_eq!(codes(&distant_server(8.0, true)), [""; 0]);
}

#[test]
fn broken_statistics_are_no_proof() {
    let mut script = Script::recorder();
    script.accept(1, 0.0);
    script.connect(101, 0.1, 0.3, Some(1));
    let risen = TcpInfo { retransmitted: 9, rwnd_limited: Nanos(u64::MAX), min_rtt: Nanos(u64::MAX), ..near() };
    for id in 1..=4 {
        let at = id as f64 * 1_000.0;
        script.post(request(at, id, "tools/list", Reply::Json(at + 3.0, at + 4.0)));
        // A connection that was never opened, and one of the other side.
        add_sample(&mut script, at + 5.0, Side::Back, 77, risen);
        add_sample(&mut script, at + 5.1, Side::Front, 101, risen);
        // Counters that fall.
        add_sample(&mut script, at + 5.2, Side::Back, 101, TcpInfo { retransmitted: 8 - id as u32, ..near() });
        // Nothing but zeros.
        add_sample(&mut script, at + 5.3, Side::Front, 1, TcpInfo::default());
    }
    let recording = script.recording();
    assert_eq!(codes(&recording), [""; 0]);
    let texts = Texts::default();
    let view = join_events(&recording, &texts);
    let samples: Vec<usize> = view.connections.iter().map(|connection| connection.samples.len()).collect();
    assert_eq!(samples, [4, 4]);
    assert_eq!(view.connections[0].samples[0].info, TcpInfo::default());
}

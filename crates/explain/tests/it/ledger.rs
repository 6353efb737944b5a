//! Each layer's time goes to its part; the picture of the same call.

use mcpace_explain::{Doubt, Ledger, Parts, ServerSplit, call_ledgers, call_waterfall};
use mcpace_record::{CallId, Nanos, ServerTiming};

use crate::script::{Post, Reply, Script, call_tool, ms, notification, request};

fn only(script: Script) -> Ledger {
    let mut ledgers = call_ledgers(&script.recording());
    assert_eq!(ledgers.len(), 1);
    let ledger = ledgers.remove(0);
    assert_eq!(ledger.parts.total(), ledger.end.since(ledger.start));
    ledger
}

#[test]
fn our_own_clients_call_is_split_at_each_stamp() {
    let mut script = Script::client();
    script.call("call", 0.0, 50.0);
    script.connect(1, 1.0, 3.0, None);
    let post = call_tool(4.0, 1, Reply::Json(20.0, 25.0));
    script.post(Post { sending: 2.0, ..post });
    let parts = Parts {
        // 0–1, and 3–4 between the connection and the request.
        client_send: ms(2.0),
        connect: ms(2.0),
        request: ms(2.0),
        server: ms(14.0),
        response: ms(5.0),
        client_receive: ms(25.0),
        unaccounted: Nanos::ZERO,
    };
    assert_eq!(only(script).parts, parts);
}

#[test]
fn behind_the_recorder_its_own_passing_is_unaccounted_and_its_connect_is_the_connect() {
    let mut script = Script::recorder();
    script.call("call", 0.0, 50.0);
    script.accept(1, 1.0);
    script.connect(101, 4.5, 7.0, Some(1));
    let post = call_tool(4.0, 1, Reply::Json(20.0, 25.0));
    script.post(Post { sending: 0.4, ..post });
    let parts = Parts {
        client_send: ms(4.0),
        connect: ms(2.5),
        request: ms(0.4),
        server: ms(12.95),
        response: ms(5.0),
        client_receive: ms(24.95),
        // Before the connect, after it, and with the result.
        unaccounted: ms(0.1 + 0.05 + 0.05),
    };
    assert_eq!(only(script).parts, parts);
}

#[test]
fn heads_and_progress_before_the_result_are_the_servers_time() {
    let mut script = Script::client();
    script.call("call", 0.0, 31.0);
    script.post(call_tool(1.0, 1, Reply::Sse(2.0, 30.0, None)));
    let parts = only(script).parts;
    assert_eq!((parts.server, parts.response), (ms(28.9), Nanos::ZERO));
    assert_eq!(parts.client_receive, ms(1.0));
}

#[test]
fn between_two_exchanges_an_open_stream_is_read_and_a_closed_one_is_left() {
    let mut script = Script::client();
    script.call("connect", 0.0, 40.0);
    script.post(request(1.0, 0, "initialize", Reply::Sse(2.0, 5.0, Some(15.0))));
    script.post(notification(20.0, "notifications/initialized", 30.0));
    let parts = only(script).parts;
    // 5–15 while the stream is open, 30–40 after the last reply.
    assert_eq!(parts.client_receive, ms(20.0));
    // 0–1, and 15–20 after the stream's end.
    assert_eq!(parts.client_send, ms(6.0));
}

#[test]
fn a_notification_yields_to_the_request_that_overtakes_it() {
    let mut script = Script::client();
    script.call("list", 0.0, 10.0);
    script.post(notification(1.0, "notifications/initialized", 1000.0));
    script.post(request(2.0, 1, "tools/list", Reply::Json(8.0, 9.0)));
    let parts = only(script).parts;
    assert_eq!(parts.response, ms(1.0));
    assert_eq!(parts.client_receive, ms(1.0));
}

#[test]
fn overlapping_exchanges_share_the_time_without_counting_it_twice() {
    let mut script = Script::client();
    script.call("call", 0.0, 30.0);
    script.post(call_tool(1.0, 1, Reply::Json(10.0, 11.0)));
    script.post(call_tool(2.0, 2, Reply::Json(20.0, 21.0)));
    let parts = only(script).parts;
    assert_eq!(parts.server, ms(8.9 + 9.0));
    assert_eq!(parts.client_receive, ms(9.0));
}

#[test]
fn a_call_that_sends_nothing_is_its_clients_own_and_one_that_never_returns_ends_with_the_recording() {
    let mut script = Script::recorder();
    script.call("provider", 0.0, 7.0);
    assert_eq!(only(script).parts.client_send, ms(7.0));

    let mut script = Script::recorder();
    let start = mcpace_record::EventKind::CallStart { call: CallId(1), operation: "call".to_owned(), tool: None };
    script.event(0.0, start);
    script.post(call_tool(1.0, 1, Reply::Silence));
    let ledger = only(script);
    assert_eq!((ledger.end, ledger.outcome), (ms(1.15), None));
}

#[test]
fn a_server_that_never_answers_has_the_rest_of_the_call() {
    let mut script = Script::client();
    script.call("call", 0.0, 100.0);
    script.post(call_tool(1.0, 1, Reply::Silence));
    assert_eq!(only(script).parts.server, ms(98.9));
}

#[test]
fn a_broken_reply_is_the_servers_until_it_breaks() {
    let mut script = Script::client();
    script.call("call", 0.0, 100.0);
    script.post(call_tool(1.0, 1, Reply::Broken(2.0, 51.1)));
    let parts = only(script).parts;
    assert_eq!((parts.server, parts.client_receive), (ms(50.0), ms(48.9)));
}

#[test]
fn failed_tries_to_connect_count_as_connecting() {
    let mut script = Script::client();
    script.call("connect", 0.0, 20.0);
    script.connect_fails(1, 1.0, 6.0);
    script.connect(2, 6.0, 8.0, None);
    let post = request(8.0, 0, "initialize", Reply::Json(10.0, 11.0));
    script.post(Post { conn: 2, ..post });
    assert_eq!(only(script).parts.connect, ms(7.0));

    let mut script = Script::recorder();
    script.call("connect", 0.0, 20.0);
    script.connect_fails(103, 2.0, 6.0);
    script.connect(101, 6.0, 8.0, Some(1));
    script.post(request(1.0, 0, "initialize", Reply::Json(10.0, 11.0)));
    assert_eq!(only(script).parts.connect, ms(6.0));

    let mut script = Script::client();
    script.call("connect", 0.0, 20.0);
    script.connect_fails(1, 1.0, 16.0);
    assert_eq!(only(script).parts.connect, ms(15.0));
}

#[test]
fn the_servers_own_stream_and_a_sessions_end_are_no_work_of_a_call() {
    let mut script = Script::client();
    script.call("call", 0.0, 20.0);
    script.get(2, 1.0, Some(15.0), None);
    script.post(call_tool(2.0, 1, Reply::Json(10.0, 11.0)));
    let parts = only(script).parts;
    assert_eq!((parts.client_send, parts.server), (ms(2.0), ms(7.9)));
}

#[test]
fn what_the_server_told_is_kept_beside_the_split() {
    let mut script = Script::client();
    script.call("call", 0.0, 20.0);
    let timing = ServerTiming { transport: Nanos(1), dispatch: Nanos(2), service: Nanos(3), malformed: false };
    let post = call_tool(2.0, 1, Reply::Sse(9.0, 10.0, Some(11.0)));
    let ex = script.post(Post { timing: Some(timing), ..post });
    // A repeated timing, here by header, is not counted twice.
    let told = mcpace_record::EventKind::ServerTiming { ex: Some(ex), id: None, timing };
    script.event(9.0, told);
    assert_eq!(only(script).server_timing.as_ref(), Some(&timing));
}

/// A call whose server has 3 ms to itself (2.1–5.1) in an exchange of 4.1 ms, and says that its layers took so long.
fn split_of(transport: f64, dispatch: f64, service: f64, malformed: bool) -> (Option<ServerSplit>, Nanos) {
    let mut script = Script::client();
    script.call("call", 0.0, 20.0);
    let timing = ServerTiming { transport: ms(transport), dispatch: ms(dispatch), service: ms(service), malformed };
    let post = call_tool(2.0, 1, Reply::Json(5.1, 6.1));
    script.post(Post { timing: Some(timing), sending: 0.1, ..post });
    let ledger = only(script);
    (ledger.split, ledger.parts.server)
}

fn sum(split: &ServerSplit) -> Nanos {
    split.transport + split.dispatch + split.service + split.rest
}

#[test]
fn what_the_server_told_splits_its_part_and_the_rest_is_shown() {
    let (split, server) = split_of(0.5, 0.25, 1.0, false);
    let split = split.unwrap();
    assert_eq!((split.transport, split.dispatch, split.service), (ms(0.5), ms(0.25), ms(1.0)));
    assert_eq!((split.rest, sum(&split), split.doubt), (ms(1.25), server, None));
    assert_eq!(server, ms(3.0));
}

#[test]
fn reading_and_writing_come_off_the_servers_transport() {
    // 3.5 ms fit into the exchange, and half a millisecond of them isn't the server's part.
    let (split, server) = split_of(1.5, 0.5, 1.5, false);
    let split = split.unwrap();
    assert_eq!((split.transport, split.dispatch, split.service, split.rest), (ms(1.0), ms(0.5), ms(1.5), Nanos(0)));
    assert_eq!((sum(&split), split.doubt), (server, None));
}

#[test]
fn an_account_that_cannot_be_true_splits_nothing() {
    for (service, malformed, doubt) in [(4.2, false, Doubt::LongerThanExchange), (1.0, true, Doubt::Malformed)] {
        let (split, server) = split_of(0.0, 0.0, service, malformed);
        let split = split.unwrap();
        assert_eq!((split.doubt, split.rest, split.service), (Some(doubt), server, Nanos(0)));
    }
}

#[test]
fn behind_the_recorder_the_back_side_is_what_an_account_must_fit_into() {
    let mut script = Script::recorder();
    script.call("call", 0.0, 50.0);
    script.accept(1, 1.0);
    script.connect(101, 4.5, 7.0, Some(1));
    // 16 ms at the client, 2.5 of them the recorder's connect.
    let timing = ServerTiming { service: ms(19.0), ..ServerTiming::default() };
    let post = call_tool(4.0, 1, Reply::Json(20.0, 25.0));
    script.post(Post { sending: 0.4, timing: Some(timing), ..post });
    assert_eq!(only(script).split.unwrap().doubt, Some(Doubt::LongerThanExchange));
}

#[test]
fn stdio_calls_are_split_by_their_lines() {
    let mut script = Script::stdio();
    script.call("call", 0.0, 20.0);
    let tool = || Some(call_tool(0.0, 1, Reply::Silence));
    script.line(1.0, mcpace_record::LineFrom::Client, tool());
    script.line(10.0, mcpace_record::LineFrom::Server, tool());
    let parts = only(script).parts;
    assert_eq!((parts.client_send, parts.server), (ms(1.0), ms(8.95)));
    // The line's way to the server and the answer's way back.
    assert_eq!(parts.unaccounted, ms(0.1));
    assert_eq!(parts.client_receive, ms(9.95));
}

#[test]
fn a_waterfall_shows_connections_phases_and_repeats() {
    let recording = crate::duplicate_request::python_1_12_with_oauth();
    insta::assert_json_snapshot!(call_waterfall(&recording, CallId(2)));
    assert_eq!(call_waterfall(&recording, CallId(99)), None);
    let recording = crate::transport::connection_per_request();
    insta::assert_json_snapshot!(call_waterfall(&recording, CallId(1)));
}

#[test]
fn of_a_long_stream_the_picture_has_the_first_events_and_the_number_of_the_others() {
    let mut script = Script::recorder();
    script.call("call", 0.0, 2_000.0);
    let asked = script.post(call_tool(1.0, 1, Reply::Sse(1_900.0, 1_901.0, Some(1_902.0))));
    for seq in 10..1_010 {
        script.stream_event(asked, seq, 2.0 + f64::from(seq), Vec::new());
    }
    let shown = call_waterfall(&script.recording(), CallId(1)).unwrap();
    let events = &shown.exchanges[0].events;
    assert!(events.len() < 600);
    assert!(events.iter().any(|moment| moment.label.ends_with(" more events")), "{events:?}");
    assert_eq!(events.last().map(|moment| &*moment.label), Some("reply-end"));
}

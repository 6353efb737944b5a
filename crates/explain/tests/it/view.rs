//! Events joined: answers find their requests, exchanges their calls.

use mcpace_explain::{ReplyShape, Texts, Transport, join_events};
use mcpace_record::{CallId, ExchangeId, LineFrom};

use crate::script::{Post, Reply, Script, answered, call_tool, ms, request};

#[test]
fn an_answer_on_the_servers_own_stream_finds_its_request() {
    let mut script = Script::recorder();
    let stream = script.get(2, 0.0, Some(1.0), None);
    let post = call_tool(2.0, 7, Reply::Empty(3.0));
    let asked = script.post(Post { status: 202, ..post.clone() });
    script.stream_event(stream, 0, 9.0, vec![answered(&post)]);
    let recording = script.recording();
    let texts = Texts::default();
    let view = join_events(&recording, &texts);
    let exchange = view.exchange(asked).unwrap();
    assert!(exchange.succeeded());
    assert_eq!(exchange.completed().map(|stamp| stamp.at), Some(ms(9.05)));
}

#[test]
fn an_answer_to_another_id_is_no_answer() {
    let mut script = Script::client();
    let asked = script.post(call_tool(2.0, 7, Reply::Sse(3.0, 4.0, Some(5.0))));
    let stranger = script.post(call_tool(6.0, 8, Reply::Silence));
    script.stream_event(stranger, 0, 7.0, vec![answered(&call_tool(0.0, 9, Reply::Silence))]);
    let recording = script.recording();
    let texts = Texts::default();
    let view = join_events(&recording, &texts);
    assert!(view.exchange(asked).unwrap().succeeded());
    let stranger = view.exchange(stranger).unwrap();
    assert_eq!((stranger.answer, stranger.shape), (None, ReplyShape::Events));
}

#[test]
fn lines_become_exchanges_and_a_new_process_owes_no_answer_to_old_requests() {
    let mut script = Script::stdio();
    let tool = || Some(call_tool(0.0, 1, Reply::Silence));
    script.spawn(0.0, 1, "server");
    script.line(1.0, LineFrom::Client, tool());
    script.spawn(5.0, 2, "server");
    script.line(6.0, LineFrom::Server, tool());
    script.line(7.0, LineFrom::Client, tool());
    script.line(8.0, LineFrom::Server, tool());
    let recording = script.recording();
    let texts = Texts::default();
    let view = join_events(&recording, &texts);
    assert_eq!(view.exchanges.len(), 2);
    let [old, new] = &view.exchanges[..] else { panic!("{view:?}") };
    assert_eq!((old.transport, old.answer), (Transport::Stdio, None));
    assert_eq!(new.near().and_then(|near| near.end).map(|s| s.at), Some(ms(8.05)));
    assert_eq!(view.processes[1].exchanges, [new.id]);
    assert_eq!(view.processes[0].first_output, None);
}

#[test]
fn an_exchange_belongs_to_the_call_that_started_last() {
    let mut script = Script::client();
    script.call("call", 0.0, 100.0);
    script.call("call", 10.0, 50.0);
    script.post(call_tool(1.0, 1, Reply::Json(90.0, 91.0)));
    script.post(call_tool(11.0, 2, Reply::Json(40.0, 41.0)));
    script.post(request(60.0, 3, "ping", Reply::Json(61.0, 62.0)));
    let recording = script.recording();
    let texts = Texts::default();
    let view = join_events(&recording, &texts);
    let calls: Vec<_> = view.exchanges.iter().map(|e| e.call).collect();
    assert_eq!(calls, [Some(CallId(1)), Some(CallId(2)), Some(CallId(1))]);
    assert_eq!(view.call(CallId(2)).unwrap().in_flight, [ExchangeId(1)]);
}

#[test]
fn an_event_is_read_and_passed_on_wherever_it_stands_in_its_stream() {
    let mut script = Script::recorder();
    let stream = script.get(2, 0.0, Some(1.0), None);
    for (at, seq) in [(2.0, 0), (3.0, 7), (4.0, 1), (5.0, 3)] {
        script.stream_event(stream, seq, at, Vec::new());
    }
    let recording = script.recording();
    let texts = Texts::default();
    let view = join_events(&recording, &texts);
    let events = &view.exchange(stream).unwrap().events;
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [0, 7, 1, 3]);
    assert!(
        events.iter().all(|event| event.read().zip(event.passed()).is_some_and(|(read, passed)| read.at <= passed.at))
    );
}

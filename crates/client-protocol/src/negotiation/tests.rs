//! Dialogues of a negotiation, without a server and without waiting.

use super::*;

/// Outcome of a step, as a driver reports it.
enum DriverEvent {
    Open(Transport),
    Timeout,
    Failure(ClientError),
    Answer(u16, &'static str),
    Error(u16, i64, &'static [&'static str]),
    Page(u16),
}

use DriverEvent::{Answer as Ok_, Error as Err_, Failure, Open, Page, Timeout};

const MODERN: DriverEvent = Ok_(
    200,
    r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"_meta":{
        "io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#,
);
const LEGACY: DriverEvent =
    Ok_(200, r#"{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#);

fn connection_ended() -> DriverEvent {
    Failure(ClientError::ProcessEnded { program: "p".to_owned(), how: "exit code 1".to_owned(), stderr: String::new() })
}

fn describe_step(step: &Step) -> String {
    match step {
        Step::Reopen => "reopen".to_owned(),
        Step::OpenHttpSse => "open http+sse".to_owned(),
        Step::Discover { revision, limit } => {
            format!("discover {revision}{}", if limit.is_some() { " within a limit" } else { "" })
        }
        Step::Initialize { offer } => format!("initialize {offer}"),
        Step::Connected(agreement) => {
            let server = &agreement.server;
            format!("connected {} {} {:?}", server.revision, server.transport.as_str(), agreement.era)
        }
    }
}

/// Plays a dialogue; returns its steps, the last of which may be the code and the text of an error.
fn play_dialogue(mode: Mode, is_http: bool, known: Option<ServerEra>, events: Vec<DriverEvent>) -> Vec<String> {
    let (mut negotiation, first) = Negotiation::begin(mode, is_http, Duration::from_secs(10), known);
    let mut steps = vec![describe_step(&first)];
    for event in events {
        let next = match event {
            Open(transport) => Ok(negotiation.handle_open(transport)),
            Timeout => Ok(negotiation.handle_timeout()),
            Failure(error) => negotiation.handle_failure(error),
            Ok_(status, text) => {
                let answer = Answer::Result(Raw::new(text));
                negotiation.handle_reply(ServerReply::Answer { status, answer }, "here")
            }
            Err_(status, code, supported) => {
                let data = serde_json::json!({ "supported": supported }).to_string();
                let error = RpcError { code, message: "no".to_owned(), data: Some(text_to_json(data)) };
                negotiation.handle_reply(ServerReply::Answer { status, answer: Answer::Error(error) }, "here")
            }
            Page(status) => {
                let other = OtherReply::new(status, "text/html", b"<html>", None);
                negotiation.handle_reply(ServerReply::Other(other), "here")
            }
        };
        match next {
            Ok(step) => steps.push(describe_step(&step)),
            Err(error) => {
                steps.push(format!("{}: {error}", error.code()));
                return steps;
            }
        }
    }
    steps
}

fn text_to_json(text: String) -> mcpace_wire::mcp::Json {
    mcpace_wire::mcp::Json::from_text(text).unwrap()
}

fn play_auto(is_http: bool, events: Vec<DriverEvent>) -> Vec<String> {
    play_dialogue(Mode::Auto, is_http, None, events)
}

fn last_step(steps: &[String]) -> &str {
    steps.last().unwrap()
}

const CONNECTED_MODERN: &str = "connected 2026-07-28 streamable-http Modern";
const CONNECTED_LEGACY: &str = "connected 2025-06-18 streamable-http Legacy";

#[test]
fn a_modern_server_needs_one_request() {
    assert_eq!(play_auto(true, vec![MODERN]), ["discover 2026-07-28", CONNECTED_MODERN]);
    let steps = play_auto(false, vec![MODERN]);
    assert_eq!(steps, ["discover 2026-07-28 within a limit", "connected 2026-07-28 stdio Modern"]);
}

#[test]
fn replies_of_legacy_servers_to_discover_lead_to_initialize() {
    let replies = [
        Err_(200, -32601, &[]),
        Err_(400, -32600, &[]),
        Page(400),
        Page(404),
        Ok_(200, r#"{"supportedVersions":["2099-01-01"],"capabilities":{}}"#),
        Ok_(200, "[]"),
    ];
    for reply in replies {
        let steps = play_auto(true, vec![reply, LEGACY]);
        assert_eq!(steps, ["discover 2026-07-28", "initialize 2025-11-25", CONNECTED_LEGACY]);
    }
}

#[test]
fn a_busy_server_is_asked_once() {
    for status in [429, 502, 503, 504] {
        let steps = play_auto(true, vec![Page(status)]);
        assert!(steps.len() == 2 && last_step(&steps).starts_with("http-status: "), "{steps:?}");
    }
}

#[test]
fn a_modern_refusal_is_final() {
    let steps = play_auto(true, vec![Err_(400, code::HEADER_MISMATCH, &[])]);
    assert!(steps.len() == 2 && last_step(&steps).starts_with("rpc: "), "{steps:?}");
}

#[test]
fn a_refused_version_is_replaced_by_one_that_the_server_names() {
    let refused = |supported| Err_(400, code::UNSUPPORTED_PROTOCOL_VERSION, supported);
    let steps = play_auto(true, vec![refused(&["2025-06-18", "2025-03-26"]), LEGACY]);
    assert_eq!(steps[1..], ["initialize 2025-06-18", CONNECTED_LEGACY]);
    // The very version that was refused is asked for once more.
    let steps = play_auto(true, vec![refused(&["2026-07-28"]), MODERN]);
    assert_eq!(steps[1..], ["discover 2026-07-28", CONNECTED_MODERN]);
    let steps = play_auto(true, vec![refused(&["2026-07-28"]), refused(&["2026-07-28"])]);
    assert!(last_step(&steps).starts_with("revision: "), "{steps:?}");
    let steps = play_auto(true, vec![refused(&["2099-01-01"])]);
    assert!(last_step(&steps).contains("the server speaks 2099-01-01, but 2026-07-28"), "{steps:?}");
    assert!(last_step(&play_auto(true, vec![refused(&[])])).contains("no version that it names"));
}

#[test]
fn a_silent_program_and_one_that_ends_are_legacy() {
    let begin = "discover 2026-07-28 within a limit";
    let connected = "connected 2025-06-18 stdio Legacy";
    assert_eq!(play_auto(false, vec![Timeout, LEGACY]), [begin, "initialize 2025-11-25", connected]);
    let steps = play_auto(false, vec![connection_ended(), Open(Transport::Pipe), LEGACY]);
    assert_eq!(steps, [begin, "reopen", "initialize 2025-11-25", connected]);
    // A program that ends at `initialize` too is gone.
    let steps = play_auto(false, vec![connection_ended(), Open(Transport::Pipe), connection_ended()]);
    assert!(last_step(&steps).starts_with("process-ended: "), "{steps:?}");
}

#[test]
fn a_slow_program_that_ends_at_discover_is_started_again() {
    let steps = play_auto(false, vec![Timeout, connection_ended(), Open(Transport::Pipe), LEGACY]);
    assert_eq!(steps[1..4], ["initialize 2025-11-25", "reopen", "initialize 2025-11-25"]);
    assert!(last_step(&steps).starts_with("connected "), "{steps:?}");
}

#[test]
fn a_program_that_answers_discover_too_late_is_modern() {
    let steps = play_auto(false, vec![Timeout, Err_(200, code::UNSUPPORTED_PROTOCOL_VERSION, &["2026-07-28"]), MODERN]);
    assert_eq!(steps[2..], ["discover 2026-07-28", "connected 2026-07-28 stdio Modern"]);
}

#[test]
fn a_server_that_refuses_posts_is_tried_over_http_sse() {
    for refusal in [Page(405), Page(404), Page(400), Err_(400, -32600, &[])] {
        let steps = play_auto(true, vec![Page(404), refusal, Open(Transport::HttpSse), LEGACY]);
        let rest = ["open http+sse", "initialize 2024-11-05", "connected 2025-06-18 http+sse HttpSse"];
        assert_eq!(steps[2..], rest);
    }
}

#[test]
fn the_first_refusal_is_told_when_http_sse_fails_too() {
    let failure = || Failure(ClientError::BrokeOff { method: "m".to_owned(), reason: "r".to_owned() });
    for events in
        [vec![failure()], vec![Open(Transport::HttpSse), Page(500)], vec![Open(Transport::HttpSse), failure()]]
    {
        let mut dialogue = vec![Page(404), Err_(404, -32601, &[])];
        dialogue.extend(events);
        let steps = play_auto(true, dialogue);
        assert_eq!(
            last_step(&steps),
            "not-mcp: here does not answer as an MCP server: status 404, no; check the URL and its path"
        );
    }
}

#[test]
fn one_wanted_revision_is_asked_for_alone() {
    let modern = Mode::Only(Revision::V2026_07_28);
    assert_eq!(play_dialogue(modern, true, None, vec![MODERN]), ["discover 2026-07-28", CONNECTED_MODERN]);
    for reply in [Page(400), Err_(200, -32601, &[]), Err_(400, code::UNSUPPORTED_PROTOCOL_VERSION, &["2025-06-18"])] {
        let steps = play_dialogue(modern, true, None, vec![reply]);
        assert!(last_step(&steps).starts_with("revision: "), "{steps:?}");
    }
    let older = Mode::Only(Revision::V2025_06_18);
    assert_eq!(play_dialogue(older, true, None, vec![LEGACY]), ["initialize 2025-06-18", CONNECTED_LEGACY]);
    let other = play_dialogue(Mode::Only(Revision::V2025_03_26), true, None, vec![LEGACY]);
    assert!(last_step(&other).contains("the server speaks 2025-06-18, but 2025-03-26 was asked for"), "{other:?}");
    // Only 2024-11-05 has HTTP+SSE.
    assert!(last_step(&play_dialogue(older, true, None, vec![Page(405)])).starts_with("not-mcp: "));
    assert_eq!(
        last_step(&play_dialogue(Mode::Only(Revision::V2024_11_05), true, None, vec![Page(405)])),
        "open http+sse"
    );
}

#[test]
fn a_known_era_saves_requests() {
    let known = |era, events| play_dialogue(Mode::Auto, true, Some(era), events);
    assert_eq!(known(ServerEra::Modern, vec![MODERN]), ["discover 2026-07-28", CONNECTED_MODERN]);
    assert_eq!(known(ServerEra::Legacy, vec![LEGACY]), ["initialize 2025-11-25", CONNECTED_LEGACY]);
    let steps = known(ServerEra::HttpSse, vec![Open(Transport::HttpSse), LEGACY]);
    assert_eq!(steps[..2], ["open http+sse", "initialize 2024-11-05"]);
    assert_eq!(play_dialogue(Mode::Legacy, true, None, vec![LEGACY]), ["initialize 2025-11-25", CONNECTED_LEGACY]);
}

use mcpace_wire::Revision;
use mcpace_wire::http::{
    Era, Outgoing, ParamHeader, Rejection, RequestHeaders, SessionId, check_legacy, check_meta, check_modern,
    client_headers,
};
use mcpace_wire::jsonrpc::{Id, Message, ParseError};
use mcpace_wire::mcp::ParamsOutline;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn call() -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"greet","arguments":{{"who":"é","n":4}},{META}}}}}"#
    )
}

const GOOD: [(&str, &str); 3] =
    [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("mcp-name", "greet")];

fn headers<'a>(pairs: &[(&'a str, &'a str)]) -> RequestHeaders<'a> {
    RequestHeaders::of(pairs.iter().map(|(name, value)| (*name, value.as_bytes())))
}

fn modern(body: &str, pairs: &[(&str, &str)], supported: &[Revision]) -> Result<Revision, Rejection> {
    let message = Message::parse(body.as_bytes()).unwrap();
    let outline = ParamsOutline::parse(message.params()).unwrap();
    check_modern(&headers(pairs), &message, &outline, supported)
}

fn era(body: &str, pairs: &[(&str, &str)]) -> Era {
    let message = Message::parse(body.as_bytes()).unwrap();
    Era::of(&headers(pairs), &ParamsOutline::parse(message.params()).unwrap())
}

#[test]
fn the_era_is_in_the_body_first() {
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    assert_eq!(era(&call(), &[]), Era::Modern);
    assert_eq!(era(&call().replace("2026-07-28", "1900-01-01"), &[]), Era::Modern);
    assert_eq!(era(&call().replace("2026-07-28", "2025-11-25"), &GOOD), Era::Legacy);
    assert_eq!(era(bare, &[]), Era::Legacy);
    assert_eq!(era(bare, &[("mcp-protocol-version", "2025-06-18")]), Era::Legacy);
    assert_eq!(era(bare, &[("mcp-protocol-version", "2026-07-28")]), Era::Modern);
    assert_eq!(era(bare, &[("mcp-protocol-version", "junk")]), Era::Legacy);
    assert_eq!((Era::of_error_code(-32020), Era::of_error_code(-32601)), (Some(Era::Modern), None));
}

#[test]
fn a_modern_request_is_checked_in_the_order_of_the_protocol() {
    let all = &Revision::ALL;
    assert_eq!(modern(&call(), &GOOD, all), Ok(Revision::V2026_07_28));
    let verdict = |body: &str, pairs: &[(&str, &str)], supported: &[Revision]| {
        let rejection = modern(body, pairs, supported).unwrap_err();
        (rejection.status(), rejection.code(), rejection.to_string())
    };
    // Each line mends what the line before it was refused for.
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet"}}"#;
    let no_capabilities = call().replace(r#","io.modelcontextprotocol/clientCapabilities":{}"#, "");
    let old = call().replace("2026-07-28", "2027-01-01");
    let steps = [
        verdict(bare, &[], &[]),
        verdict(&no_capabilities, &[], &[]),
        verdict(&call(), &[], &[]),
        verdict(&call(), &[("mcp-protocol-version", "2025-11-25")], &[]),
        verdict(&call(), &GOOD[..1], &[]),
        verdict(&call(), &[GOOD[0], ("mcp-method", "Tools/call")], &[]),
        verdict(&call(), &GOOD[..2], &[]),
        verdict(&call(), &[GOOD[0], GOOD[1], GOOD[2], GOOD[2]], &[]),
        verdict(&call(), &[GOOD[0], GOOD[1], ("mcp-name", "=?base64?!?=")], &[]),
        verdict(&old, &[("mcp-protocol-version", "2027-01-01"), GOOD[1], GOOD[2]], all),
        verdict(&call(), &GOOD, &[Revision::V2025_11_25]),
    ];
    insta::assert_debug_snapshot!(steps.map(|(status, code, text)| format!("{status} {code} {text}")), @r#"
    [
        "400 -32602 invalid parameters: _meta[\"io.modelcontextprotocol/protocolVersion\"] is required",
        "400 -32602 invalid parameters: _meta[\"io.modelcontextprotocol/clientCapabilities\"] is required",
        "400 -32020 header mismatch: mcp-protocol-version is missing",
        "400 -32020 header mismatch: mcp-protocol-version does not say what the body says",
        "400 -32020 header mismatch: mcp-method is missing",
        "400 -32020 header mismatch: mcp-method does not say what the body says",
        "400 -32020 header mismatch: mcp-name is missing",
        "400 -32020 header mismatch: mcp-name is malformed",
        "400 -32020 header mismatch: mcp-name is malformed",
        "400 -32022 unsupported protocol version",
        "400 -32022 unsupported protocol version",
    ]
    "#);
}

#[test]
fn where_there_are_no_headers_the_metadata_alone_is_checked() {
    let code = |body: &str, supported: &[Revision]| {
        let message = Message::parse(body.as_bytes()).unwrap();
        check_meta(&ParamsOutline::parse(message.params()).unwrap(), supported).map_err(|rejection| rejection.code())
    };
    assert_eq!(code(&call(), &Revision::ALL), Ok(Revision::V2026_07_28));
    assert_eq!(code(&call(), &[Revision::V2025_11_25]), Err(-32022));
    assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#, &Revision::ALL), Err(-32602));
}

#[test]
fn a_modern_client_sends_no_responses_and_notifications_need_only_a_version() {
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert!(matches!(modern(response, &GOOD, &Revision::ALL), Err(Rejection::NotAllowed(_))));
    let note = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
    assert_eq!(modern(note, &GOOD[..1], &Revision::ALL), Ok(Revision::V2026_07_28));
    assert!(matches!(modern(note, &GOOD[..2], &Revision::ALL), Err(Rejection::HeaderMismatch(_))));
    assert!(matches!(modern(note, &[], &Revision::ALL), Err(Rejection::HeaderMissing(_))));
}

#[test]
fn a_refusal_writes_its_body() {
    let mut out = Vec::new();
    let id = Id::from(1_i64);
    let refused = modern(&call(), &GOOD, &[Revision::V2025_11_25]).unwrap_err();
    refused.write_body(Some(&id), &mut out);
    let required = serde_json::from_str(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#).unwrap();
    out.push(b'\n');
    Rejection::MissingCapability { required }.write_body(Some(&id), &mut out);
    out.push(b'\n');
    Rejection::from(ParseError::EmptyBatch).write_body(None, &mut out);
    insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r#"
    {"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"unsupported protocol version","data":{"requested":"2026-07-28","supported":["2025-11-25"]}}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
    {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a batch has at least one message"}}
    "#);
}

#[test]
fn every_refusal_has_its_status_and_code() {
    let cases = [
        (Rejection::UnknownMethod, 404, -32601),
        (Rejection::SessionMissing, 400, -32600),
        (Rejection::SessionNotFound, 404, -32600),
        (Rejection::OriginForbidden, 403, -32600),
        (Rejection::MethodNotAllowed, 405, -32600),
        (Rejection::NotAcceptable, 406, -32600),
        (Rejection::UnsupportedMediaType, 415, -32600),
        (Rejection::BodyTooLarge { limit: 1 }, 413, -32600),
        (Rejection::InvalidVersionHeader, 400, -32600),
        (Rejection::Unreadable(ParseError::NotUtf8 { at: 0 }), 400, -32700),
    ];
    for (rejection, status, code) in cases {
        assert_eq!((rejection.status(), rejection.code()), (status, code), "{rejection}");
    }
}

#[test]
fn a_legacy_request_tells_version_and_session() {
    let all = &Revision::ALL;
    let check = |pairs: &[(&str, &str)], negotiated| {
        check_legacy(&headers(pairs), negotiated, all)
            .map(|(revision, id)| (revision, id.map(|id| id.as_str().to_owned())))
    };
    assert_eq!(check(&[], None), Ok((Revision::V2025_03_26, None)));
    assert_eq!(check(&[], Some(Revision::V2025_11_25)), Ok((Revision::V2025_11_25, None)));
    let good = [("MCP-Protocol-Version", " 2025-06-18 "), ("MCP-Session-Id", "a!~")];
    assert_eq!(check(&good, None), Ok((Revision::V2025_06_18, Some("a!~".to_owned()))));
    for version in ["2026-07-28", "junk", "", "2025-06-1\u{e9}"] {
        assert_eq!(
            check(&[("mcp-protocol-version", version)], None),
            Err(Rejection::InvalidVersionHeader),
            "{version}"
        );
    }
    for session in ["", "a b", "\u{e9}", "a\u{7f}"] {
        assert_eq!(check(&[("mcp-session-id", session)], None), Err(Rejection::SessionMissing), "{session}");
    }
    assert_eq!(check(&[good[1], good[1]], None), Err(Rejection::SessionMissing));
    assert!("x".repeat(1025).parse::<SessionId>().is_err());
    assert_eq!(format!("{:?}", "secret".parse::<SessionId>().unwrap()), "SessionId(6 characters)");
}

#[test]
fn a_client_sends_what_its_revision_demands() {
    let (call, schema) = (call(), r#"{"properties":{"who":{"type":"string","x-mcp-header":"Who"}}}"#);
    let annotations = ParamHeader::of_schema(schema).unwrap();
    let session: SessionId = "s".parse().unwrap();
    let mut sent = Vec::new();
    for body in [call.as_str(), r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#] {
        let message = Message::parse(body.as_bytes()).unwrap();
        for revision in Revision::ALL {
            let outgoing = Outgoing { message: &message, revision, session: Some(&session), annotations: &annotations };
            let headers = client_headers(outgoing).unwrap();
            let own = headers[2..].iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>();
            sent.push(format!("{} {revision} {}", message.method().unwrap(), own.join(", ")));
        }
    }
    insta::assert_snapshot!(sent.join("\n"), @r"
    tools/call 2024-11-05 
    tools/call 2025-03-26 mcp-session-id: s
    tools/call 2025-06-18 mcp-protocol-version: 2025-06-18, mcp-session-id: s
    tools/call 2025-11-25 mcp-protocol-version: 2025-11-25, mcp-session-id: s
    tools/call 2026-07-28 mcp-protocol-version: 2026-07-28, mcp-method: tools/call, mcp-name: greet, mcp-param-who: =?base64?w6k=?=
    initialize 2024-11-05 
    initialize 2025-03-26 
    initialize 2025-06-18 
    initialize 2025-11-25 
    initialize 2026-07-28 
    ");
}

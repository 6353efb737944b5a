use mcpace_wire::Revision;
use mcpace_wire::http::{
    Accept, AnnotationError, Challenge, ChallengeError, Era, Outgoing, ParamHeader, ParamKind,
    Rejection, RequestHeaders, SessionId, ValueError, check_legacy, check_modern, check_params,
    client_headers, decode_value, encode_value,
};
use mcpace_wire::jsonrpc::{Id, Message, ParseError};
use mcpace_wire::mcp::ParamsOutline;
use proptest::prelude::*;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn call() -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"greet","arguments":{{"who":"é","n":4}},{META}}}}}"#
    )
}

const GOOD: [(&str, &str); 3] = [
    ("MCP-Protocol-Version", "2026-07-28"),
    ("Mcp-Method", "tools/call"),
    ("mcp-name", "greet"),
];

fn headers<'a>(pairs: &[(&'a str, &'a str)]) -> RequestHeaders<'a> {
    RequestHeaders::of(pairs.iter().map(|(name, value)| (*name, value.as_bytes())))
}

fn modern(
    body: &str,
    pairs: &[(&str, &str)],
    supported: &[Revision],
) -> Result<Revision, Rejection> {
    let message = Message::parse(body.as_bytes()).unwrap();
    let outline = ParamsOutline::parse(message.params()).unwrap();
    check_modern(&headers(pairs), &message, &outline, supported)
}

fn era(body: &str, pairs: &[(&str, &str)]) -> Era {
    let message = Message::parse(body.as_bytes()).unwrap();
    Era::of(
        &headers(pairs),
        &ParamsOutline::parse(message.params()).unwrap(),
    )
}

#[test]
fn the_era_is_in_the_body_first() {
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    assert_eq!(era(&call(), &[]), Era::Modern);
    assert_eq!(
        era(&call().replace("2026-07-28", "1900-01-01"), &[]),
        Era::Modern
    );
    assert_eq!(
        era(&call().replace("2026-07-28", "2025-11-25"), &GOOD),
        Era::Legacy
    );
    assert_eq!(era(bare, &[]), Era::Legacy);
    assert_eq!(
        era(bare, &[("mcp-protocol-version", "2025-06-18")]),
        Era::Legacy
    );
    assert_eq!(
        era(bare, &[("mcp-protocol-version", "2026-07-28")]),
        Era::Modern
    );
    assert_eq!(era(bare, &[("mcp-protocol-version", "junk")]), Era::Legacy);
    assert_eq!(
        (Era::of_error_code(-32020), Era::of_error_code(-32601)),
        (Some(Era::Modern), None)
    );
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
        verdict(
            &call(),
            &[GOOD[0], GOOD[1], ("mcp-name", "=?base64?!?=")],
            &[],
        ),
        verdict(
            &old,
            &[("mcp-protocol-version", "2027-01-01"), GOOD[1], GOOD[2]],
            all,
        ),
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
fn a_modern_client_sends_no_responses_and_notifications_need_only_a_version() {
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert!(matches!(
        modern(response, &GOOD, &Revision::ALL),
        Err(Rejection::NotAllowed(_))
    ));
    let note = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
    assert_eq!(
        modern(note, &GOOD[..1], &Revision::ALL),
        Ok(Revision::V2026_07_28)
    );
    assert!(matches!(
        modern(note, &GOOD[..2], &Revision::ALL),
        Err(Rejection::HeaderMismatch(_))
    ));
    assert!(matches!(
        modern(note, &[], &Revision::ALL),
        Err(Rejection::HeaderMissing(_))
    ));
}

#[test]
fn a_refusal_writes_its_body() {
    let mut out = Vec::new();
    let id = Id::from(1_i64);
    let refused = modern(&call(), &GOOD, &[Revision::V2025_11_25]).unwrap_err();
    refused.write_body(Some(&id), &mut out);
    let required =
        serde_json::from_str(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#).unwrap();
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
        (
            Rejection::Unreadable(ParseError::NotUtf8 { at: 0 }),
            400,
            -32700,
        ),
    ];
    for (rejection, status, code) in cases {
        assert_eq!(
            (rejection.status(), rejection.code()),
            (status, code),
            "{rejection}"
        );
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
    assert_eq!(
        check(&[], Some(Revision::V2025_11_25)),
        Ok((Revision::V2025_11_25, None))
    );
    let good = [
        ("MCP-Protocol-Version", " 2025-06-18 "),
        ("MCP-Session-Id", "a!~"),
    ];
    assert_eq!(
        check(&good, None),
        Ok((Revision::V2025_06_18, Some("a!~".to_owned())))
    );
    for version in ["2026-07-28", "junk", "", "2025-06-1\u{e9}"] {
        assert_eq!(
            check(&[("mcp-protocol-version", version)], None),
            Err(Rejection::InvalidVersionHeader),
            "{version}"
        );
    }
    for session in ["", "a b", "\u{e9}", "a\u{7f}"] {
        assert_eq!(
            check(&[("mcp-session-id", session)], None),
            Err(Rejection::SessionMissing),
            "{session}"
        );
    }
    assert_eq!(
        check(&[good[1], good[1]], None),
        Err(Rejection::SessionMissing)
    );
    assert!("x".repeat(1025).parse::<SessionId>().is_err());
    assert_eq!(
        format!("{:?}", "secret".parse::<SessionId>().unwrap()),
        "SessionId(6 characters)"
    );
}

#[test]
fn a_client_sends_what_its_revision_demands() {
    let (call, schema) = (
        call(),
        r#"{"properties":{"who":{"type":"string","x-mcp-header":"Who"}}}"#,
    );
    let annotations = ParamHeader::of_schema(schema).unwrap();
    let session: SessionId = "s".parse().unwrap();
    let mut sent = Vec::new();
    for body in [
        call.as_str(),
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#,
    ] {
        let message = Message::parse(body.as_bytes()).unwrap();
        for revision in Revision::ALL {
            let outgoing = Outgoing {
                message: &message,
                revision,
                session: Some(&session),
                annotations: &annotations,
            };
            let headers = client_headers(outgoing).unwrap();
            let own = headers[2..]
                .iter()
                .map(|(name, value)| format!("{name}: {value}"))
                .collect::<Vec<_>>();
            sent.push(format!(
                "{} {revision} {}",
                message.method().unwrap(),
                own.join(", ")
            ));
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

#[test]
fn the_specifications_examples_of_encoding() {
    let cases = [
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ];
    for (text, encoded) in cases {
        assert_eq!(encode_value(text), encoded);
        assert_eq!(decode_value(encoded.as_bytes()).as_deref(), Ok(text));
    }
    assert_eq!(decode_value(b"a\x00"), Err(ValueError::Characters));
    assert_eq!(decode_value("é".as_bytes()), Err(ValueError::Characters));
    assert_eq!(decode_value(b"=?base64?a?="), Err(ValueError::Base64));
    assert_eq!(decode_value(b"=?base64?/w==?="), Err(ValueError::Utf8));
    assert_eq!(decode_value(b"=?BASE64?x?=").as_deref(), Ok("=?BASE64?x?="));
}

proptest! {
    #[test]
    fn header_values_survive_a_round_trip(text in any::<String>()) {
        let encoded = encode_value(&text);
        prop_assert!(encoded.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
        prop_assert_eq!(encoded.trim(), encoded.as_ref());
        let decoded = decode_value(encoded.as_bytes()).unwrap();
        prop_assert_eq!(decoded.as_ref(), text.as_str());
    }

    #[test]
    fn challenges_survive_a_round_trip(
        params in proptest::collection::vec(("[a-z_]{1,8}", "[^\\p{Cc}]{0,12}"), 1..4),
        other in "[A-Z][a-z]{1,6}",
    ) {
        let mut challenge = Challenge::bearer();
        for (name, value) in &params {
            challenge = challenge.with(name, value);
        }
        let second = Challenge { scheme: other, ..Challenge::default() };
        let header = format!("{challenge}, {second}");
        prop_assert_eq!(Challenge::parse_all(&header), Ok(vec![challenge, second]));
    }

    #[test]
    fn no_challenge_panics(header in any::<String>()) {
        let _ = Challenge::parse_all(&header);
    }
}

#[test]
fn annotations_are_found_by_properties_alone() {
    let schema = r#"{"type":"object","properties":{
        "a":{"type":"string","x-mcp-header":"A","default":{"x-mcp-header":"data"}},
        "b":{"type":"object","properties":{"c":{"type":"integer","x-mcp-header":"B-C"}}},
        "x-mcp-header":{"type":"string"}}}"#;
    let found = ParamHeader::of_schema(schema).unwrap();
    let path = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        found,
        [
            ParamHeader {
                name: "A".to_owned(),
                path: path(&["a"]),
                kind: ParamKind::String
            },
            ParamHeader {
                name: "B-C".to_owned(),
                path: path(&["b", "c"]),
                kind: ParamKind::Integer
            },
        ]
    );
    let error = |properties: &str| {
        ParamHeader::of_schema(&format!(r#"{{"properties":{{{properties}}}}}"#)).unwrap_err()
    };
    use AnnotationError as E;
    assert!(matches!(
        error(r#""a":{"type":"string","x-mcp-header":""}"#),
        E::NotAToken(_)
    ));
    assert!(matches!(
        error(r#""a":{"type":"string","x-mcp-header":"a b"}"#),
        E::NotAToken(_)
    ));
    assert!(matches!(
        error(r#""a":{"type":"string","x-mcp-header":7}"#),
        E::NotAToken(_)
    ));
    assert!(matches!(
        error(r#""a":{"type":"number","x-mcp-header":"A"}"#),
        E::NotPrimitive(_)
    ));
    assert!(matches!(
        error(r#""a":{"items":{"type":"string","x-mcp-header":"A"}}"#),
        E::Unreachable(_)
    ));
    assert!(matches!(
        error(r#""a":{"anyOf":[{"type":"string","x-mcp-\u0068eader":"A"}]}"#),
        E::Unreachable(_)
    ));
    let twice =
        r#""a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}"#;
    assert!(matches!(error(twice), E::Duplicate(_)));
    let root = r#"{"type":"string","x-mcp-header":"A"}"#;
    assert!(matches!(
        ParamHeader::of_schema(root),
        Err(E::Unreachable(_))
    ));
    assert_eq!(
        ParamHeader::of_schema(r#"["x-mcp-header"]"#),
        Err(E::NoSchema)
    );
}

#[test]
fn argument_headers_must_say_what_the_arguments_say() {
    let schema = r#"{"properties":{"s":{"type":"string","x-mcp-header":"S"},"n":{"type":"integer","x-mcp-header":"N"}}}"#;
    let annotations = ParamHeader::of_schema(schema).unwrap();
    let check = |arguments: &str, pairs: &[(&str, &str)]| {
        let raw = serde_json::from_str(arguments).unwrap();
        check_params(&headers(pairs), &annotations, Some(raw))
    };
    assert_eq!(
        check(
            r#"{"s":"é","n":42}"#,
            &[("Mcp-Param-s", "=?base64?w6k=?="), ("mcp-param-N", "42.0")]
        ),
        Ok(())
    );
    assert_eq!(check(r#"{"s":null}"#, &[]), Ok(()));
    assert_eq!(
        check(
            r#"{"s":"4"}"#,
            &[("mcp-param-s", "4"), ("mcp-param-other", "x")]
        ),
        Ok(())
    );
    assert!(matches!(
        check(r#"{"s":"4"}"#, &[("mcp-param-s", "4.0")]),
        Err(Rejection::HeaderMismatch(_))
    ));
    assert!(matches!(
        check(r#"{"n":42}"#, &[]),
        Err(Rejection::HeaderMissing(_))
    ));
    assert!(matches!(
        check(r#"{"n":42}"#, &[("mcp-param-n", "43")]),
        Err(Rejection::HeaderMismatch(_))
    ));
    assert!(matches!(
        check(r"{}", &[("mcp-param-n", "43")]),
        Err(Rejection::HeaderMismatch(_))
    ));
    let twice = [("mcp-param-n", "42"), ("MCP-Param-N", "42")];
    assert!(matches!(
        check(r#"{"n":42}"#, &twice),
        Err(Rejection::HeaderMalformed(_))
    ));
    // Past 2^53 nothing is mirrored.
    assert_eq!(check(r#"{"n":9007199254740993}"#, &[]), Ok(()));
}

#[test]
fn accept_is_read_by_the_most_specific_range() {
    let accept = |value: &str| {
        let accept = Accept::parse(value.as_bytes());
        (accept.json(), accept.event_stream())
    };
    assert_eq!(accept("application/json, text/event-stream"), (true, true));
    assert_eq!(accept("*/*"), (true, true));
    assert_eq!(accept("Application/JSON;charset=utf-8"), (true, false));
    assert_eq!(accept("text/*;q=0.5"), (false, true));
    assert_eq!(accept("text/event-stream;q=0, */*"), (true, false));
    assert_eq!(accept("*/*;q=0.000,application/json; q=0.1"), (true, false));
    assert_eq!(accept("application/jsonp,,;"), (false, false));
    let both = headers(&[
        ("accept", "application/json"),
        ("Accept", "text/event-stream"),
    ])
    .accept
    .unwrap();
    assert!(both.json() && both.event_stream());
}

#[test]
fn challenges_are_read_as_servers_send_them() {
    let header = r#"Bearer error="insufficient_scope", scope="a b" ,resource_metadata="https://x/\"y\"", Basic realm=z, Negotiate abc==, Digest"#;
    let all = Challenge::parse_all(header).unwrap();
    assert_eq!(all.len(), 4);
    let bearer = &all[0];
    assert!(bearer.is_bearer());
    assert_eq!(
        (bearer.error(), bearer.resource_metadata()),
        (Some("insufficient_scope"), Some("https://x/\"y\""))
    );
    assert_eq!(bearer.scopes().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(all[1].param("REALM"), Some("z"));
    assert_eq!(all[2].token68.as_deref(), Some("abc=="));
    assert_eq!(
        all[3],
        Challenge {
            scheme: "Digest".to_owned(),
            ..Challenge::default()
        }
    );
    // Without commas between the parameters, and with one at the end.
    let loose = Challenge::parse_all("bearer a=1 b = \"2\",").unwrap();
    assert_eq!(
        (loose[0].param("a"), loose[0].param("b")),
        (Some("1"), Some("2"))
    );
    assert_eq!(Challenge::parse_all(" , "), Ok(Vec::new()));
    for bad in ["=", "Bearer a=\"x", "Bearer a=\"x\", b=,", "é", "Bearer a=b;c"] {
        assert!(
            matches!(
                Challenge::parse_all(bad),
                Err(ChallengeError::Malformed { .. })
            ),
            "{bad}"
        );
    }
    assert_eq!(
        Challenge::parse_all(&"a".repeat(20_000)),
        Err(ChallengeError::TooLong)
    );
    let written = Challenge::bearer()
        .with("scope", "a\r\nb")
        .with("no name", "x")
        .with("q", "\\\"");
    assert_eq!(written.to_string(), r#"Bearer scope="a  b", q="\\\"""#);
}

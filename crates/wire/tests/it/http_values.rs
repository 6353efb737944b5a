use mcpace_wire::http::{
    Accept, AnnotationError, Challenge, ChallengeError, MediaType, ParamHeader, ParamKind, Rejection, RequestHeaders,
    ValueError, check_params, decode_value, encode_value,
};
use proptest::prelude::*;

fn headers<'a>(pairs: &[(&'a str, &'a str)]) -> RequestHeaders<'a> {
    RequestHeaders::of(pairs.iter().map(|(name, value)| (*name, value.as_bytes())))
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

#[test]
fn a_body_is_known_by_its_type_whatever_its_spelling_and_parameters() {
    for (text, expected) in [
        ("application/json", MediaType::Json),
        (" Application/JSON ; charset=utf-8", MediaType::Json),
        ("application/problem+json", MediaType::SpecialJson),
        ("TEXT/Event-Stream;charset=utf-8", MediaType::EventStream),
        ("application/x-www-form-urlencoded;x", MediaType::Form),
        ("application/jsonp", MediaType::Other),
        ("", MediaType::Other),
    ] {
        assert_eq!(MediaType::of(text), expected, "{text:?}");
    }
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
            ParamHeader { name: "A".to_owned(), path: path(&["a"]), kind: ParamKind::String },
            ParamHeader { name: "B-C".to_owned(), path: path(&["b", "c"]), kind: ParamKind::Integer },
        ]
    );
    let error =
        |properties: &str| ParamHeader::of_schema(&format!(r#"{{"properties":{{{properties}}}}}"#)).unwrap_err();
    use AnnotationError as E;
    assert!(matches!(error(r#""a":{"type":"string","x-mcp-header":""}"#), E::NotAToken(_)));
    assert!(matches!(error(r#""a":{"type":"string","x-mcp-header":"a b"}"#), E::NotAToken(_)));
    assert!(matches!(error(r#""a":{"type":"string","x-mcp-header":7}"#), E::NotAToken(_)));
    assert!(matches!(error(r#""a":{"type":"number","x-mcp-header":"A"}"#), E::NotPrimitive(_)));
    assert!(matches!(error(r#""a":{"items":{"type":"string","x-mcp-header":"A"}}"#), E::Unreachable(_)));
    assert!(matches!(error(r#""a":{"anyOf":[{"type":"string","x-mcp-\u0068eader":"A"}]}"#), E::Unreachable(_)));
    let twice = r#""a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}"#;
    assert!(matches!(error(twice), E::Duplicate(_)));
    let root = r#"{"type":"string","x-mcp-header":"A"}"#;
    assert!(matches!(ParamHeader::of_schema(root), Err(E::Unreachable(_))));
    assert_eq!(ParamHeader::of_schema(r#"["x-mcp-header"]"#), Err(E::NoSchema));
}

#[test]
fn argument_headers_must_say_what_the_arguments_say() {
    let schema =
        r#"{"properties":{"s":{"type":"string","x-mcp-header":"S"},"n":{"type":"integer","x-mcp-header":"N"}}}"#;
    let annotations = ParamHeader::of_schema(schema).unwrap();
    let check = |arguments: &str, pairs: &[(&str, &str)]| {
        let raw = serde_json::from_str(arguments).unwrap();
        check_params(&headers(pairs), &annotations, Some(raw))
    };
    assert_eq!(check(r#"{"s":"é","n":42}"#, &[("Mcp-Param-s", "=?base64?w6k=?="), ("mcp-param-N", "42.0")]), Ok(()));
    assert_eq!(check(r#"{"s":null}"#, &[]), Ok(()));
    assert_eq!(check(r#"{"s":"4"}"#, &[("mcp-param-s", "4"), ("mcp-param-other", "x")]), Ok(()));
    assert!(matches!(check(r#"{"s":"4"}"#, &[("mcp-param-s", "4.0")]), Err(Rejection::HeaderMismatch(_))));
    assert!(matches!(check(r#"{"n":42}"#, &[]), Err(Rejection::HeaderMissing(_))));
    assert!(matches!(check(r#"{"n":42}"#, &[("mcp-param-n", "43")]), Err(Rejection::HeaderMismatch(_))));
    assert!(matches!(check(r"{}", &[("mcp-param-n", "43")]), Err(Rejection::HeaderMismatch(_))));
    let twice = [("mcp-param-n", "42"), ("MCP-Param-N", "42")];
    assert!(matches!(check(r#"{"n":42}"#, &twice), Err(Rejection::HeaderMalformed(_))));
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
    let both = headers(&[("accept", "application/json"), ("Accept", "text/event-stream")]).accept.unwrap();
    assert!(both.json() && both.event_stream());
}

#[test]
fn challenges_are_read_as_servers_send_them() {
    let header = r#"Bearer error="insufficient_scope", scope="a b" ,resource_metadata="https://x/\"y\"", Basic realm=z, Negotiate abc==, Digest"#;
    let all = Challenge::parse_all(header).unwrap();
    assert_eq!(all.len(), 4);
    let bearer = &all[0];
    assert!(bearer.is_bearer());
    assert_eq!((bearer.error(), bearer.resource_metadata()), (Some("insufficient_scope"), Some("https://x/\"y\"")));
    assert_eq!(bearer.scopes().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(all[1].param("REALM"), Some("z"));
    assert_eq!(all[2].token68.as_deref(), Some("abc=="));
    assert_eq!(all[3], Challenge { scheme: "Digest".to_owned(), ..Challenge::default() });
    // Without commas between the parameters, and with one at the end.
    let loose = Challenge::parse_all("bearer a=1 b = \"2\",").unwrap();
    assert_eq!((loose[0].param("a"), loose[0].param("b")), (Some("1"), Some("2")));
    assert_eq!(Challenge::parse_all(" , "), Ok(Vec::new()));
    for bad in ["=", "Bearer a=\"x", "Bearer a=\"x\", b=,", "é", "Bearer a=b;c"] {
        assert!(matches!(Challenge::parse_all(bad), Err(ChallengeError::Malformed { .. })), "{bad}");
    }
    assert_eq!(Challenge::parse_all(&"a".repeat(20_000)), Err(ChallengeError::TooLong));
    let written = Challenge::bearer().with("scope", "a\r\nb").with("no name", "x").with("q", "\\\"");
    assert_eq!(written.to_string(), r#"Bearer scope="a  b", q="\\\"""#);
}

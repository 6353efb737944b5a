use mcpace_wire::jsonrpc::{
    Id, Message, Outcome, ParseError, Payload, code, write_error, write_notification, write_request, write_result,
};
use proptest::prelude::*;
use serde_json::json;

fn single(text: &str) -> Message<'_> {
    match Payload::parse(text.as_bytes()) {
        Ok(Payload::Single(message)) => message,
        other => panic!("{text}: {other:?}"),
    }
}

fn error(text: &str) -> ParseError {
    match Payload::parse(text.as_bytes()) {
        Err(error) => error,
        Ok(payload) => panic!("{text}: {payload:?}"),
    }
}

#[test]
fn a_request_borrows_its_parts() {
    let text = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{ "a" : [1] }}"#;
    let Message::Request(request) = single(text) else { panic!() };
    assert_eq!(request.id, Id::Integer(7));
    assert!(matches!(request.method, std::borrow::Cow::Borrowed("tools/call")));
    let params = request.params.unwrap().get();
    assert_eq!(params, r#"{ "a" : [1] }"#);
    assert!(text.as_bytes().as_ptr_range().contains(&params.as_ptr()));
}

#[test]
fn unknown_members_are_kept_in_order_and_written_again() {
    let text = r#"{"jsonrpc":"2.0","id":"a","method":"m","params":{},"z":1,"y":{"x":null},"z":2}"#;
    let message = single(text);
    assert_eq!(String::from_utf8(message.to_vec()).unwrap(), text);
    let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m","data":[],"more":0},"too":1}"#;
    assert_eq!(String::from_utf8(single(text).to_vec()).unwrap(), text);
}

#[test]
fn ids_keep_their_token() {
    for token in ["0", "-1", "9223372036854775807", "9223372036854775808", "1.0", "-0", "1e3", r#""a\"b""#, r#""""#] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{token},"method":"m"}}"#);
        let message = single(&text);
        assert_eq!(message.id().unwrap().to_string(), token);
        assert_eq!(String::from_utf8(message.to_vec()).unwrap(), text);
        assert_eq!(serde_json::to_string(message.id().unwrap()).unwrap(), token);
        assert_eq!(serde_json::from_str::<Id<'_>>(token).unwrap(), *message.id().unwrap());
    }
    assert_eq!(Id::from(u64::MAX).to_string(), u64::MAX.to_string());
    assert_ne!(Id::from(1_i64), Id::from("1"));
    let escaped = single(r#"{"jsonrpc":"2.0","id":"\u0061","method":"m"}"#).id().unwrap().clone().into_owned();
    assert_eq!(escaped, Id::from("a"));
}

#[test]
fn escaped_names_and_methods_are_read_as_what_they_mean() {
    let message = single(r#"{"\u006asonrpc":"2\u002e0","i\u0064":1,"method":"tools\/call"}"#);
    assert_eq!(message.method(), Some("tools/call"));
    assert_eq!(message.id(), Some(&Id::Integer(1)));
}

#[test]
fn answers_are_told_apart() {
    let Message::Response(ok) = single(r#"{"jsonrpc":"2.0","id":1,"result":null,"error":null}"#) else { panic!() };
    assert!(matches!(ok.outcome, Outcome::Result(result) if result.get() == "null"));
    let Message::Response(bad) = single(r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}"#) else { panic!() };
    assert_eq!(bad.id, None);
    assert!(matches!(bad.outcome, Outcome::Error(error) if error.code == code::PARSE_ERROR && error.message == "m"));
    assert!(matches!(single(r#"{"jsonrpc":"2.0","method":"m","params":null}"#), Message::Notification(_)));
}

#[test]
fn each_error_is_reached_and_has_its_code() {
    use ParseError as E;
    let not_json = |text: &str| assert!(matches!(error(text), E::NotJson { .. }), "{text}");
    for text in
        ["", "{", "nul", "{\"a\":1,}", "{} {}", "[] x", "[{}", "{\"jsonrpc\":\"2.0\u{1}\"}", "\u{feff}{}", "{'a':1}"]
    {
        not_json(text);
    }
    assert_eq!(error("").code(), code::PARSE_ERROR);
    assert_eq!(Payload::parse(b"{\"a\":\"\xff\"}").unwrap_err(), E::NotUtf8 { at: 6 });
    for text in ["1", "\"a\"", "null", "true"] {
        assert_eq!(error(text), E::NotAnObject, "{text}");
    }
    let cases = [
        (r#"{}"#, E::NotVersion2),
        (r#"{"jsonrpc":2.0,"method":"m"}"#, E::NotVersion2),
        (r#"{"jsonrpc":"1.0","method":"m"}"#, E::NotVersion2),
        (r#"{"jsonrpc":"2.0","method":"m","method":"n"}"#, E::DuplicateMember("method")),
        (r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"n"}"#, E::DuplicateMember("id")),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"code":2,"message":""}}"#, E::DuplicateMember("code")),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, E::NullId),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"m"}"#, E::BadId),
        (r#"{"jsonrpc":"2.0","id":true,"result":1}"#, E::BadId),
        (r#"{"jsonrpc":"2.0","id":"\ud800","method":"m"}"#, E::BadId),
        (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, E::BadMethod),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":"p"}"#, E::BadParams),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"m"}}"#, E::BadError),
        (r#"{"jsonrpc":"2.0","id":1,"error":"e"}"#, E::BadError),
        (r#"{"jsonrpc":"2.0","id":1}"#, E::NoKind),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#, E::NoKind),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#, E::NoKind),
        (r#"{"jsonrpc":"2.0","result":{}}"#, E::ResultWithoutId),
        (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, E::ResultWithoutId),
        ("[]", E::EmptyBatch),
        ("[1]", E::Member { index: 0, error: Box::new(E::NotAnObject) }),
    ];
    for (text, expected) in cases {
        assert_eq!(error(text), expected, "{text}");
        assert_eq!(expected.code(), code::INVALID_REQUEST);
    }
}

#[test]
fn batches_have_a_limit() {
    let one = r#"{"jsonrpc":"2.0","method":"m"}"#;
    let text = format!(" [{one}, {one},{one}]");
    let payload = Payload::parse_with_limit(text.as_bytes(), 3).unwrap();
    assert!(payload.is_batch() && payload.messages().len() == 3);
    assert_eq!(String::from_utf8(payload.to_vec()).unwrap(), format!("[{one},{one},{one}]"));
    let error = Payload::parse_with_limit(text.as_bytes(), 2).unwrap_err();
    assert_eq!(error, ParseError::BatchTooLong { limit: 2 });
    assert_eq!(Message::parse(text.as_bytes()).unwrap_err(), ParseError::NotAnObject);
}

#[test]
fn depth_costs_no_stack() {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    for member in ["params", "unknown"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","{member}":{deep}}}"#);
        assert!(matches!(single(&text), Message::Request(_)));
    }
    assert!(matches!(error(&deep), ParseError::Member { index: 0, .. }));
    assert!(matches!(error(&"[".repeat(1_000_000)), ParseError::NotJson { .. }));
    let params = format!(r#"{{"taskId":"t","unknown":{deep}}}"#);
    assert!(serde_json::from_str::<mcpace_wire::mcp::TaskIdParams>(&params).is_err());
}

#[test]
fn messages_are_written_straight_into_a_buffer() {
    let mut out = Vec::new();
    let id = Id::from("q\"\n\u{1}é");
    write_request(&mut out, &id, "tools/call", Some(&json!({"a": 1}))).unwrap();
    out.push(b'\n');
    write_notification(&mut out, "notifications/x", None::<&()>).unwrap();
    out.push(b'\n');
    write_result(&mut out, &Id::from(i64::MIN), &json!([])).unwrap();
    out.push(b'\n');
    write_error(&mut out, None, -32700, "no\tJSON \\", Some(&json!({"at": 3}))).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r#"
    {"jsonrpc":"2.0","id":"q\"\n\u0001é","method":"tools/call","params":{"a":1}}
    {"jsonrpc":"2.0","method":"notifications/x"}
    {"jsonrpc":"2.0","id":-9223372036854775808,"result":[]}
    {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no\tJSON \\","data":{"at":3}}}
    "#);
}

#[test]
fn what_cannot_be_written_leaves_the_buffer_as_it_was() {
    let unwritable = std::collections::BTreeMap::from([(vec![1_u8], 1)]);
    let mut out = b"before".to_vec();
    assert!(write_result(&mut out, &Id::from(1_i64), &unwritable).is_err());
    assert_eq!(out, b"before");
}

prop_compose! {
    fn any_text()(text in ".{0,20}") -> String { text }
}

proptest! {
    #[test]
    fn requests_survive_a_round_trip(id in any_text(), number: i64, method in any_text(), key in any_text(), value in any_text()) {
        let params = json!({key: value});
        for id in [Id::from(id.as_str()), Id::from(number)] {
            let mut out = Vec::new();
            write_request(&mut out, &id, &method, Some(&params)).unwrap();
            let Message::Request(read) = Message::parse(&out).unwrap() else { panic!() };
            prop_assert_eq!(&read.id, &id);
            prop_assert_eq!(&read.method, &method);
            let read_params: serde_json::Value = serde_json::from_str(read.params.unwrap().get()).unwrap();
            prop_assert_eq!(&read_params, &params);
            prop_assert_eq!(read.to_vec(), out);
        }
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Payload::parse(&bytes);
    }

    #[test]
    fn a_cut_message_is_no_json(cut in 0_usize..60) {
        let text = r#"{"jsonrpc":"2.0","id":123,"method":"m","params":{"a":[1,2]}}"#;
        let is_not_json = matches!(Payload::parse(&text.as_bytes()[..cut]), Err(ParseError::NotJson { .. }));
        prop_assert!(is_not_json);
    }
}

#[test]
fn depth_is_counted_outside_strings() {
    use mcpace_wire::jsonrpc::is_deeper_than;
    let depth = |text: &str| (0..).find(|&limit| !is_deeper_than(text.as_bytes(), limit)).unwrap();
    for (text, expected) in [
        ("1", 0),
        ("{}", 1),
        ("[[],[],[[]]]", 3),
        (r#"{"a":[{"b":1}],"c":[]}"#, 3),
        (r#"["[[[[", "]]]", "\\", "\"[[["]"#, 1),
        ("]]]][[", 2),
    ] {
        assert_eq!(depth(text), expected, "{text}");
    }
}

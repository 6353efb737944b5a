//! Headers: no panic, and mcpace's server accepts the headers of mcpace's client.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpace_wire::Revision;
use mcpace_wire::http::{
    Era, Outgoing, ParamHeader, RequestHeaders, check_legacy, check_modern, check_params, client_headers,
};
use mcpace_wire::jsonrpc::Message;
use mcpace_wire::mcp::ParamsOutline;

// Lines: the body, a tool's input schema, then headers as `name: value`.
fuzz_target!(|input: &[u8]| {
    let mut lines = input.split(|&byte| byte == b'\n');
    let (Some(body), Some(schema)) = (lines.next(), lines.next()) else { return };
    let fields: Vec<(&str, &[u8])> = lines.filter_map(field).collect();
    let hostile = RequestHeaders::of(fields);
    let _ = check_legacy(&hostile, None, &Revision::ALL);
    let Ok(message) = Message::parse(body) else { return };
    let Ok(outline) = ParamsOutline::parse(message.params()) else { return };
    let _ = Era::of(&hostile, &outline);
    let _ = check_modern(&hostile, &message, &outline, &Revision::ALL);
    let annotations =
        std::str::from_utf8(schema).ok().and_then(|text| ParamHeader::of_schema(text).ok()).unwrap_or_default();
    let _ = check_params(&hostile, &annotations, outline.arguments);

    let outgoing = Outgoing { message: &message, revision: Revision::LATEST, session: None, annotations: &annotations };
    let Ok(sent) = client_headers(outgoing) else { return };
    let honest = RequestHeaders::of(sent.iter().map(|(name, value)| (name.as_ref(), value.as_bytes())));
    if outline.arguments.is_some() && honest.method.ascii().is_some() {
        check_params(&honest, &annotations, outline.arguments).expect("a client's own headers agree with its body");
    }
});

fn field(line: &[u8]) -> Option<(&str, &[u8])> {
    let at = line.iter().position(|&byte| byte == b':')?;
    Some((std::str::from_utf8(&line[..at]).ok()?, &line[at + 1..]))
}

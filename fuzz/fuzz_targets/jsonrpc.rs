//! JSON-RPC: no panic, and writing and reading a second time changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpace_wire::jsonrpc::{Message, Payload};
use mcpace_wire::mcp::{CallToolResult, InitializeParams, ParamsOutline};

fuzz_target!(|text: &[u8]| {
    let Ok(payload) = Payload::parse(text) else { return };
    let mut written = Vec::new();
    payload.write(&mut written);
    let again = Payload::parse(&written).expect("what was parsed and written parses");
    let mut twice = Vec::new();
    again.write(&mut twice);
    assert_eq!(written, twice);
    for message in payload.messages() {
        let _ = ParamsOutline::parse(message.params());
        let raw = match message {
            Message::Response(response) => match &response.outcome {
                mcpace_wire::jsonrpc::Outcome::Result(result) => *result,
                mcpace_wire::jsonrpc::Outcome::Error(_) => continue,
            },
            _ => match message.params() {
                Some(params) => params,
                None => continue,
            },
        };
        if let Ok(result) = serde_json::from_str::<CallToolResult>(raw.get()) {
            let text = serde_json::to_string(&result).expect("a result is written");
            serde_json::from_str::<CallToolResult>(&text).expect("a written result is read");
        }
        let _ = serde_json::from_str::<InitializeParams>(raw.get());
    }
});

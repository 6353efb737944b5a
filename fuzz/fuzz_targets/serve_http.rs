//! HTTP: any bytes on a connection in memory end in replies and a close; the endpoint serves the next connection after
//! it.
#![no_main]

mod serving;
#[path = "serving/http.rs"]
mod talking;

use libfuzzer_sys::fuzz_target;
use mcpace_serve::http::{Endpoint, Limits, Options};
use serving::{runtime, server};
use talking::exchange;

const GOOD: &[u8] = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\ncontent-type: application/json\r\n\
mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: echo\r\nconnection: close\r\ncontent-length: 212\r\n\r\n\
{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"text\":\"well\"},\
\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}}}";

fuzz_target!(|input: &[u8]| {
    let Some((&pieces, bytes)) = input.split_first() else { return };
    let limits = Limits { body: 4096, head: 8192, sessions: 4, ..Limits::default() };
    let options = Options { limits, legacy_sse: pieces & 1 == 1, stateless: pieces & 2 == 2, ..Options::default() };
    let good = runtime(async {
        let endpoint = Endpoint::new(server(), options).expect("the options are good");
        // The subject of the test. The reply is read and may be anything.
        exchange(&endpoint, bytes, usize::from(pieces), true).await;
        exchange(&endpoint, GOOD, GOOD.len(), false).await
    });
    let good = String::from_utf8_lossy(&good);
    assert!(good.starts_with("HTTP/1.1 200") && good.contains("\"well\""), "{good}");
});

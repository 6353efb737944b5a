//! `http.txt`: whole requests, byte by byte. Half of what is wrong with HTTP never becomes a request, so this speaks to a
//! socket and knows no HTTP library.

use std::time::Duration;

use mcpace_serve::http;
use mcpace_wire::Revision;

use super::messages::{exchange, good};
use super::text::{Entry, expand, read};
use crate::fixture;
use crate::peer::{Peer, limited};

const HEADERS: &str = "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: echo";

/// The headers of a good request beside those that all requests have.
const MODERN: &str = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: echo\r\n";

/// The bytes to send, and our side's next action.
struct Bytes {
    bytes: Vec<u8>,
    then: Then,
}

#[derive(Clone, Copy, PartialEq)]
enum Then {
    Read,
    /// Our side ends.
    Finish,
}

fn bytes(entry: &Entry, host: &str) -> Bytes {
    let (head, body) = entry.request.split_once("\n\n").unwrap_or((&entry.request, ""));
    let has_end = entry.request.contains("\n\n");
    let (body, then) = match body.strip_suffix("<finish>") {
        Some(body) => (body, Then::Finish),
        None => (body.strip_suffix("<stall>").unwrap_or(body), Then::Read),
    };
    let (head, then) = match head.strip_suffix("<finish>") {
        Some(head) => (head, Then::Finish),
        None => (head.strip_suffix("<stall>").unwrap_or(head), then),
    };
    let call = good(Revision::V2026_07_28);
    let body = expand(body, &[("call", call)]);
    let names = [("host", host.to_owned()), ("length", body.len().to_string()), ("headers", HEADERS.to_owned())];
    let lines =
        expand(&head.replace('\n', "\\r\\n"), &names.map(|(name, value)| (name, value.replace("\r\n", "\\r\\n"))));
    let mut bytes = lines;
    if has_end {
        bytes.extend_from_slice(b"\r\n\r\n");
    }
    bytes.extend_from_slice(&body);
    Bytes { bytes, then }
}

fn limits(entry: &Entry) -> http::Limits {
    let mut limits = http::Limits::default();
    for word in entry.setting("limits").unwrap_or_default().split_whitespace() {
        let (name, value) = word.split_once('=').expect("a limit has a value");
        let time = || Duration::from_millis(value.strip_suffix("ms").expect("milliseconds").parse().unwrap());
        match name {
            "head_time" => limits.head_time = time(),
            "body_time" => limits.body_time = time(),
            "connection_idle" => limits.connection_idle = time(),
            "body" => limits.body = value.parse().unwrap(),
            _ => panic!("no such limit: {name}"),
        }
    }
    limits
}

/// The outcome: status and code, and whether the connection was closed after that.
async fn outcome(peer: &mut Peer) -> Result<String, String> {
    let head = match limited("a reply or the end", peer.head()).await? {
        Ok(Some(head)) => head,
        Ok(None) => return Ok("closed".to_owned()),
        // HTTP/2's frames have no head that this could find.
        Err(_) => return Ok("frames closed".to_owned()),
    };
    let body = limited("a body", peer.rest()).await??;
    let json: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut words = vec![head.status.to_string()];
    if let Some(code) = json.pointer("/error/code") {
        words.push(code.to_string());
    } else if json.get("result").is_some() {
        words.push("result".to_owned());
    }
    if peer.closing {
        if !limited("the end", peer.is_closed()).await? {
            return Err("said that it closes, and went on".to_owned());
        }
        words.push("closed".to_owned());
    }
    Ok(words.join(" "))
}

async fn is_well(peer: &mut Peer, host: &str) -> Result<(), String> {
    let (head, body) = exchange(peer, host, MODERN, good(Revision::V2026_07_28).as_bytes()).await?;
    let body = String::from_utf8_lossy(&body);
    if head.status == 200 && body.contains("well") { Ok(()) } else { Err(format!("{} {body}", head.status)) }
}

async fn play(entry: &Entry) -> Result<(), String> {
    let one = std::num::NonZeroUsize::new(1);
    let address = ([127, 0, 0, 1], 0).into();
    // One worker, so that whoever stalled it would stall the others too.
    let options = http::Options { address, workers: one, limits: limits(entry), ..http::Options::default() };
    let running = http::serve(fixture::server(""), options).map_err(|error| error.to_string())?;
    let host = running.address().to_string();
    let mut other = Peer::connect(running.address()).await?;
    let mut bad = Peer::connect(running.address()).await?;
    let Bytes { bytes, then } = bytes(entry, &host);
    // The server may close before it has read all of this.
    limited("room to write", bad.send(&bytes)).await?;
    is_well(&mut other, &host).await.map_err(|what| format!("another connection: {what}"))?;
    if then == Then::Finish {
        bad.finish().await;
    }
    let came = outcome(&mut bad).await?;
    let wanted = entry.setting("expect").ok_or("nothing is expected")?;
    if wanted != came {
        return Err(format!("expected {wanted}, came {came}"));
    }
    let mut next = Peer::connect(running.address()).await?;
    is_well(&mut next, &host).await.map_err(|what| format!("the next request: {what}"))
}

#[tokio::test]
async fn no_request_over_http_does_harm() {
    let mut differences = Vec::new();
    for entry in read("http.txt") {
        if let Err(what) = play(&entry).await {
            differences.push(format!("{}: {what}", entry.title));
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

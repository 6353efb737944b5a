//! `messages.txt`, over stdio and over HTTP, in every revision.

use mcpace_serve::{http, stdio};
use mcpace_wire::Revision;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::text::{Entry, expand, read};
use crate::fixture;
use crate::peer::{Peer, limited};

/// The `_meta` that 2026-07-28 requires in `params`.
pub(super) const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn meta(revision: Revision) -> String {
    if revision.is_modern() { META.to_owned() } else { r#""_meta":{}"#.to_owned() }
}

fn initialize(revision: Revision) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"corpus","version":"1"}}}}}}"#
    )
}

/// A good request, to see that the server is well.
pub(super) fn good(revision: Revision) -> String {
    let meta = meta(revision);
    format!(
        r#"{{"jsonrpc":"2.0","id":"good","method":"tools/call","params":{{"name":"echo","arguments":{{"text":"well"}},{meta}}}}}"#
    )
}

/// The outcome that an entry expects in one place.
#[derive(Debug, PartialEq)]
enum Expected {
    Nothing,
    Answer { status: String, outcome: String, id: Vec<u8> },
}

fn expected(entry: &Entry, revision: Revision, transport: &str) -> Expected {
    let era = if revision.is_modern() { "modern" } else { "legacy" };
    let text = [transport, era, "all"].into_iter().find_map(|name| entry.setting(name));
    let text = text.unwrap_or_else(|| panic!("{}: nothing is expected over {transport} in {revision}", entry.title));
    let mut words = text.splitn(3, ' ');
    match (words.next(), words.next(), words.next()) {
        (Some("none" | "202"), None, None) => Expected::Nothing,
        (Some(status), Some(outcome), Some(id)) => {
            Expected::Answer { status: status.to_owned(), outcome: outcome.to_owned(), id: expand(id, &[]) }
        }
        _ => panic!("{}: {text:?} can't be expected", entry.title),
    }
}

/// The outcome and the id of an answer, as the corpus writes them.
fn outcome(answer: &[u8]) -> (String, Vec<u8>) {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
        result: Option<&'a RawValue>,
        error: Option<Error>,
    }
    #[derive(Deserialize)]
    struct Error {
        code: i64,
    }
    let parsed: Answer<'_> = match serde_json::from_slice(answer) {
        Ok(parsed) => parsed,
        Err(error) => return (format!("{error}: {}", String::from_utf8_lossy(answer)), Vec::new()),
    };
    let outcome = match (parsed.result, parsed.error) {
        (Some(_), None) => "result".to_owned(),
        (None, Some(error)) => error.code.to_string(),
        _ => "neither result nor error".to_owned(),
    };
    (outcome, parsed.id.map_or("null", RawValue::get).as_bytes().to_vec())
}

fn compare(expected: &Expected, status: &str, answer: &[u8]) -> Result<(), String> {
    let shown = String::from_utf8_lossy(&answer[..answer.len().min(300)]);
    match expected {
        Expected::Nothing if answer.is_empty() && matches!(status, "-" | "202") => Ok(()),
        Expected::Nothing => Err(format!("expected no answer, came {status} {shown}")),
        Expected::Answer { status: wanted_status, outcome: wanted, id } => {
            let (came, came_id) = outcome(answer);
            let status_fits = status == "-" || wanted_status == status;
            match status_fits && came == *wanted && came_id == *id {
                true => Ok(()),
                false => Err(format!("expected {wanted_status} {wanted}, came {status} {came}: {shown}")),
            }
        }
    }
}

#[tokio::test]
async fn no_message_over_stdio_does_harm() {
    let entries = read("messages.txt");
    let mut differences = Vec::new();
    for revision in Revision::ALL {
        let (ours, theirs) = tokio::io::duplex(4096);
        let (output, mut input) = tokio::io::split(ours);
        let (their_input, their_output) = tokio::io::split(theirs);
        let server = fixture::server("");
        let serving = tokio::spawn(stdio::serve_streams(server, <_>::default(), their_input, their_output));
        let mut lines = BufReader::new(output).lines();
        let mut next =
            async || limited("a line", lines.next_line()).await.unwrap().unwrap().expect("the output goes on");
        if revision.is_legacy() {
            input.write_all(format!("{}\n", initialize(revision)).as_bytes()).await.unwrap();
            assert!(next().await.contains("result"));
        }
        for entry in &entries {
            let mut bytes = expand(entry.setting("body").unwrap(), &[("meta", meta(revision))]);
            bytes.extend_from_slice(format!("\n{}\n", good(revision)).as_bytes());
            limited("room to write", input.write_all(&bytes)).await.unwrap().unwrap();
            let mut answers = vec![next().await];
            while !answers.last().unwrap().contains(r#""id":"good""#) {
                answers.push(next().await);
            }
            // A malformed message is answered at once, so before the good request.
            assert!(answers.len() <= 2, "{}: {answers:?}", entry.title);
            let answer = if answers.len() == 2 { answers[0].as_str() } else { "" };
            let wanted = expected(entry, revision, "stdio");
            if let Err(what) = compare(&wanted, "-", answer.as_bytes()) {
                differences.push(format!("{revision} over stdio: {}: {what}", entry.title));
            }
        }
        input.shutdown().await.unwrap();
        limited("the end", serving).await.unwrap().unwrap().unwrap();
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

#[tokio::test]
async fn no_message_over_http_does_harm() {
    let entries = read("messages.txt");
    let mut differences = Vec::new();
    for revision in Revision::ALL.into_iter().filter(|revision| revision.has_streamable_http()) {
        let options = http::Options { address: ([127, 0, 0, 1], 0).into(), ..http::Options::default() };
        let running = http::serve(fixture::server(""), options).unwrap();
        let host = running.address().to_string();
        let mut headers = match revision.has_version_header() {
            true => format!("mcp-protocol-version: {revision}\r\n"),
            false => String::new(),
        };
        if revision.is_modern() {
            headers += "mcp-method: tools/call\r\nmcp-name: echo\r\n";
        }
        let mut peer = Peer::connect(running.address()).await.unwrap();
        if revision.is_legacy() {
            let body = initialize(revision);
            let (head, _) = exchange(&mut peer, &host, "", body.as_bytes()).await.unwrap();
            let session = head.header("mcp-session-id").expect("a session");
            headers += &format!("mcp-session-id: {session}\r\n");
        }
        for entry in &entries {
            let body = expand(entry.setting("body").unwrap(), &[("meta", meta(revision))]);
            let wanted = expected(entry, revision, "http");
            let method = method_header(&body, revision);
            let mut headers = headers.clone();
            if let Some(method) = method {
                headers = headers.replace("tools/call", &method).replace("mcp-name: echo\r\n", "");
            }
            let compared = match exchange(&mut peer, &host, &headers, &body).await {
                Ok((head, answer)) => compare(&wanted, &head.status.to_string(), &answer),
                Err(what) => Err(what),
            };
            if let Err(what) = compared {
                differences.push(format!("{revision} over HTTP: {}: {what}", entry.title));
                peer = Peer::connect(running.address()).await.unwrap();
            }
            if peer.closing {
                peer = Peer::connect(running.address()).await.unwrap();
            }
            let headers = headers_for_good(&headers, revision);
            let served = exchange(&mut peer, &host, &headers, good(revision).as_bytes()).await;
            let well = served.as_ref().is_ok_and(|(head, answer)| head.status == 200 && outcome(answer).0 == "result");
            assert!(well, "{revision}: after {}: {served:?}", entry.title);
        }
        running.stop();
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// The method that the headers of a modern request have to name, where it is another than `tools/call`.
fn method_header(body: &[u8], revision: Revision) -> Option<String> {
    #[derive(Deserialize)]
    struct Called {
        method: String,
    }
    let called: Called = serde_json::from_slice(body).ok()?;
    let plain = called.method.starts_with("notifications/unknown")
        || called.method.starts_with("notifications/cancelled")
        || called.method == "tools/list";
    (revision.is_modern() && plain).then_some(called.method)
}

fn headers_for_good(headers: &str, revision: Revision) -> String {
    if !revision.is_modern() {
        return headers.to_owned();
    }
    format!("mcp-protocol-version: {revision}\r\nmcp-method: tools/call\r\nmcp-name: echo\r\n")
}

pub(super) async fn exchange(
    peer: &mut Peer,
    host: &str,
    headers: &str,
    body: &[u8],
) -> Result<(crate::peer::Head, Vec<u8>), String> {
    let mut request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{headers}\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    limited("room to write", peer.send(&request)).await?;
    let head = limited("a reply", peer.head()).await??.ok_or("no reply")?;
    let body = limited("a body", peer.rest()).await??;
    Ok((head, body))
}

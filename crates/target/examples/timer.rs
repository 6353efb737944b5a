//! How precise a target's delays are on this machine: `cargo run --release -p mcpace-target --example timer`.
//!
//! Calls `greet` with a fault of 1 ms in its tool, one call after another, and prints by how much the
//! target's own clock and the caller's saw more than that.

use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use mcpace_target::{Faults, Options, Profile, ResponseMode, Target};

const CALLS: usize = 1000;
const DELAY: Duration = Duration::from_millis(1);
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":
    {"name":"greet","arguments":{"name":"W"},"_meta":{"dev.mcpace/timing":true}}}"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = Target::start(Options {
        faults: Faults::parse(["tool=1ms"])?,
        response: Some(ResponseMode::Json),
        ..Options::new(Profile::Simple)
    })
    .await?;
    let uri: http::Uri = target.url().parse()?;
    let authority = uri.authority().ok_or("a target's URL has an authority")?;
    let stream = tokio::net::TcpStream::connect(authority.as_str()).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);

    let (mut told, mut seen) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let request = http::Request::post("/mcp")
            .header("host", authority.as_str())
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from_static(CALL.as_bytes())))?;
        let begun = Instant::now();
        let reply = sender.send_request(request).await?.into_body().collect().await?.to_bytes();
        seen.push(begun.elapsed().saturating_sub(DELAY));
        let reply: serde_json::Value = serde_json::from_slice(&reply)?;
        let service = reply["result"]["_meta"]["dev.mcpace/timing"]["service_ns"].as_u64();
        told.push(Duration::from_nanos(service.ok_or("no timing")?).saturating_sub(DELAY));
        sender.ready().await?;
    }
    print("late by the target's clock", &mut told);
    print("whole call, less the delay", &mut seen);
    target.stop().await;
    Ok(())
}

fn print(what: &str, times: &mut [Duration]) {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!("{what}: p50 {:?}, p99 {:?}, max {:?}", at(0.5), at(0.99), at(1.0));
}

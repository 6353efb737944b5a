//! Connects to a server, lists its tools, calls one and prints a line for each operation.
//!
//! `measure TARGET [--revision R] [--tool NAME] [--arguments JSON] [--trials N] [--bearer TOKEN] [--oauth] [--get]`,
//! where TARGET is a URL or `stdio:PROGRAM ARGUMENT…`, split at spaces.

use std::error::Error;
use std::time::Instant;

use mcpace_net::client::{Auth, Client, ClientError, ClientOptions, Secret, ServerEndpoint};
use mcpace_net::{Sink, SinkOptions};
use mcpace_record::{Instrument, RecordingHead};
use serde_json::value::RawValue;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut given = std::env::args().skip(1);
    let target = given.next().ok_or("a target is missing")?;
    let (mut tool, mut arguments, mut trials) = (None, "{}".to_owned(), 3);
    let mut options = ClientOptions { server_timing: true, ..ClientOptions::default() };
    while let Some(name) = given.next() {
        let mut value = || given.next().ok_or(format!("{name} needs a value"));
        match name.as_str() {
            "--revision" => options.revision = Some(value()?.parse()?),
            "--tool" => tool = Some(value()?),
            "--arguments" => arguments = value()?,
            "--trials" => trials = value()?.parse()?,
            "--bearer" => options.auth = Auth::Bearer(Secret::new(value()?)),
            "--oauth" => options.auth = Auth::OAuth(Box::default()),
            "--get" => options.standalone_get = true,
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    let head = RecordingHead {
        instrument: Instrument::Client,
        started: String::new(),
        started_at: None,
        mcpace: env!("CARGO_PKG_VERSION").to_owned(),
        upstream: target.clone(),
    };
    let sink = Sink::new(head, SinkOptions::default())?;
    let mut client = Client::new(endpoint(&target)?, options, sink.clone())?;
    let arguments = RawValue::from_string(arguments)?;
    let outcome = measure(&mut client, tool, &arguments, trials).await;
    client.disconnect().await;
    for event in sink.recording().events() {
        if std::env::var_os("EVENTS").is_some() {
            println!("{}", serde_json::to_string(event)?);
        }
    }
    outcome.map_err(|error| format!("[{}] {error}", error.code()).into())
}

async fn measure(
    client: &mut Client,
    tool: Option<String>,
    arguments: &RawValue,
    trials: usize,
) -> Result<(), ClientError> {
    let started = Instant::now();
    let info = client.connect().await?;
    let name = info.server.map_or_else(|| "unnamed".to_owned(), |server| format!("{} {}", server.name, server.version));
    println!("connect {:?}: {name}, {} over {}", started.elapsed(), info.revision, info.transport.as_str());
    let started = Instant::now();
    let tools = client.list_tools().await?;
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    println!("list {:?}: {}", started.elapsed(), names.join(", "));
    let Some(tool) = tool.or_else(|| tools.first().map(|tool| tool.name.clone())) else { return Ok(()) };
    for _ in 0..trials {
        let started = Instant::now();
        let result = client.call_tool(&tool, arguments).await?;
        println!("call {:?}: is_error {}, {}", started.elapsed(), result.is_error, result.result.get());
    }
    Ok(())
}

fn endpoint(target: &str) -> Result<ServerEndpoint, Box<dyn Error>> {
    match target.strip_prefix("stdio:") {
        Some(command) => {
            let mut words = command.split_whitespace().map(Into::into);
            let program = words.next().ok_or("stdio: names no program")?;
            Ok(ServerEndpoint::Stdio { program, args: words.collect(), environment: Vec::new() })
        }
        None => Ok(ServerEndpoint::Http(target.parse()?)),
    }
}

//! A server on mcpace's runtime, written as in docs/rust.md, without the lab; see ../../README.md for the contract.

mod program;
mod shop;
mod tools;

use std::process::ExitCode;
use std::time::Duration;

use mcpace_serve::Server;
use mcpace_serve::http::{self, Limits, Options, ResponseMode};

use crate::program::{Failure, Given};
use crate::shop::Shop;

/// Time for calls in flight at the end, after the load has ended.
const GRACE: Duration = Duration::from_secs(2);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

async fn run() -> Result<(), Failure> {
    let given = Given::parse(std::env::args().skip(1))?;
    let response = match given.mode.as_str() {
        "auto" => ResponseMode::Auto,
        "json" => ResponseMode::Json,
        "sse" => ResponseMode::Sse,
        other => return Err(Failure::Unsupported(format!("mcpace has no mode {other}"))),
    };
    let address = given.address().await?;
    let options = Options {
        address,
        response,
        stateless: !given.stateful,
        limits: Limits { stop: GRACE, ..Limits::default() },
        ..Options::default()
    };
    let told = program::told_to_end()?;
    let builder = tools::register(Server::builder("mcpace", env!("MCPACE_VERSION")), Shop::from_environment()?);
    let server = builder.build().map_err(|error| Failure::Other(error.to_string()))?;
    // The server uses its own threads.
    let running = http::serve(server, options).map_err(|error| Failure::Other(error.to_string()))?;
    program::say_ready(running.address())?;
    told.await;
    running.stop();
    Ok(())
}

//! The conformance suite's 'everything' server: each feature of the protocol once, under the names that the suite asks for.
//!
//! ```text
//! everything http [--address 127.0.0.1:0] [--response auto|json|sse] [--stateless] [--server-timing] [--soak]
//! everything stdio
//! ```
//!
//! Over HTTP its first line on stdout is `listening on URL`. It serves until it is killed or, over stdio, its input ends.

mod ask;
mod changes;
mod content;
mod inputs;
mod jobs;
mod prompts;
mod resources;
mod soak;
mod talk;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use mcpace_serve::http::{self, Options, ResponseMode};
use mcpace_serve::{Builder, Server, stdio};

use crate::soak::Watched;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "everything http [--address ADDRESS] [--response auto|json|sse] [--stateless] [--server-timing] [--soak] | everything stdio";

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), Failure> {
    match arguments.next().as_deref() {
        Some("http") => {
            let (options, watched) = options(arguments)?;
            let path = options.path.clone();
            let builder = builder();
            let builder = watched.iter().fold(builder, |builder, watched| watched.register(builder));
            let running = http::serve(builder.build()?, options)?;
            println!("listening on http://{}{path}", running.address());
            match watched {
                Some(watched) => watched.serve(running),
                None => running.wait(),
            }
            Ok(())
        }
        Some("stdio") => {
            stdio::run(builder().build()?, stdio::Options::default())?;
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<(Options, Option<Arc<Watched>>), Failure> {
    let mut watched = None;
    let mut options = Options { address: SocketAddr::from(([127, 0, 0, 1], 0)), ..Options::default() };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--stateless" => options.stateless = true,
            "--server-timing" => options.server_timing = true,
            "--soak" => {
                soak::make_impatient(&mut options);
                watched = Some(Arc::default());
            }
            "--address" => options.address = arguments.next().ok_or(USAGE)?.parse()?,
            "--response" => {
                options.response = match arguments.next().as_deref() {
                    Some("auto") => ResponseMode::Auto,
                    Some("json") => ResponseMode::Json,
                    Some("sse") => ResponseMode::Sse,
                    _ => return Err(USAGE.into()),
                }
            }
            _ => return Err(USAGE.into()),
        }
    }
    Ok((options, watched))
}

fn builder() -> Builder {
    let builder = Server::builder("everything", env!("CARGO_PKG_VERSION"))
        .title("Everything")
        .instructions("Has each feature of the protocol once, for tests of clients and of the protocol itself.");
    [
        content::register,
        talk::register,
        ask::register,
        inputs::register,
        changes::register,
        jobs::register,
        resources::register,
        prompts::register,
    ]
    .into_iter()
    .fold(builder, |builder, register| register(builder))
}

//! One tool that says its text again: what `make bench-serve` measures.
//!
//! ```text
//! echo ADDRESS [json|sse|auto] [stateless|stateful] [TOOLS]
//! ```
//!
//! With a number it registers that many tools, of which `echo` is one.

use std::net::SocketAddr;

use mcpace_serve::http::{self, Options, ResponseMode};
use mcpace_serve::{BuildError, Server, Tool, ToolError};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "usage: echo ADDRESS [json|sse|auto] [stateless|stateful] [TOOLS]";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct EchoArguments {
    /// Text to say again.
    text: String,
}

fn main() -> Result<(), Failure> {
    let mut given = std::env::args().skip(1);
    let address: SocketAddr = given.next().ok_or(USAGE)?.parse()?;
    let response = match given.next().as_deref() {
        None | Some("auto") => ResponseMode::Auto,
        Some("json") => ResponseMode::Json,
        Some("sse") => ResponseMode::Sse,
        Some(_) => return Err(USAGE.into()),
    };
    let stateless = match given.next().as_deref() {
        None | Some("stateless") => true,
        Some("stateful") => false,
        Some(_) => return Err(USAGE.into()),
    };
    let tools = given.next().map_or(Ok(1), |tools| tools.parse())?;
    let running = http::serve(server(tools)?, Options { address, response, stateless, ..Options::default() })?;
    println!("listening on http://{}/mcp", running.address());
    running.wait();
    Ok(())
}

fn server(tools: usize) -> Result<Server, BuildError> {
    (1..tools)
        .map(|number| format!("echo_{number}"))
        .chain(["echo".to_owned()])
        .fold(Server::builder("echo", env!("CARGO_PKG_VERSION")), |builder, name| builder.tool(echo(name)))
        .build()
}

fn echo(name: String) -> Tool {
    Tool::new(name).description("Says the text again").handler(|given: EchoArguments| Ok::<_, ToolError>(given.text))
}

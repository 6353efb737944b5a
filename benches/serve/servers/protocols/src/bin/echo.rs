//! mcpace's echo tool over TLS. Usage: `echo ADDRESS CERTIFICATE KEY`.

use std::net::SocketAddr;

use mcpace_serve::http::{self, Options, ResponseMode, Tls};
use mcpace_serve::{Server, Tool, ToolError};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// Text to say again.
    text: String,
}

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [address, certificate, key] = given.as_slice() else {
        return Err("usage: echo ADDRESS CERTIFICATE KEY".into());
    };
    let echo =
        Tool::new("echo").description("Says the text again").handler(|given: Arguments| Ok::<_, ToolError>(given.text));
    let options = Options {
        address: address.parse::<SocketAddr>()?,
        response: ResponseMode::Json,
        stateless: true,
        tls: Some(Tls::from_pem(&std::fs::read(certificate)?, &std::fs::read(key)?)?),
        ..Options::default()
    };
    http::serve(Server::builder("echo", "1").tool(echo).build()?, options)?.wait();
    Ok(())
}

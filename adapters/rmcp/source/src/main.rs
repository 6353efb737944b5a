//! A server on rmcp and axum, as the SDK's own examples have it; see ../../../README.md for the contract.
//!
//! `sse` and `json` listen as everybody writes it, `axum::serve(listener, router)`. Their `-nodelay` twins differ in one
//! line: TCP_NODELAY on each accepted connection, which nothing in axum or rmcp sets.

mod program;
mod shop;
mod tools;

use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use axum::serve::ListenerExt;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use crate::program::{Failure, Given};
use crate::shop::Shop;
use crate::tools::Tools;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

async fn run() -> Result<(), Failure> {
    let given = Given::parse(std::env::args().skip(1))?;
    let (json, nodelay) = match given.mode.as_str() {
        "sse" => (false, false),
        "sse-nodelay" => (false, true),
        "json" => (true, false),
        "json-nodelay" => (true, true),
        other => return Err(Failure::Unsupported(format!("rmcp has no mode {other}"))),
    };
    let config = config(json, given.stateful)?;
    let tools = Tools::new(Shop::from_environment()?);
    let service =
        StreamableHttpService::new(move || Ok(tools.clone()), Arc::new(LocalSessionManager::default()), config);
    let router = Router::new().nest_service("/mcp", service);
    let listener =
        TcpListener::bind((given.host.as_str(), given.port)).await.map_err(|error| given.no_listener(&error))?;
    let told = program::told_to_end()?;
    program::say_ready(&listener, nodelay)?;
    tokio::select! {
        served = serve(listener, router, nodelay) => served.map_err(|error| Failure::Other(error.to_string())),
        () = told => Ok(()),
    }
}

async fn serve(listener: TcpListener, router: Router, nodelay: bool) -> std::io::Result<()> {
    if nodelay {
        let listener = listener.tap_io(|stream| {
            // A connection that is gone already fails here, and says so when it is read.
            let _ = stream.set_nodelay(true);
        });
        return axum::serve(listener, router).await;
    }
    axum::serve(listener, router).await
}

#[cfg(json_response)]
fn config(json: bool, stateful: bool) -> Result<StreamableHttpServerConfig, Failure> {
    if json && stateful {
        return Err(Failure::Unsupported("rmcp answers in JSON only where it keeps no sessions".into()));
    }
    Ok(StreamableHttpServerConfig::default().with_legacy_session_mode(stateful).with_json_response(json))
}

#[cfg(not(json_response))]
fn config(json: bool, stateful: bool) -> Result<StreamableHttpServerConfig, Failure> {
    if json {
        return Err(Failure::Unsupported(format!("rmcp {} answers in streams only", env!("RMCP_VERSION"))));
    }
    Ok(StreamableHttpServerConfig { stateful_mode: stateful, ..Default::default() })
}

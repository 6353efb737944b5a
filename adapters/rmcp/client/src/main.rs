//! The client program for rmcp; see ../../../README.md for the contract.
//!
//! `contract` is the program's side of it, `kind` its names for failures, `driver` the SDK, `consent` who agrees to an OAuth
//! flow, and `wallet` what differs between generations of the SDK. Results are read as JSON, which stays the same where types
//! change their names.

mod consent;
mod contract;
mod driver;
mod kind;
mod wallet;

use std::process::ExitCode;

use rmcp::transport::StreamableHttpClientTransport;

use crate::driver::Driver;

#[tokio::main]
async fn main() -> ExitCode {
    // The SDK's own HTTP client, whichever that is in this release: the rest of the program never names it.
    contract::serve(Driver::new(StreamableHttpClientTransport::from_uri)).await
}

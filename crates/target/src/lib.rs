//! Scripted MCP servers: profiles that behave like known remote servers, and injected faults.
//!
//! A [`Target`] is an instrument, not a server to build on. Its behaviour is data (a [`Profile`] and [`Faults`]), its
//! delays are as long as they claim (see `timer`), it counts what reaches it ([`Counters`]), and it reports the time of
//! each of its layers when asked: by `_meta["dev.mcpace/timing"]` in a request, or for every request by
//! [`Options::server_timing`]. It answers every revision from 2024-11-05 (over Streamable HTTP) to 2026-07-28 on one
//! endpoint.
//!
//! A target can also answer from a recording: see [`RecordedServer`], [`Options::of_recording`] for HTTP and
//! [`serve_recording`] for stdio.
//!
//! Beside it stand what a comparison of servers needs: [`RunningShop`], the product API behind the shop
//! workload's tools, and [`Null`], the server that does nothing.
//!
//! It runs on tokio and hyper, HTTP/1.1 only, on loopback unless told otherwise. Deliberately
//! absent: speed (that is the runtime's business), HTTP/2, the HTTP+SSE transport of 2024-11-05,
//! resumption, and anything that outlives the process.
//!
//! ```no_run
//! # async fn example() -> Result<(), mcpace_target::TargetError> {
//! use mcpace_target::{Faults, Options, Profile, Target};
//!
//! let target = Target::start(Options {
//!     faults: Faults::parse(["tool=10ms", "headers@tools/list=5ms"])?,
//!     ..Options::new(Profile::Simple)
//! })
//! .await?;
//! println!("{}", target.url());
//! target.stop().await;
//! # Ok(())
//! # }
//! ```

mod bounded;
mod counters;
mod dispatch;
mod endpoint;
mod era;
mod error;
mod failure;
mod faults;
mod nearest;
mod null;
mod oauth;
mod pacing;
mod profile;
mod recorded;
mod reply;
mod script;
mod secret;
mod server;
mod session;
mod shop;
mod site;
mod stdio;
mod target;
mod timer;
mod timing;
mod tls;
mod tools;

pub use counters::Counters;
pub use error::{Blame, TargetError};
pub use faults::{Fault, FaultError, FaultKind, Faults};
pub use null::Null;
pub use profile::{Profile, ResponseMode, UnknownProfile};
pub use recorded::{Matching, RecordedError, RecordedServer, RecordedSummary};
pub use secret::Secret;
pub use shop::{PRODUCTS, RunningShop};
pub use stdio::serve_recording;
pub use target::{Options, Target};

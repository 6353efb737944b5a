//! Dialogues with targets over real sockets. Nothing here looks at the clock: order and bytes tell.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod client;
mod faults;
mod life;
mod oauth;
mod pacing;
mod protocol;
mod recorded;
mod shop;
mod timing;

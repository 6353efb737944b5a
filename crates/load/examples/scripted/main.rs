//! A target whose latencies are known, for the benchmark: it answers each call after a delay that the call's number says, and
//! tells in the end when it handed each reply to the kernel, and when the kernel had taken it.
//!
//! ```text
//! scripted 127.0.0.1:4711     answers until its standard input ends, then prints [[number, before, after], …],
//!                             CLOCK_MONOTONIC in ns before the reply's write and after it
//! ```
//!
//! Takes a core of its own, and needs Linux. The calls' arguments are
//! `{"n": "{{counter}}"}`.

use std::error::Error;

#[cfg(target_os = "linux")]
mod epoll_server;

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).ok_or("usage: scripted ADDRESS")?;
    #[cfg(target_os = "linux")]
    return epoll_server::serve_until_input_ends(&address);
    #[cfg(not(target_os = "linux"))]
    Err(format!("can't serve {address}: this target uses epoll, which only Linux has").into())
}

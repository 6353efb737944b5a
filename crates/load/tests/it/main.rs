//! The engine against targets that do what a script says: is what it reports what really happened?

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod calls;
mod faults;
mod load;
mod server;
mod truth;

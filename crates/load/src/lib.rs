//! The load engine: calls an MCP server as fast as asked, checks each reply, and says how long each took.
//!
//! **Threads.** One thread a core; nothing is shared between them but the wish to stop. Each has its users, its part of the
//! arrivals, its sockets and its histograms, which are merged, without loss, when a second or the run has ended.
//!
//! **Coordinated omission.** A generator that waits for a reply before it sends the next request takes fewer samples just
//! when the target is slow: a stall of a second is one slow call instead of the thousand that real users would have
//! suffered. So the open model's calls are due at times that the target can't change, and latency is counted from when a
//! call was *due*; from when it was really sent it is kept, too, as service time (G. Tene, "How NOT to measure latency"; wrk2).
//! In the closed model a call is due when the user's last one has ended and the user has thought.
//!
//! **Who was the limit.** A generator that is slow itself measures itself. The engine keeps how late its own calls began and
//! how busy its threads were, and says `saturated` when these, not the target, made the figures.
//!
//! Constraint: the crate reaches a server over a socket or a process's pipes, and knows none of ours.

mod address;
mod events;
mod judge;
mod link;
mod message;
pub mod outcome;
pub mod plan;
mod poller;
mod program;
mod program_pipes;
mod random;
mod reader;
mod request;
mod run;
mod schedule;
mod system_limits;
mod tally;
mod template;
mod timers;
mod tls;
mod user;
mod worker;

pub use outcome::LoadOutcome;
pub use plan::{Plan, PlanError};
pub use run::{Run, start_run};

//! One call holds up others. Here are the facts that each finding tells its reader; which cause it is, where several look
//! alike, is decided in `episodes.rs` for all of them.

mod batches;
pub(super) mod blocked_event_loop;
mod charge;
pub(super) mod completion_waves;
mod episodes;
mod full_buffer;
pub(super) mod head_of_line;
mod held_reply;
mod queue_model;
mod reply_order;
pub(super) mod serial_session;
mod served;
mod stalls;
pub(super) mod thread_pool_saturation;

use mcpace_record::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

pub(super) use episodes::{Episode, find_episodes};

/// A call is at work by then, and no longer on its way to it.
const BEGUN: Nanos = Nanos::from_millis(20);

/// See [`Cause::BlockedEventLoop`](crate::Cause::BlockedEventLoop).
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct BlockedEventLoop {
    /// Requests that were held.
    pub held: u64,
    /// Held requests that needed no tool: pings, lists, notifications.
    pub without_tool: u64,
    /// Whether some of them were of other sessions than the tool that held them.
    pub across_sessions: bool,
    /// The longest that one was held.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// See [`Cause::SerialSession`](crate::Cause::SerialSession).
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct SerialSession {
    /// Requests that were held.
    pub held: u64,
    /// The longest that one was held.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// See [`Cause::CompletionWaves`](crate::Cause::CompletionWaves).
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct CompletionWaves {
    /// Calls that the server ran at a time.
    pub at_a_time: u64,
    /// Calls that had to wait for a wave to end.
    pub held: u64,
    /// The longest that one waited.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// See [`Cause::ThreadPoolSaturation`](crate::Cause::ThreadPoolSaturation).
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ThreadPoolSaturation {
    /// Requests that the server had in work at a time.
    pub at_a_time: u64,
    /// Requests that were accepted and not begun with meanwhile.
    pub held: u64,
    /// The longest that one waited.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// See [`Cause::HeadOfLine`](crate::Cause::HeadOfLine).
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct HeadOfLine {
    /// Replies that came late.
    pub held: u64,
    /// The event that released the replies.
    pub released_with: ReleasedWith,
    /// The longest that one was held.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// The event that releases replies that were ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReleasedWith {
    /// The reply of a slower call before them.
    SlowerReply,
    /// A full buffer of the server's stdout.
    FullBuffer,
}

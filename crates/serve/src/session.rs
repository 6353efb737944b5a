//! What dispatch keeps for a legacy session (one over HTTP, one a process over stdio).

/// A legacy session.
#[derive(Debug, Default)]
pub struct Session {}

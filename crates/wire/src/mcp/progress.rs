//! How far a request is, and that it is no longer wanted.

use super::shapes::shapes;
use crate::jsonrpc::Id;

shapes! {
    /// The parameters of `notifications/progress`.
    pub struct ProgressParams with _meta {
        /// The token of the request's `_meta`.
        progress_token: Id<'static>,
        /// How far; rises with each notification.
        progress: f64,
        /// How far it will go, where known.
        total?: f64,
        /// For people. Since 2025-03-26.
        message?: String,
    }

    /// The parameters of `notifications/cancelled`.
    pub struct CancelledParams with _meta {
        /// The request. Optional in 2025-11-25 only, where tasks are cancelled otherwise.
        request_id?: Id<'static>,
        /// For logs.
        reason?: String,
    }
}

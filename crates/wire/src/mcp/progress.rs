//! How far a request is, and that it is no longer wanted.

use serde::{Deserialize, Serialize};

use super::Extra;
use crate::jsonrpc::Id;

/// The parameters of `notifications/progress`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressParams {
    /// The token of the request's `_meta`.
    pub progress_token: Id<'static>,
    /// How far; rises with each notification.
    pub progress: f64,
    /// How far it will go, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// For people. Since 2025-03-26.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The parameters of `notifications/cancelled`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelledParams {
    /// The request. Optional in 2025-11-25 only, where tasks are cancelled otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Id<'static>>,
    /// For logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

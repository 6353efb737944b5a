//! Capabilities of clients and servers. An empty object declares a capability; an absent one does not.

use serde::{Deserialize, Serialize};

use super::Extra;

/// Capabilities of a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientCapabilities {
    /// Answers `roots/list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<ListChanged>,
    /// Answers `sampling/createMessage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingCapability>,
    /// Answers `elicitation/create`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationCapability>,
    /// 2025-11-25: takes requests as tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Extra>,
    /// Not standard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experimental: Option<Extra>,
    /// Extensions by name, with their settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ClientCapabilities {
    /// Whether the client declared the extension of this name.
    #[must_use]
    pub fn has_extension(&self, name: &str) -> bool {
        self.extensions.as_ref().is_some_and(|extensions| extensions.contains_key(name))
    }

    /// Whether the client shows forms. One that declares elicitation without saying which is taken to (2025-11-25,
    /// client/elicitation, "Capabilities").
    #[must_use]
    pub fn elicits_forms(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
    }
}

/// Capabilities of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerCapabilities {
    /// Has tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ListChanged>,
    /// Has resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesCapability>,
    /// Has prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<ListChanged>,
    /// Sends log messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging: Option<Extra>,
    /// Completes arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<Extra>,
    /// 2025-11-25: runs requests as tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Extra>,
    /// Not standard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experimental: Option<Extra>,
    /// Extensions by name, with their settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A list, perhaps with notifications when it changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListChanged {
    /// Whether changes are notified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Resources, perhaps with notifications.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesCapability {
    /// Whether one resource's changes are notified to those who subscribed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<bool>,
    /// Whether changes of the list are notified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Features of a client's sampling. Both since 2025-11-25.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SamplingCapability {
    /// `includeContext` other than `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Extra>,
    /// `tools` and `toolChoice`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How a client can ask its user. Both since 2025-11-25; see [`ClientCapabilities::elicits_forms`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ElicitationCapability {
    /// By a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Extra>,
    /// By sending it to a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

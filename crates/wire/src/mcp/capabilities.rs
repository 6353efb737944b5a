//! Capabilities of clients and servers. An empty object declares a capability; an absent one does not.

use super::{Extra, shapes::shapes};

shapes! {
    /// Capabilities of a client.
    #[derive(Default)]
    pub struct ClientCapabilities {
        /// Answers `roots/list`.
        roots?: ListChanged,
        /// Answers `sampling/createMessage`.
        sampling?: SamplingCapability,
        /// Answers `elicitation/create`.
        elicitation?: ElicitationCapability,
        /// 2025-11-25: takes requests as tasks.
        tasks?: Extra,
        /// Not standard.
        experimental?: Extra,
        /// Extensions by name, with their settings.
        extensions?: Extra,
    }

    /// Capabilities of a server.
    #[derive(Default)]
    pub struct ServerCapabilities {
        /// Has tools.
        tools?: ListChanged,
        /// Has resources.
        resources?: ResourcesCapability,
        /// Has prompts.
        prompts?: ListChanged,
        /// Sends log messages.
        logging?: Extra,
        /// Completes arguments.
        completions?: Extra,
        /// 2025-11-25: runs requests as tasks.
        tasks?: Extra,
        /// Not standard.
        experimental?: Extra,
        /// Extensions by name, with their settings.
        extensions?: Extra,
    }

    /// A list, perhaps with notifications when it changes.
    #[derive(Default)]
    pub struct ListChanged {
        /// Whether changes are notified.
        list_changed?: bool,
    }

    /// Resources, perhaps with notifications.
    #[derive(Default)]
    pub struct ResourcesCapability {
        /// Whether one resource's changes are notified to those who subscribed.
        subscribe?: bool,
        /// Whether changes of the list are notified.
        list_changed?: bool,
    }

    /// Features of a client's sampling. Both since 2025-11-25.
    #[derive(Default)]
    pub struct SamplingCapability {
        /// `includeContext` other than `none`.
        context?: Extra,
        /// `tools` and `toolChoice`.
        tools?: Extra,
    }

    /// How a client can ask its user. Both since 2025-11-25; see [`ClientCapabilities::elicits_forms`].
    #[derive(Default)]
    pub struct ElicitationCapability {
        /// By a form.
        form?: Extra,
        /// By sending it to a URL.
        url?: Extra,
    }
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

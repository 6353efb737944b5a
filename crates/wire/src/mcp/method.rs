//! The methods, who sends them, and in which revisions they exist: one table.

use crate::Revision;

/// Side that sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sender {
    /// The client only.
    Client,
    /// The server only.
    Server,
    /// Either.
    Both,
}

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $sender:ident, $from:ident ..= $to:ident;)*) => {
        /// A method of a request or notification that some revision defines. Others are told by their string only.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Method {
            $($(#[$doc])* $name,)*
        }

        impl Method {
            /// All of them.
            pub const ALL: &'static [Method] = &[$(Method::$name),*];

            /// The method of this name.
            #[must_use]
            pub fn parse(text: &str) -> Option<Method> {
                match text {
                    $($text => Some(Method::$name),)*
                    _ => None,
                }
            }

            /// Its name on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Method::$name => $text,)*
                }
            }

            /// Side that sends the method.
            #[must_use]
            pub const fn sender(self) -> Sender {
                match self {
                    $(Method::$name => Sender::$sender,)*
                }
            }

            /// The first and the last revision that have it.
            #[must_use]
            pub const fn revisions(self) -> (Revision, Revision) {
                match self {
                    $(Method::$name => (Revision::$from, Revision::$to),)*
                }
            }
        }
    };
}

// A method that is a request of its own in legacy revisions and an input request in 2026-07-28 (sampling, elicitation,
// roots) counts as existing there: its name and shape do.
methods! {
    /// `initialize`
    Initialize = "initialize", Client, V2024_11_05 ..= V2025_11_25;
    /// `notifications/initialized`
    Initialized = "notifications/initialized", Client, V2024_11_05 ..= V2025_11_25;
    /// `ping`
    Ping = "ping", Both, V2024_11_05 ..= V2025_11_25;
    /// `server/discover`
    Discover = "server/discover", Client, V2026_07_28 ..= V2026_07_28;
    /// `tools/list`
    ToolsList = "tools/list", Client, V2024_11_05 ..= V2026_07_28;
    /// `tools/call`
    ToolsCall = "tools/call", Client, V2024_11_05 ..= V2026_07_28;
    /// `notifications/tools/list_changed`
    ToolsListChanged = "notifications/tools/list_changed", Server, V2024_11_05 ..= V2026_07_28;
    /// `resources/list`
    ResourcesList = "resources/list", Client, V2024_11_05 ..= V2026_07_28;
    /// `resources/templates/list`
    ResourceTemplatesList = "resources/templates/list", Client, V2024_11_05 ..= V2026_07_28;
    /// `resources/read`
    ResourcesRead = "resources/read", Client, V2024_11_05 ..= V2026_07_28;
    /// `resources/subscribe`
    ResourcesSubscribe = "resources/subscribe", Client, V2024_11_05 ..= V2025_11_25;
    /// `resources/unsubscribe`
    ResourcesUnsubscribe = "resources/unsubscribe", Client, V2024_11_05 ..= V2025_11_25;
    /// `notifications/resources/list_changed`
    ResourcesListChanged = "notifications/resources/list_changed", Server, V2024_11_05 ..= V2026_07_28;
    /// `notifications/resources/updated`
    ResourceUpdated = "notifications/resources/updated", Server, V2024_11_05 ..= V2026_07_28;
    /// `prompts/list`
    PromptsList = "prompts/list", Client, V2024_11_05 ..= V2026_07_28;
    /// `prompts/get`
    PromptsGet = "prompts/get", Client, V2024_11_05 ..= V2026_07_28;
    /// `notifications/prompts/list_changed`
    PromptsListChanged = "notifications/prompts/list_changed", Server, V2024_11_05 ..= V2026_07_28;
    /// `completion/complete`
    Complete = "completion/complete", Client, V2024_11_05 ..= V2026_07_28;
    /// `logging/setLevel`
    SetLevel = "logging/setLevel", Client, V2024_11_05 ..= V2025_11_25;
    /// `notifications/message`
    LogMessage = "notifications/message", Server, V2024_11_05 ..= V2026_07_28;
    /// `notifications/progress`
    Progress = "notifications/progress", Both, V2024_11_05 ..= V2026_07_28;
    /// `notifications/cancelled`
    Cancelled = "notifications/cancelled", Both, V2024_11_05 ..= V2026_07_28;
    /// `sampling/createMessage`
    CreateMessage = "sampling/createMessage", Server, V2024_11_05 ..= V2026_07_28;
    /// `elicitation/create`
    Elicit = "elicitation/create", Server, V2025_06_18 ..= V2026_07_28;
    /// `notifications/elicitation/complete`
    ElicitationComplete = "notifications/elicitation/complete", Server, V2025_11_25 ..= V2025_11_25;
    /// `roots/list`
    RootsList = "roots/list", Server, V2024_11_05 ..= V2026_07_28;
    /// `notifications/roots/list_changed`
    RootsListChanged = "notifications/roots/list_changed", Client, V2024_11_05 ..= V2025_11_25;
    /// `subscriptions/listen`
    SubscriptionsListen = "subscriptions/listen", Client, V2026_07_28 ..= V2026_07_28;
    /// `notifications/subscriptions/acknowledged`
    SubscriptionsAcknowledged = "notifications/subscriptions/acknowledged", Server, V2026_07_28 ..= V2026_07_28;
    /// `tasks/get`: core in 2025-11-25, the tasks extension since
    TasksGet = "tasks/get", Both, V2025_11_25 ..= V2026_07_28;
    /// `tasks/result`
    TasksResult = "tasks/result", Both, V2025_11_25 ..= V2025_11_25;
    /// `tasks/list`
    TasksList = "tasks/list", Both, V2025_11_25 ..= V2025_11_25;
    /// `tasks/cancel`: core in 2025-11-25, the tasks extension since
    TasksCancel = "tasks/cancel", Both, V2025_11_25 ..= V2026_07_28;
    /// `tasks/update`: the tasks extension
    TasksUpdate = "tasks/update", Client, V2026_07_28 ..= V2026_07_28;
    /// `notifications/tasks/status`
    TaskStatusChanged = "notifications/tasks/status", Both, V2025_11_25 ..= V2025_11_25;
    /// `notifications/tasks`: the tasks extension
    TaskChanged = "notifications/tasks", Server, V2026_07_28 ..= V2026_07_28;
}

impl Method {
    /// Whether it is a notification: nobody answers it.
    #[must_use]
    pub fn is_notification(self) -> bool {
        self.as_str().starts_with("notifications/")
    }

    /// Whether `revision` has it, the tasks extension of 2026-07-28 included.
    #[must_use]
    pub fn exists_in(self, revision: Revision) -> bool {
        let (from, to) = self.revisions();
        from <= revision && revision <= to
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

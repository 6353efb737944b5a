//! Change notifications that a client asks for (2026-07-28, basic/patterns/subscriptions).

use super::shapes::shapes;

shapes! {
    /// The parameters of `subscriptions/listen` (what is wanted) and of `notifications/subscriptions/acknowledged` (what was
    /// agreed). Each message of the subscription has the listen request's id under [`super::key::SUBSCRIPTION_ID`].
    #[derive(Default)]
    pub struct SubscriptionParams with _meta {
        /// Which notifications.
        notifications: SubscriptionFilter,
    }

    /// Which notifications.
    #[derive(Default)]
    pub struct SubscriptionFilter {
        /// `notifications/tools/list_changed`.
        tools_list_changed?: bool,
        /// `notifications/prompts/list_changed`.
        prompts_list_changed?: bool,
        /// `notifications/resources/list_changed`.
        resources_list_changed?: bool,
        /// `notifications/resources/updated` of these URIs.
        resource_subscriptions?: Vec<String>,
        /// `notifications/tasks` of these tasks (the tasks extension).
        task_ids?: Vec<String>,
    }
}

//! Completing what somebody types into a prompt's or a resource template's argument.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Extra, ResultType, shapes::shapes};

shapes! {
    /// The parameters of `completion/complete`.
    pub struct CompleteParams with _meta {
        /// Prompt or resource template that has the argument.
        #[serde(rename = "ref")]
        reference: CompletionRef,
        /// The argument so far.
        argument: CompletionArgument,
        /// The arguments already settled. Since 2025-06-18.
        context?: CompleteContext,
    }
}

/// A prompt or a resource template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum CompletionRef {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// Its name.
        name: String,
        /// Unknown members.
        #[serde(flatten)]
        extra: Extra,
    },
    /// A resource template.
    #[serde(rename = "ref/resource")]
    Resource {
        /// Its URI or URI template.
        uri: String,
        /// Unknown members.
        #[serde(flatten)]
        extra: Extra,
    },
}

shapes! {
    /// An argument so far.
    #[derive(Default)]
    pub struct CompletionArgument {
        /// Which.
        name: String,
        /// Text that the user has typed so far.
        value: String,
    }

    /// The arguments already settled.
    #[derive(Default)]
    pub struct CompleteContext {
        /// Their values by name.
        arguments?: BTreeMap<String, String>,
    }

    /// The result of `completion/complete`.
    #[derive(Default)]
    pub struct CompleteResult with _meta {
        /// The proposals.
        completion: Completion,
        /// Since 2026-07-28.
        result_type?: ResultType,
    }

    /// Proposals.
    #[derive(Default)]
    pub struct Completion {
        /// At most 100.
        values: Vec<String>,
        /// How many there are in all.
        total?: u64,
        /// Whether there are more than these.
        has_more?: bool,
    }
}

//! Members that all results have, and the parameters of all lists.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Extra;

/// Kind of a result (2026-07-28). An absent one means complete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum ResultType {
    /// The request is done.
    #[default]
    Complete,
    /// The server needs answers first: [`super::InputRequiredResult`].
    InputRequired,
    /// The work goes on in a task: [`super::Task`] (the tasks extension).
    Task,
    /// A type from an extension unknown here; a client that didn't ask for it must refuse the result.
    Other(String),
}

impl ResultType {
    /// Its name on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            ResultType::Complete => "complete",
            ResultType::InputRequired => "input_required",
            ResultType::Task => "task",
            ResultType::Other(text) => text,
        }
    }
}

impl From<String> for ResultType {
    fn from(text: String) -> Self {
        match text.as_str() {
            "complete" => ResultType::Complete,
            "input_required" => ResultType::InputRequired,
            "task" => ResultType::Task,
            _ => ResultType::Other(text),
        }
    }
}

impl Serialize for ResultType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ResultType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(ResultType::from)
    }
}

/// The result of `ping`, `logging/setLevel`, `resources/subscribe`, `tasks/update`, …: `{}` in legacy revisions,
/// `{"resultType": "complete"}` since 2026-07-28.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EmptyResult {
    /// Since 2026-07-28.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The parameters of every list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ListParams {
    /// Where the page before this one ended; opaque.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

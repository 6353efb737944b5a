//! Members that all results have, and the parameters of all lists.

use serde::{Deserialize, Serialize, Serializer};

use super::shapes::shapes;

/// Kind of a result (2026-07-28). An absent one means complete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(from = "String")]
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

shapes! {
    /// The result of `ping`, `logging/setLevel`, `resources/subscribe`, `tasks/update`, …: `{}` in legacy revisions,
    /// `{"resultType": "complete"}` since 2026-07-28.
    #[derive(Default)]
    pub struct EmptyResult with _meta {
        /// Since 2026-07-28.
        result_type?: ResultType,
    }
}

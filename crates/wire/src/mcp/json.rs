//! JSON that is carried, not understood.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// One well-formed JSON value as its text: order, number spelling and white space as they came. Equal when the text is.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Takes JSON text.
    ///
    /// # Errors
    /// When the text is not exactly one JSON value.
    pub fn from_text(text: String) -> serde_json::Result<Self> {
        RawValue::from_string(text).map(Json)
    }

    /// The JSON of any value.
    ///
    /// # Errors
    /// When the value can't be written as JSON (a map whose keys are no strings).
    pub fn of(value: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::value::to_raw_value(value).map(Json)
    }

    /// The text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// As [`serde_json`] passes raw values around.
    #[must_use]
    pub fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// Reads the value as a type.
    ///
    /// # Errors
    /// When the value is of another shape.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        serde_json::from_str(self.0.get())
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        Json(raw.to_owned())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

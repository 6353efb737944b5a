//! Raw arguments to an author's type, and the type's schema.

use mcpace_wire::mcp::Json;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// For a handler without arguments. Members that a client sends all the same are passed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct NoArguments {}

/// Arguments that don't fit; says which and why, for whoever sent them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub(crate) String);

/// Reads arguments; absent ones count as `{}`.
pub(crate) fn read_arguments<T: DeserializeOwned>(raw: Option<&RawValue>) -> Result<T, Malformed> {
    let text = raw.map_or("{}", RawValue::get);
    if !text.starts_with('{') {
        // A derived struct would also read an array, by position.
        return Err(Malformed("arguments: expected an object".to_owned()));
    }
    serde_json::from_str(text).map_err(|error| Malformed(explain_error::<T>(text, &error)))
}

/// Reads them again, only now that something is wrong, keeping track of where.
fn explain_error<T: DeserializeOwned>(text: &str, first: &serde_json::Error) -> String {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let (path, reason) = match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Ok(_) => (String::new(), first.to_string()),
        Err(error) => (error.path().to_string(), error.into_inner().to_string()),
    };
    // The position is in a text that the sender never wrote as such.
    let reason = reason.split(" at line ").next().unwrap_or_default();
    match path.as_str() {
        "" | "." => format!("arguments: {reason}"),
        path => format!("arguments.{path}: {reason}"),
    }
}

/// The JSON Schema (2020-12) of what `T` reads.
pub(crate) fn schema_read<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_deserialize().into_generator().into_root_schema_for::<T>()
}

/// The JSON Schema (2020-12) of what `T` writes.
pub(crate) fn schema_written<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

/// The schema of a form that reads a `T`: flat, so without references (2025-11-25, client/elicitation, "Requested Schema").
pub(crate) fn schema_form<T: JsonSchema>() -> Schema {
    let inline = |settings: &mut SchemaSettings| settings.inline_subschemas = true;
    SchemaSettings::draft2020_12().for_deserialize().with(inline).into_generator().into_root_schema_for::<T>()
}

/// Whether every value of the schema is an object.
pub(crate) fn is_object(schema: &Schema) -> bool {
    schema.get("type").and_then(serde_json::Value::as_str) == Some("object")
}

/// The schema as text; `None` can't happen, since a schema is a tree of JSON.
pub(crate) fn schema_text(schema: &Schema) -> serde_json::Result<Json> {
    Json::of(schema)
}

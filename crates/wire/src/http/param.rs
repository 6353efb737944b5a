//! `x-mcp-header`: arguments of a tool that are mirrored in headers (2026-07-28, basic/transports/streamable-http, "Custom
//! Headers from Tool Parameters").

use serde_json::{Map, Value};

/// One annotated argument of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamHeader {
    /// The annotation: what follows `Mcp-Param-` in the header's name.
    pub name: String,
    /// The names of the properties that lead to the argument.
    pub path: Vec<String>,
    /// The argument's type.
    pub kind: ParamKind,
}

/// The types that may be annotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A string.
    String,
    /// An integer that JavaScript can hold exactly.
    Integer,
    /// A boolean.
    Boolean,
}

/// Why a tool's annotations are wrong. A client must drop such a tool from the list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnnotationError {
    /// The input schema is no JSON object.
    #[error("the input schema is no object")]
    NoSchema,
    /// The annotation is no string, or no RFC 9110 token.
    #[error("x-mcp-header is no header name: {0}")]
    NotAToken(String),
    /// Two arguments have the same annotation, upper and lower case taken for the same.
    #[error("x-mcp-header {0:?} is there twice")]
    Duplicate(String),
    /// The argument is neither string, integer nor boolean.
    #[error("x-mcp-header {0:?} is on an argument that is no string, integer or boolean")]
    NotPrimitive(String),
    /// The annotation can't be reached by `properties` alone.
    #[error("x-mcp-header {0:?} is not reached by properties alone")]
    Unreachable(String),
}

const ANNOTATION: &str = "x-mcp-header";

impl ParamHeader {
    /// The annotated arguments of a tool with this input schema, by property name. A schema that can't have annotations
    /// is not looked into any further.
    ///
    /// # Errors
    /// [`AnnotationError`], the first one found.
    pub fn of_schema(schema: &str) -> Result<Vec<ParamHeader>, AnnotationError> {
        // Nearly all tools have none, and looking for the word is quicker than building the tree. An escaped spelling of
        // it starts with a backslash.
        if memchr::memmem::find(schema.as_bytes(), ANNOTATION.as_bytes()).is_none() && !schema.contains('\\') {
            return Ok(Vec::new());
        }
        let Ok(Value::Object(root)) = serde_json::from_str(schema) else {
            return Err(AnnotationError::NoSchema);
        };
        let mut found = Vec::new();
        collect_annotations(&root, &mut Vec::new(), &mut found)?;
        Ok(found)
    }

    /// The text that the header must stand for; `None` where it must be left out: the argument is absent, null, or not of
    /// a type that a header can mirror (which the tool's schema will refuse).
    #[must_use]
    pub fn text(&self, arguments: &Value) -> Option<String> {
        let mut value = arguments;
        for name in &self.path {
            value = value.as_object()?.get(name)?;
        }
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Number(number) => parse_integer(&number.to_string()).map(|integer| integer.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Whether a decoded header says the same as the body: integers by value, all else by text.
    #[must_use]
    pub fn agrees(&self, header: &str, body: &str) -> bool {
        header == body
            || (self.kind == ParamKind::Integer
                && parse_integer(header).is_some_and(|n| Some(n) == parse_integer(body)))
    }
}

/// The integer that a number stands for, however it is spelled (`42`, `42.0`, `4.2e1`), within what JavaScript holds.
fn parse_integer(text: &str) -> Option<i64> {
    const SAFE: f64 = 9_007_199_254_740_991.0;
    // JSON's numbers only: Rust's own parser also takes "inf" and "+1".
    let number: f64 = serde_json::from_str(text).ok()?;
    // Within 2^53 every integral f64 is that integer exactly.
    (number.fract() == 0.0 && number.abs() <= SAFE).then_some(number as i64)
}

fn collect_annotations(
    schema: &Map<String, Value>,
    path: &mut Vec<String>,
    found: &mut Vec<ParamHeader>,
) -> Result<(), AnnotationError> {
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    let Value::Object(property) = property else {
                        continue;
                    };
                    path.push(name.clone());
                    collect_annotations(property, path, found)?;
                    path.pop();
                }
            }
            (ANNOTATION, annotation) => read_annotation(schema, annotation, path, found)?,
            // The values of these keywords are data, not schemas.
            ("default" | "const" | "enum" | "examples", _) => {}
            (_, value) => refuse_annotation(value)?,
        }
    }
    Ok(())
}

fn read_annotation(
    schema: &Map<String, Value>,
    annotation: &Value,
    path: &[String],
    found: &mut Vec<ParamHeader>,
) -> Result<(), AnnotationError> {
    let name = match annotation {
        Value::String(name) if is_token(name) => name,
        other => return Err(AnnotationError::NotAToken(other.to_string())),
    };
    let kind = match schema.get("type").and_then(Value::as_str) {
        Some("string") => ParamKind::String,
        Some("integer") => ParamKind::Integer,
        Some("boolean") => ParamKind::Boolean,
        _ => return Err(AnnotationError::NotPrimitive(name.clone())),
    };
    if path.is_empty() {
        return Err(AnnotationError::Unreachable(name.clone()));
    }
    if found.iter().any(|other| other.name.eq_ignore_ascii_case(name)) {
        return Err(AnnotationError::Duplicate(name.clone()));
    }
    found.push(ParamHeader { name: name.clone(), path: path.to_vec(), kind });
    Ok(())
}

/// No annotation may stand anywhere in `value`.
fn refuse_annotation(value: &Value) -> Result<(), AnnotationError> {
    match value {
        Value::Object(object) => match object.get(ANNOTATION) {
            Some(Value::String(name)) => Err(AnnotationError::Unreachable(name.clone())),
            _ => object.values().try_for_each(refuse_annotation),
        },
        Value::Array(values) => values.iter().try_for_each(refuse_annotation),
        _ => Ok(()),
    }
}

/// RFC 9110 §5.6.2.
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token_byte)
}

pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

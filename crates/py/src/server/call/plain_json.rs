//! Fast path: writes values of plain Python types as JSON, exactly as the serializer of the annotation would.
//!
//! Constraint: only exact types whose JSON leaves no choice (`int` of 64 bits, `bool`, `None`, `str`, and lists and dictionaries of
//! them). The serializer writes everything else: a subclass, a float, a longer integer, invalid text.

use std::fmt::Write as _;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString};

/// Deepest nesting that the fast path writes.
const DEEPEST: usize = 32;

/// Return type of a function, as its annotation states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plain {
    /// One value. The structured result is `{"result": …}`.
    One(PlainType),
    /// A dictionary of text to such values.
    Object(PlainType),
}

/// Type of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlainType {
    Int,
    Bool,
    Text,
    Any,
}

impl Plain {
    pub(crate) fn parse_name(name: &str) -> PyResult<Self> {
        Ok(match name {
            "int" => Self::One(PlainType::Int),
            "bool" => Self::One(PlainType::Bool),
            "dict[int]" => Self::Object(PlainType::Int),
            "dict[bool]" => Self::Object(PlainType::Bool),
            "dict[str]" => Self::Object(PlainType::Text),
            "dict" => Self::Object(PlainType::Any),
            other => return Err(PyValueError::new_err(format!("there is no plain value {other:?}"))),
        })
    }

    /// Returns the value's JSON, or `None` where the serializer has to write it.
    pub(crate) fn to_json(self, value: &Bound<'_, PyAny>) -> Option<String> {
        let mut json = String::with_capacity(128);
        match self {
            Self::One(kind) => append_value(value, kind, &mut json, DEEPEST),
            Self::Object(kind) => append_object(value.cast_exact().ok()?, kind, &mut json, DEEPEST),
        }?;
        Some(json)
    }
}

fn append_value(value: &Bound<'_, PyAny>, kind: PlainType, json: &mut String, deepest: usize) -> Option<()> {
    match kind {
        PlainType::Int => append_number(value.cast_exact().ok()?, json),
        PlainType::Bool => append_truth(value.cast_exact().ok()?, json),
        PlainType::Text => append_text(value.cast_exact().ok()?, json),
        PlainType::Any => append_any(value, json, deepest.checked_sub(1)?),
    }
}

fn append_any(value: &Bound<'_, PyAny>, json: &mut String, deepest: usize) -> Option<()> {
    if let Ok(value) = value.cast_exact::<PyString>() {
        append_text(value, json)
    } else if let Ok(value) = value.cast_exact::<PyInt>() {
        append_number(value, json)
    } else if let Ok(value) = value.cast_exact::<PyDict>() {
        append_object(value, PlainType::Any, json, deepest)
    } else if let Ok(value) = value.cast_exact::<PyList>() {
        append_list(value, json, deepest)
    } else if let Ok(value) = value.cast_exact::<PyBool>() {
        append_truth(value, json)
    } else if value.is_none() {
        json.push_str("null");
        Some(())
    } else {
        None
    }
}

fn append_object(value: &Bound<'_, PyDict>, kind: PlainType, json: &mut String, deepest: usize) -> Option<()> {
    json.push('{');
    let mut is_first = true;
    // No Python code runs in this loop, so the dictionary does not change.
    for (key, value) in value {
        if !std::mem::take(&mut is_first) {
            json.push(',');
        }
        append_text(key.cast_exact().ok()?, json)?;
        json.push(':');
        append_value(&value, kind, json, deepest)?;
    }
    json.push('}');
    Some(())
}

fn append_list(value: &Bound<'_, PyList>, json: &mut String, deepest: usize) -> Option<()> {
    json.push('[');
    let mut is_first = true;
    for value in value {
        if !std::mem::take(&mut is_first) {
            json.push(',');
        }
        append_value(&value, PlainType::Any, json, deepest)?;
    }
    json.push(']');
    Some(())
}

fn append_number(value: &Bound<'_, PyInt>, json: &mut String) -> Option<()> {
    write!(json, "{}", value.extract::<i64>().ok()?).ok()
}

fn append_truth(value: &Bound<'_, PyBool>, json: &mut String) -> Option<()> {
    json.push_str(if value.is_true() { "true" } else { "false" });
    Some(())
}

fn append_text(value: &Bound<'_, PyString>, json: &mut String) -> Option<()> {
    let text = value.to_str().ok()?;
    if text.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        json.push_str(&serde_json::to_string(text).ok()?);
    } else {
        json.push('"');
        json.push_str(text);
        json.push('"');
    }
    Some(())
}

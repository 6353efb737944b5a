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
    One(Kind),
    /// A dictionary of text to such values.
    Object(Kind),
}

/// Type of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Bool,
    Text,
    Any,
}

impl Plain {
    pub(crate) fn parse(name: &str) -> PyResult<Self> {
        Ok(match name {
            "int" => Self::One(Kind::Int),
            "bool" => Self::One(Kind::Bool),
            "dict[int]" => Self::Object(Kind::Int),
            "dict[bool]" => Self::Object(Kind::Bool),
            "dict[str]" => Self::Object(Kind::Text),
            "dict" => Self::Object(Kind::Any),
            other => return Err(PyValueError::new_err(format!("there is no plain value {other:?}"))),
        })
    }

    /// Returns the value's JSON, or `None` where the serializer has to write it.
    pub(crate) fn json(self, value: &Bound<'_, PyAny>) -> Option<String> {
        let mut json = String::with_capacity(128);
        match self {
            Self::One(kind) => append(value, kind, &mut json, DEEPEST),
            Self::Object(kind) => object(value.cast_exact().ok()?, kind, &mut json, DEEPEST),
        }?;
        Some(json)
    }
}

fn append(value: &Bound<'_, PyAny>, kind: Kind, json: &mut String, deepest: usize) -> Option<()> {
    match kind {
        Kind::Int => number(value.cast_exact().ok()?, json),
        Kind::Bool => truth(value.cast_exact().ok()?, json),
        Kind::Text => text(value.cast_exact().ok()?, json),
        Kind::Any => any(value, json, deepest.checked_sub(1)?),
    }
}

fn any(value: &Bound<'_, PyAny>, json: &mut String, deepest: usize) -> Option<()> {
    if let Ok(value) = value.cast_exact::<PyString>() {
        text(value, json)
    } else if let Ok(value) = value.cast_exact::<PyInt>() {
        number(value, json)
    } else if let Ok(value) = value.cast_exact::<PyDict>() {
        object(value, Kind::Any, json, deepest)
    } else if let Ok(value) = value.cast_exact::<PyList>() {
        list(value, json, deepest)
    } else if let Ok(value) = value.cast_exact::<PyBool>() {
        truth(value, json)
    } else if value.is_none() {
        json.push_str("null");
        Some(())
    } else {
        None
    }
}

fn object(value: &Bound<'_, PyDict>, kind: Kind, json: &mut String, deepest: usize) -> Option<()> {
    json.push('{');
    let mut is_first = true;
    // No Python code runs in this loop, so the dictionary does not change.
    for (key, value) in value {
        if !std::mem::take(&mut is_first) {
            json.push(',');
        }
        text(key.cast_exact().ok()?, json)?;
        json.push(':');
        append(&value, kind, json, deepest)?;
    }
    json.push('}');
    Some(())
}

fn list(value: &Bound<'_, PyList>, json: &mut String, deepest: usize) -> Option<()> {
    json.push('[');
    let mut is_first = true;
    for value in value {
        if !std::mem::take(&mut is_first) {
            json.push(',');
        }
        append(&value, Kind::Any, json, deepest)?;
    }
    json.push(']');
    Some(())
}

fn number(value: &Bound<'_, PyInt>, json: &mut String) -> Option<()> {
    write!(json, "{}", value.extract::<i64>().ok()?).ok()
}

fn truth(value: &Bound<'_, PyBool>, json: &mut String) -> Option<()> {
    json.push_str(if value.is_true() { "true" } else { "false" });
    Some(())
}

fn text(value: &Bound<'_, PyString>, json: &mut String) -> Option<()> {
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

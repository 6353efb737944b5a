//! Values of Python's plainest types as JSON: what the serializer of the annotation would write of them, without asking it.
//!
//! Constraint: only exact types whose JSON leaves no choice (`int` of 64 bits, `bool`, `None`, `str`, and lists and dictionaries
//! of them): a subclass, a float, a long number, text that is none is whoever's who has the last word.

use std::fmt::Write as _;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString};

/// Deeper values are left alone.
const DEEPEST: usize = 32;

/// What a function says that it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plain {
    /// One value, which programs get as `{"result": …}`.
    One(Kind),
    /// A dictionary of text to such values.
    Object(Kind),
}

/// What a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Bool,
    Text,
    Any,
}

impl Plain {
    pub(super) fn parse(name: &str) -> PyResult<Self> {
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

    /// The value's JSON; `None` where it isn't surely this.
    pub(super) fn json(self, value: &Bound<'_, PyAny>) -> Option<String> {
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
    // Nothing of Python's runs meanwhile, so that it stays as it is.
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

//! Writes the return value of a function as the members of a tool's result.
//!
//! Constraint: text is written from Python's own bytes, escaped once; what is JSON already is copied, not parsed.

use mcpace_serve::RawReply;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyString, PyTuple};

use crate::server::call::plain_json::Plain;

/// How a function's value becomes a result.
pub(crate) struct Output {
    shape: OutputKind,
    finish: Option<Py<PyAny>>,
    /// Return type of [`OutputKind::Structured`] that is written without `finish`.
    plain: Option<Plain>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputKind {
    /// The value is a `str`: one block of text.
    Text,
    /// As [`OutputKind::Text`], and `{"result": …}` for programs.
    WrappedText,
    /// `finish` makes a pair: JSON for programs, and the text, where it isn't that JSON's; or a whole result's JSON.
    Structured,
    /// The value is a whole result's JSON.
    Finished,
    /// `finish` makes a whole result's JSON.
    Custom,
}

impl Output {
    pub(crate) fn parse_output(name: &str, finish: Option<Py<PyAny>>, plain: Option<&str>) -> PyResult<Self> {
        let shape = match name {
            "text" => OutputKind::Text,
            "wrapped-text" => OutputKind::WrappedText,
            "structured" => OutputKind::Structured,
            "finished" => OutputKind::Finished,
            "custom" => OutputKind::Custom,
            other => return Err(PyValueError::new_err(format!("there is no output {other:?}"))),
        };
        if shape == OutputKind::Custom && finish.is_none() {
            return Err(PyValueError::new_err(format!("the output {name:?} needs finish")));
        }
        let plain = plain.map(Plain::parse_name).transpose()?;
        if plain.is_some() && (shape != OutputKind::Structured || finish.is_none()) {
            return Err(PyValueError::new_err(format!(
                "plain is for structured outputs with finish, not for {name:?}"
            )));
        }
        Ok(Self { shape, finish, plain })
    }

    /// Output of a function whose return value is not sent.
    pub(crate) fn no_output() -> Self {
        Self { shape: OutputKind::Finished, finish: None, plain: None }
    }

    pub(crate) fn write_value(&self, value: &Bound<'_, PyAny>, reply: &mut RawReply) -> PyResult<()> {
        match self.shape {
            OutputKind::Text | OutputKind::WrappedText => match value.cast::<PyString>() {
                Ok(text) => {
                    let text = text.to_str()?;
                    let is_wrapped = self.shape == OutputKind::WrappedText;
                    reply
                        .write(|writer| if is_wrapped { writer.wrapped_text(text) } else { writer.text(text) })
                        .map_err(|error| PyValueError::new_err(error.to_string()))
                }
                // Its annotation said otherwise: whoever can make a result of anything may.
                Err(_) if self.finish.is_some() => write_whole(&self.finish_value(value)?, reply),
                Err(_) => Err(PyTypeError::new_err(format!("returned {}, not str", value.get_type().name()?))),
            },
            OutputKind::Structured => self.write_structured(value, reply),
            OutputKind::Finished => write_whole(value, reply),
            OutputKind::Custom => write_whole(&self.finish_value(value)?, reply),
        }
    }

    /// The value as JSON text.
    pub(crate) fn value_text(&self, value: &Bound<'_, PyAny>) -> PyResult<String> {
        text_of(&self.finish_value(value)?).map(str::to_owned)
    }

    fn write_structured(&self, value: &Bound<'_, PyAny>, reply: &mut RawReply) -> PyResult<()> {
        if let Some(plain) = self.plain
            && let Some(json) = plain.to_json(value)
        {
            return match plain {
                Plain::Object(_) => reply.write(|writer| writer.indented_json(&json)),
                Plain::One(_) => {
                    let wrapped = format!("{{\"result\":{json}}}");
                    reply.write(|writer| writer.structured_json(&json, &wrapped))
                }
            }
            .map_err(|error| PyValueError::new_err(error.to_string()));
        }
        let finished = self.finish_value(value)?;
        let Ok(pair) = finished.cast::<PyTuple>() else { return write_whole(&finished, reply) };
        let (json, told) = (pair.get_item(0)?, pair.get_item(1)?);
        let json = text_of(&json)?;
        let is_that = told.is_instance_of::<PyBool>();
        let told = if is_that { json } else { text_of(&told)? };
        reply
            .write(|writer| if is_that { writer.indented_json(json) } else { writer.structured_json(told, json) })
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn finish_value<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match &self.finish {
            Some(finish) => finish.bind(value.py()).call1((value,)),
            None => Ok(value.clone()),
        }
    }
}

fn write_whole(json: &Bound<'_, PyAny>, reply: &mut RawReply) -> PyResult<()> {
    let json = text_of(json)?;
    reply
        .write(|writer| writer.result_json(json))
        .map_err(|error| PyValueError::new_err(format!("the result is no CallToolResult: {error}")))
}

/// `bytes` or `str`, without a copy.
pub(crate) fn text_of<'v>(value: &'v Bound<'_, PyAny>) -> PyResult<&'v str> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return std::str::from_utf8(bytes.as_bytes()).map_err(|error| PyValueError::new_err(error.to_string()));
    }
    value.cast::<PyString>()?.to_str()
}

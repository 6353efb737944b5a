//! HTTP headers as a Python dictionary.

use mcpace_serve::Headers;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Headers by lower-case name; of several values of a name, all, joined by commas.
pub(crate) fn headers_by_name<'py>(py: Python<'py>, headers: &Headers) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in headers.iter() {
        let name = name.to_ascii_lowercase();
        // As HTTP's own bytes: Latin-1 (RFC 9110 §5.5), the reading of ASGI servers.
        let value: String = value.iter().map(|&byte| char::from(byte)).collect();
        let value = match dict.get_item(&name)? {
            Some(before) => format!("{}, {value}", before.extract::<String>()?),
            None => value,
        };
        dict.set_item(name, value)?;
    }
    Ok(dict)
}

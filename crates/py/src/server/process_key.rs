//! The key of servers that are given none: random for each, unless this process is one of several that must open what the
//! others sealed.

use std::sync::OnceLock;

use pyo3::prelude::*;

use crate::problem::UsageProblem;

static KEY: OnceLock<[u8; 32]> = OnceLock::new();

/// Sets the key of servers made from now on that are given none. 32 bytes; once in a process.
#[pyfunction]
pub(crate) fn set_process_key(key: &[u8]) -> PyResult<()> {
    let key = key.try_into().map_err(|_| UsageProblem::new_err(format!("a key has 32 bytes, not {}", key.len())))?;
    KEY.set(key).map_err(|_| UsageProblem::new_err("this process has a key already"))
}

/// The key, where there is one.
pub(crate) fn process_key() -> Option<[u8; 32]> {
    KEY.get().copied()
}

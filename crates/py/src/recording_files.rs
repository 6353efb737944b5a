//! Saved recordings, read from their files.

use std::fs::File;
use std::io::BufReader;

use mcpace_record::Reader;
use pyo3::prelude::*;

use crate::problem::{OrRaise, UsageProblem};

/// Reads several recordings as one. Each keeps its connections, exchanges and operations to itself.
pub(crate) fn read_together(paths: &[String]) -> PyResult<mcpace_record::Recording> {
    let mut parts = paths.iter().map(|path| read_recording(path));
    let mut whole = parts.next().ok_or_else(|| UsageProblem::new_err("no recording to put beside another"))??;
    for part in parts {
        whole.beside(part?);
    }
    Ok(whole)
}

/// Reads a recording whole.
pub(crate) fn read_recording(path: &str) -> PyResult<mcpace_record::Recording> {
    Reader::read(open_recording(path)?).or_raise()
}

/// Opens a file for reading.
pub(crate) fn open_recording(path: &str) -> PyResult<BufReader<File>> {
    let file = File::open(path).map_err(|error| UsageProblem::new_err(format!("cannot read {path}: {error}")))?;
    Ok(BufReader::new(file))
}

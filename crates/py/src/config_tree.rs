//! `parse_config`: the values of a configuration text with their places.

use mcpace_config_tree::{Format, Member, Node, Value, parse_config as parse};
use pyo3::prelude::*;

use crate::problem::UsageProblem;

/// A value of a configuration and its place: `start` and `end` are offsets in the bytes of the text.
#[pyclass(module = "mcpace._core", frozen, get_all)]
pub(crate) struct ConfigNode {
    start: usize,
    end: usize,
    /// A string's text.
    text: Option<String>,
    /// An array's values.
    items: Option<Vec<Py<ConfigNode>>>,
    /// A table's members.
    members: Option<Vec<Py<ConfigMember>>>,
    /// Whether the members stand on lines of their own.
    has_lines: bool,
}

/// A member of a table: its name, the place of its name, and its value.
#[pyclass(module = "mcpace._core", frozen, get_all)]
pub(crate) struct ConfigMember {
    name: String,
    start: usize,
    end: usize,
    node: Py<ConfigNode>,
}

/// Parses a configuration: JSON with comments and trailing commas, or TOML.
#[pyfunction]
#[pyo3(signature = (text, *, toml=false))]
pub(crate) fn parse_config(py: Python<'_>, text: &str, toml: bool) -> PyResult<Py<ConfigNode>> {
    let format = if toml { Format::Toml } else { Format::Json };
    let node = parse(text, format).map_err(|error| UsageProblem::new_err(error.to_string()))?;
    python_node(py, node)
}

fn python_node(py: Python<'_>, node: Node) -> PyResult<Py<ConfigNode>> {
    let (start, end) = (node.range.start, node.range.end);
    let mut seen = ConfigNode { start, end, text: None, items: None, members: None, has_lines: false };
    match node.value {
        Value::Text(text) => seen.text = Some(text),
        Value::List(items) => {
            seen.items = Some(items.into_iter().map(|item| python_node(py, item)).collect::<PyResult<_>>()?);
        }
        Value::Table { members, has_lines } => {
            let members = members.into_iter().map(|member| python_member(py, member));
            seen.members = Some(members.collect::<PyResult<_>>()?);
            seen.has_lines = has_lines;
        }
        Value::Other => {}
    }
    Py::new(py, seen)
}

fn python_member(py: Python<'_>, member: Member) -> PyResult<Py<ConfigMember>> {
    let (start, end) = (member.name_range.start, member.name_range.end);
    let node = python_node(py, member.node)?;
    Py::new(py, ConfigMember { name: member.name, start, end, node })
}

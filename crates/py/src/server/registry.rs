//! `Server`: what is registered, before and while it is served.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcpace_serve::{Changes, Tool, http};
use mcpace_wire::mcp;
use pyo3::prelude::*;

use super::delegate::PythonDelegate;
use super::handler::Handler;
use super::options::HttpOptions;
use super::output::text_of;
use super::running::Running;
use super::tool::PythonTool;
use crate::problem::{OrRaise, RegistrationProblem};

/// A registry of Python functions, served by the runtime as often as wanted.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Server {
    inner: mcpace_serve::Server,
    known: Mutex<HashSet<(Sort, String)>>,
}

/// What can be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Sort {
    Tool,
}

impl Sort {
    fn name(self) -> &'static str {
        match self {
            Sort::Tool => "tool",
        }
    }
}

#[pymethods]
impl Server {
    #[new]
    #[pyo3(signature = (name, version, *, title=None, description=None, instructions=None, website_url=None,
                        keep_headers=false))]
    fn new(
        name: String,
        version: String,
        title: Option<String>,
        description: Option<String>,
        instructions: Option<String>,
        website_url: Option<String>,
        keep_headers: bool,
    ) -> PyResult<Self> {
        let mut builder = mcpace_serve::Server::builder(name, version).keep_headers(keep_headers);
        if let Some(title) = title {
            builder = builder.title(title);
        }
        if let Some(description) = description {
            builder = builder.description(description);
        }
        if let Some(instructions) = instructions {
            builder = builder.instructions(instructions);
        }
        if let Some(url) = website_url {
            builder = builder.website(url);
        }
        Ok(Self { inner: builder.build().or_raise()?, known: Mutex::default() })
    }

    /// Registers a tool; `listed` is its JSON as `tools/list` tells it.
    #[pyo3(signature = (listed, handler, *, timeout_s=None))]
    fn add_tool(
        &self,
        py: Python<'_>,
        listed: &Bound<'_, PyAny>,
        handler: &Handler,
        timeout_s: Option<f64>,
    ) -> PyResult<()> {
        let _ = timeout_s;
        let listed: mcp::Tool = read("tool", listed)?;
        let name = listed.name.clone();
        let tool = Tool::raw(listed, PythonTool { callable: handler.inner.clone() });
        self.add(py, Sort::Tool, name, |changes| changes.tool(tool))
    }

    /// Takes a tool away; tells whether there was one.
    fn remove_tool(&self, py: Python<'_>, name: String) -> PyResult<bool> {
        self.remove(py, Sort::Tool, name, Changes::remove_tool)
    }

    /// Puts a server with handlers of its own behind the registry; see `delegate`.
    fn delegate(&self, submit: Py<PyAny>, methods: Vec<String>) -> PyResult<()> {
        if !self.inner.delegate(PythonDelegate::new(submit, &methods)?) {
            return Err(RegistrationProblem::new_err("there is a delegate already"));
        }
        Ok(())
    }

    /// Serves over HTTP; returns at once.
    fn serve_http(&self, py: Python<'_>, options: &HttpOptions) -> PyResult<Running> {
        let options = options.resolve();
        let server = self.inner.clone();
        let running = py.detach(|| http::serve(server, options)).or_raise()?;
        Ok(Running::new(running))
    }
}

impl Server {
    fn known(&self) -> MutexGuard<'_, HashSet<(Sort, String)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, py: Python<'_>, sort: Sort, name: String, change: impl FnOnce(&mut Changes) + Send) -> PyResult<()> {
        // Clients are told, which can take a lock that another thread of Python's holds.
        py.detach(|| {
            if !self.known().insert((sort, name.clone())) {
                return Err(RegistrationProblem::new_err(format!("{} {name:?} is there twice", sort.name())));
            }
            self.inner.update(change).map_err(|error| {
                self.known().remove(&(sort, name));
                RegistrationProblem::new_err(error.to_string())
            })
        })
    }

    fn remove(
        &self,
        py: Python<'_>,
        sort: Sort,
        name: String,
        change: impl FnOnce(&mut Changes, &str) + Send,
    ) -> PyResult<bool> {
        py.detach(|| {
            let removed = self.known().remove(&(sort, name.clone()));
            self.inner.update(|changes| change(changes, &name)).or_raise()?;
            Ok(removed)
        })
    }
}

fn read<T: serde::de::DeserializeOwned>(kind: &str, listed: &Bound<'_, PyAny>) -> PyResult<T> {
    serde_json::from_str(text_of(listed)?)
        .map_err(|error| RegistrationProblem::new_err(format!("the {kind}'s description can't be read: {error}")))
}

//! `AccessRequest`: the caller and the tool, resource or prompt that it wants, as a Python permission sees them.

use mcpace_serve::{Headers, Principal, guard};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::server::auth::token_object;
use crate::server::call::header_dict;

/// One access request. Python objects of its members are made when they are read.
#[pyclass(module = "mcpace._core", frozen)]
#[derive(Clone)]
pub(crate) struct AccessRequest {
    kind: &'static str,
    name: String,
    uri: Option<String>,
    principal: Option<Principal>,
    session: Option<String>,
    headers: Option<Headers>,
    transport: &'static str,
    listing: bool,
}

impl AccessRequest {
    pub(crate) fn from_guard(asked: &guard::AccessRequest<'_>) -> Self {
        Self {
            kind: asked.kind.as_str(),
            name: asked.name.to_owned(),
            uri: asked.uri.map(str::to_owned),
            principal: asked.principal.cloned(),
            session: asked.session.map(str::to_owned),
            headers: asked.headers(),
            transport: asked.transport().as_str(),
            listing: asked.listing,
        }
    }
}

#[pymethods]
impl AccessRequest {
    #[getter]
    fn kind(&self) -> &'static str {
        self.kind
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The resource that is read by a template.
    #[getter]
    fn uri(&self) -> Option<&str> {
        self.uri.as_deref()
    }

    /// Return value of the token verifier.
    #[getter]
    fn principal(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.principal.as_ref().map_or(Ok(None), |principal| token_object::principal_of(py, principal))
    }

    #[getter]
    fn session_id(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// As `Context.headers`; `None` where there are none.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.headers.as_ref().map(|headers| header_dict::headers_by_name(py, headers)).transpose()
    }

    /// Transport of the request.
    #[getter]
    fn transport(&self) -> &'static str {
        self.transport
    }

    #[getter]
    fn listing(&self) -> bool {
        self.listing
    }

    fn __repr__(&self) -> String {
        format!("AccessRequest({} {:?}{})", self.kind, self.name, if self.listing { ", listing" } else { "" })
    }
}

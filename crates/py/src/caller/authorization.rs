//! Guards asked for a caller of this process, who runs the function himself.

use std::pin::Pin;

use mcpace_serve::guard::ComponentKind;
use mcpace_serve::{Principal, Server as Inner};
use pyo3::prelude::*;

use super::pending::{Given, Pending};
use crate::problem::UsageProblem;
use crate::server::{Exchange, Server, on_behalf};

/// Takes what a request would take before its handler runs: a [`Pending`] of nothing, or of the JSON-RPC reply that refuses.
#[pyfunction]
#[pyo3(signature = (server, kind, name, principal=None, *, uri=None))]
pub(crate) fn admit(
    py: Python<'_>,
    server: &Bound<'_, Server>,
    kind: &str,
    name: String,
    principal: Option<&Bound<'_, PyAny>>,
    uri: Option<String>,
) -> PyResult<Pending> {
    let (kind, principal, server) = read_request(py, server, kind, principal)?;
    let admitted = server.admit(kind, name, uri, principal);
    let work = async move {
        match admitted.await {
            Ok(()) => Ok(Given::Nothing),
            Err(reply) => Ok(Given::Text(String::from_utf8_lossy(&reply.message).into_owned())),
        }
    };
    Ok(Pending::new(work, None))
}

/// Whether a list would show them, to a caller of this process or to who sent a request: a [`Pending`] of a list of bools.
#[pyfunction]
#[pyo3(signature = (server, kind, names, principal=None, *, exchange=None))]
pub(crate) fn may_see(
    py: Python<'_>,
    server: &Bound<'_, Server>,
    kind: &str,
    names: Vec<String>,
    principal: Option<&Bound<'_, PyAny>>,
    exchange: Option<&Bound<'_, Exchange>>,
) -> PyResult<Pending> {
    let (kind, principal, server) = read_request(py, server, kind, principal)?;
    let seen: Pin<Box<dyn Future<Output = Vec<bool>> + Send>> = match exchange {
        Some(exchange) => Box::pin(exchange.get().may_see(kind, names)),
        None => Box::pin(server.may_see(kind, names, principal)),
    };
    let work = async move {
        let seen = seen.await;
        Ok(Given::Object(Box::new(move |py| Ok(seen.into_pyobject(py)?.into_any().unbind()))))
    };
    Ok(Pending::new(work, None))
}

fn read_request(
    py: Python<'_>,
    server: &Bound<'_, Server>,
    kind: &str,
    principal: Option<&Bound<'_, PyAny>>,
) -> PyResult<(ComponentKind, Option<Principal>, Inner)> {
    let kinds = [ComponentKind::Tool, ComponentKind::Resource, ComponentKind::Template, ComponentKind::Prompt];
    let kind = kinds.into_iter().find(|one| one.as_str() == kind);
    let kind = kind.ok_or_else(|| UsageProblem::new_err("there are tool, resource, template and prompt"))?;
    let principal = principal.map_or(Ok(None), on_behalf)?;
    Ok((kind, principal, server.get().begin(py)?))
}

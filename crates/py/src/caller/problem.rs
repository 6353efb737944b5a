//! Failures of a client as facts, from which `mcpace.client` makes its exceptions.

use mcpace_client::ClientError;
use pyo3::prelude::*;

use crate::problem::{CallProblem, IntoPython, UsageProblem};

impl IntoPython for ClientError {
    fn into_python(self) -> PyErr {
        let (code, text) = (self.code(), self.to_string());
        match self {
            ClientError::BadTarget { .. } | ClientError::BadHeader { .. } | ClientError::BadParams { .. } => {
                UsageProblem::new_err(text)
            }
            ClientError::Rpc { error, .. } | ClientError::InputRefused { error, .. } => {
                let data = error.data.map(|data| data.get().to_owned());
                CallProblem::new_err((code, text, Some((error.code, error.message, data))))
            }
            _ => CallProblem::new_err((code, text, None::<(i64, String, Option<String>)>)),
        }
    }
}

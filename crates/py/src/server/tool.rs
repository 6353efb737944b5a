//! A tool whose handler is Python's: where its calls run.

use std::sync::Arc;
use std::time::Instant;

use mcpace_serve::{RawAnswer, RawCall, RawHandler, RawReply};
use pyo3::prelude::*;

use super::handler::Callable;

/// See the module.
pub(super) struct PythonTool {
    pub(super) callable: Arc<Callable>,
}

impl RawHandler for PythonTool {
    fn call(&self, call: RawCall<'_>) -> RawAnswer {
        let arguments = call.arguments();
        let mut reply = call.reply();
        let outcome = Python::attach(|py| {
            let called = || {
                let keywords = self.callable.keywords(py, arguments.as_bytes())?;
                self.callable.call(&keywords)
            };
            match called() {
                Ok(value) => self.callable.write(&value, &mut reply),
                Err(error) => Err(self.callable.failed(py, error)),
            }
        });
        RawAnswer::Now(reply.done(outcome))
    }
}

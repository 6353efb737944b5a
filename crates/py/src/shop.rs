//! `Shop`, the product API of the shop workload, and `Null`, the server that does nothing.

use std::net::IpAddr;
use std::sync::Mutex;

use pyo3::prelude::*;

use crate::problem::{EnvironmentProblem, OrRaise, UsageProblem};

/// The shop's product API on loopback, on a thread of its own.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Shop {
    running: Mutex<Option<mcpace_target::RunningShop>>,
    #[pyo3(get)]
    url: String,
}

#[pymethods]
impl Shop {
    #[new]
    #[pyo3(signature = (*, port=0, products=mcpace_target::PRODUCTS))]
    fn new(port: u16, products: u32) -> PyResult<Self> {
        let shop = mcpace_target::RunningShop::start(port, products).or_raise()?;
        Ok(Self { url: shop.url(), running: Mutex::new(Some(shop)) })
    }

    /// How many requests it has answered; `None` once it was stopped.
    fn requests(&self) -> Option<u64> {
        self.running.lock().ok()?.as_ref().map(mcpace_target::RunningShop::requests)
    }

    /// Ends it. Does nothing the second time.
    fn stop(&self, py: Python<'_>) {
        let shop = self.running.lock().ok().and_then(|mut running| running.take());
        // Joins its thread.
        py.detach(|| drop(shop));
    }
}

/// The null server, on threads of its own.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Null {
    running: Mutex<Option<mcpace_target::Null>>,
    #[pyo3(get)]
    url: String,
    #[pyo3(get)]
    workers: usize,
}

#[pymethods]
impl Null {
    #[new]
    #[pyo3(signature = (*, host="127.0.0.1", port=0, workers=None))]
    fn new(host: &str, port: u16, workers: Option<usize>) -> PyResult<Self> {
        let host: IpAddr = host.parse().map_err(|_| UsageProblem::new_err(format!("{host} is no IP address")))?;
        let workers = match workers {
            Some(workers) => workers,
            None => std::thread::available_parallelism()
                .map_err(|error| EnvironmentProblem::new_err(format!("cannot count this machine's cores: {error}")))?
                .get(),
        };
        let null = mcpace_target::Null::start(host, port, workers).or_raise()?;
        Ok(Self { url: null.url(), workers: null.workers(), running: Mutex::new(Some(null)) })
    }

    /// Ends it. Does nothing the second time.
    fn stop(&self, py: Python<'_>) {
        let null = self.running.lock().ok().and_then(|mut running| running.take());
        // Joins its threads.
        py.detach(|| drop(null));
    }
}

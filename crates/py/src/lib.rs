//! The only crate that knows Python: `mcpace._core`, the lab's instruments for Python.
//!
//! Design constraint: a thin face. Every class holds one value of another crate and hands JSON-shaped facts over;
//! nothing is decided here. Blocking calls release the interpreter's lock and can be interrupted by Ctrl-C. The types
//! as Python sees them are in `python/mcpace/_core.pyi`.

mod attaching;
mod caller;
mod client;
mod config_tree;
mod event_loop;
mod explained;
mod inside;
#[cfg(windows)]
mod job_object;
mod json;
mod load;
mod log_line;
mod loop_waker;
mod problem;
mod recorder;
mod recording;
mod recording_files;
mod runtime;
mod seconds;
mod server;
mod shop;
mod span_files;
mod target;

use pyo3::prelude::*;

/// Replies are made on one thread and freed on another, which the system's allocator takes its time over.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The compiled part of mcpace.
#[pymodule]
mod _core {
    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_export]
    use super::caller::{Caller, Listening, Pending, Question, admit, may_see};
    #[pymodule_export]
    use super::client::Client;
    #[pymodule_export]
    use super::config_tree::{ConfigMember, ConfigNode, parse_config};
    #[pymodule_export]
    use super::explained::{Explained, catalogue, explained_at, explained_spans};
    #[pymodule_export]
    use super::inside::{ProcessWatcher, SocketWatcher, SpanReceiver, StackSampler};
    #[cfg(windows)]
    #[pymodule_export]
    use super::job_object::JobObject;
    #[pymodule_export]
    use super::load::Load;
    #[pymodule_export]
    use super::problem::{
        AskProblem, CallProblem, ClientProblem, EnvironmentProblem, InputRequired, Problem, RegistrationProblem,
        UsageProblem,
    };
    #[pymodule_export]
    use super::recorder::{Recorder, record_stdio};
    #[pymodule_export]
    use super::recording::Recording;
    #[pymodule_export]
    use super::server::{
        AccessRequest, Context, Endpoint, Exchange, Guard, GuardAnswer, Handler, HttpOptions, Limiter, Observations,
        RateLimit, Reply, Running, Server, open_connections, redis_limiter, set_process_key, stop_all,
    };
    #[pymodule_export]
    use super::server::{IntrospectionVerifier, JwtVerifier, NativeVerifier, StaticVerifier, set_access_token};
    #[pymodule_export]
    use super::shop::{Null, Shop};
    #[pymodule_export]
    use super::target::{RecordedServer, Target, check_faults};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::attaching::at_exit(module.py())?;
        module.add("PROFILES", mcpace_target::Profile::ALL.map(|profile| profile.as_str()))?;
        module.add("REVISIONS", mcpace_wire::revision::Revision::ALL.map(|revision| revision.as_str()))?;
        // For benchmarks, which must not measure such a build.
        module.add("DEBUG", cfg!(debug_assertions))?;
        module.add("VERSION", env!("CARGO_PKG_VERSION"))
    }
}

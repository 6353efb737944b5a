//! The threads that Python functions run on, and the decision which of them.

pub(crate) mod awaitable;
pub(crate) mod context_variables;
pub(crate) mod coroutine_call;
pub(crate) mod event_loop_thread;
pub(crate) mod function_host;
pub(crate) mod inline_policy;
pub(crate) mod pool;
pub(crate) mod queue;
pub(crate) mod thread_time;

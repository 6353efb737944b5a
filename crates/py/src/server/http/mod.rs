//! The HTTP endpoint as Python sees it: options, applications beside it, access log.

pub(crate) mod access_log;
pub(crate) mod asgi_fallback;
pub(crate) mod connection_ends;
pub(crate) mod endpoint;
pub(crate) mod options;

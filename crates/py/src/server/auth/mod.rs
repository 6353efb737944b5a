//! Guards, permissions, rate limits and token verifiers that are written in Python.

pub(crate) mod access_request;
pub(crate) mod guards;
pub(crate) mod permission_callback;
pub(crate) mod rate_limiter;
pub(crate) mod token_object;
pub(crate) mod token_verifier;
pub(crate) mod tokens;

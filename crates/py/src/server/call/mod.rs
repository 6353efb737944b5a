//! One call of a Python function: submission, arguments, context, result.

pub(crate) mod client_question;
pub(crate) mod context;
pub(crate) mod delegate;
pub(crate) mod exceptions;
pub(crate) mod handler;
pub(crate) mod header_dict;
pub(crate) mod job;
pub(crate) mod output;
pub(crate) mod plain_json;
pub(crate) mod result_queue;
pub(crate) mod submission;
pub(crate) mod tool;
pub(crate) mod value_handlers;

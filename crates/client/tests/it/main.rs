//! The client against the runtime: the 'everything' server over each way there is, and scripted peers for what no good
//! server does.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod http;
mod life;
mod pipe;
mod protocol;
mod scripted;
mod support;

// The 'everything' server of the runtime, part by part; they name each other by `crate::`.
#[path = "../../../serve/examples/everything/ask.rs"]
mod ask;
#[path = "../../../serve/examples/everything/changes.rs"]
mod changes;
#[path = "../../../serve/examples/everything/content.rs"]
mod content;
#[path = "../../../serve/examples/everything/inputs.rs"]
mod inputs;
#[path = "../../../serve/examples/everything/jobs.rs"]
mod jobs;
#[path = "../../../serve/examples/everything/prompts.rs"]
mod prompts;
#[path = "../../../serve/examples/everything/resources.rs"]
mod resources;
#[path = "../../../serve/examples/everything/talk.rs"]
mod talk;

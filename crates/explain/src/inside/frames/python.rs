//! Files and functions of Python programs.

use super::{Origin, called_name, first_segment};
use crate::view::StackCall;

/// Packages that call tools, and check arguments and results. A server that is itself installed has its own code above theirs.
pub(super) const FRAMEWORKS: [&str; 16] = [
    "mcp",
    "fastmcp",
    "mcpace",
    "anyio",
    "starlette",
    "uvicorn",
    "pydantic",
    "click",
    "typer",
    "hypercorn",
    "sse_starlette",
    "opentelemetry",
    "trio",
    "jsonschema",
    "referencing",
    "attr",
];

/// Packages of the instrumentation, which stand between the server's code and the library that they report.
pub(super) const INSTRUMENTATION: [&str; 2] = ["opentelemetry", "wrapt"];

/// Folder of the module that instruments an interpreter as it starts, wherever mcpace is installed.
const START: &str = "/mcpace/lab/inside/start/";

/// Folder of mcpace's own program that serves a server object, wherever mcpace is installed.
const WORKER: &str = "/mcpace/lab/layers/worker/";

pub(super) fn origin_of(file: &str) -> Origin<'_> {
    if file.contains(START) {
        return Origin::Library("opentelemetry");
    }
    if file.contains(WORKER) {
        return Origin::Library("mcpace");
    }
    for folder in ["/site-packages/", "/dist-packages/"] {
        if let Some(at) = file.rfind(folder) {
            return Origin::Library(module_name(&file[at + folder.len()..]));
        }
    }
    if let Some(module) = file.strip_prefix("<frozen ") {
        return Origin::Standard(module.split(['.', '>']).next().unwrap_or(module));
    }
    if file.starts_with('<') {
        return Origin::Standard("python");
    }
    if let Some(at) = file.rfind("/lib/python3") {
        let rest = &file[at + "/lib/python3".len()..];
        if let Some((_, module)) = rest.split_once('/') {
            return Origin::Standard(module_name(module));
        }
    }
    Origin::Own
}

fn module_name(path: &str) -> &str {
    let segment = first_segment(path);
    segment.strip_suffix(".py").unwrap_or(segment)
}

/// Whether a thread with this innermost call and this caller only waits for work: it is in an event loop's select, or in a
/// pool's queue. A select of other code awaits an answer, as `subprocess.run` does.
pub(super) fn waits_for_work(innermost: &StackCall<'_>, caller: Option<&StackCall<'_>>) -> bool {
    let name = called_name(innermost);
    match origin_of(innermost.file) {
        Origin::Standard("selectors") => name == "select" && caller.is_none_or(|call| serves_selector(call.file)),
        Origin::Standard("threading") => name == "wait" || name == "_wait_for_tstate_lock",
        Origin::Standard("queue") => name == "get",
        Origin::Standard("concurrent") => name == "_worker",
        Origin::Standard("asyncio") => matches!(name, "_run_once" | "select" | "run_forever"),
        Origin::Library("uvloop" | "anyio") => true,
        _ => false,
    }
}

/// Whether a file is that of an event loop or of a server, whose select waits for the next event or connection.
fn serves_selector(file: &str) -> bool {
    matches!(
        origin_of(file),
        Origin::Standard("asyncio" | "socketserver") | Origin::Library("anyio" | "trio" | "gunicorn")
    )
}

/// Whether the outermost code that is not Python's sends the spans.
pub(super) fn serves_instrumentation(stack: &[StackCall<'_>]) -> bool {
    let outermost =
        stack.iter().rev().map(|call| origin_of(call.file)).find(|origin| !matches!(origin, Origin::Standard(_)));
    outermost == Some(Origin::Library("opentelemetry"))
}

/// The path of a file within the installed packages or Python's library; the whole path of other files.
pub(super) fn path_in_package(file: &str) -> &str {
    for folder in ["/site-packages/", "/dist-packages/"] {
        if let Some(at) = file.rfind(folder) {
            return &file[at + folder.len()..];
        }
    }
    let standard = file.rfind("/lib/python3").map(|at| &file[at + "/lib/python3".len()..]);
    standard.and_then(|rest| rest.split_once('/')).map_or(file, |(_, module)| module)
}

/// Whether the call is the function that stands for `time.sleep`, which holds its thread; that for `asyncio.sleep` does not.
pub(super) fn sleeps_in_thread(innermost: &StackCall<'_>) -> bool {
    innermost.file.contains(START) && innermost.function == "sleep"
}

/// Whether the call is that of an event loop, or of a thread, that calls the code of others.
pub(super) fn begins_work(call: &StackCall<'_>) -> bool {
    let name = called_name(call);
    match origin_of(call.file) {
        Origin::Standard("asyncio") => matches!(name, "_run" | "_run_once" | "run_forever"),
        Origin::Standard("threading") => matches!(name, "run" | "_bootstrap" | "_bootstrap_inner"),
        Origin::Standard("concurrent") => name == "_worker" || name == "run",
        Origin::Library("anyio") => name == "run",
        Origin::Library("uvloop") => true,
        _ => false,
    }
}

/// Whether the call is that of an event loop that runs tasks.
pub(super) fn is_event_loop(call: &StackCall<'_>) -> bool {
    let name = called_name(call);
    match origin_of(call.file) {
        Origin::Standard("asyncio") => matches!(name, "run_forever" | "_run_once"),
        Origin::Library("uvloop") => name == "run_until_complete",
        _ => false,
    }
}

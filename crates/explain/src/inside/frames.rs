//! Where the code of a stack's calls comes from: the server's author, a library, or Python itself.

use crate::view::StackCall;

/// Where a function comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin<'a> {
    /// A file outside installed packages.
    Own,
    /// A package that was installed, by the name that is imported.
    Library(&'a str),
    /// Python's standard library, by the name of its module.
    Standard(&'a str),
}

/// Packages that call tools, and check arguments and results. A server that is itself installed has its own code above theirs.
const FRAMEWORKS: [&str; 16] = [
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

/// Folder of mcpace's own program that serves a server object, wherever mcpace is installed.
const WORKER: &str = "/mcpace/lab/layers/worker/";

/// The origin of a file's code.
pub(crate) fn origin_of(file: &str) -> Origin<'_> {
    if file.contains(WORKER) {
        return Origin::Library("mcpace");
    }
    for folder in ["/site-packages/", "/dist-packages/"] {
        if let Some(at) = file.rfind(folder) {
            return Origin::Library(first_segment(&file[at + folder.len()..]));
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
            return Origin::Standard(first_segment(module));
        }
    }
    Origin::Own
}

/// The path of a file within the installed packages or Python's library; the whole path of other files.
pub(crate) fn path_in_package(file: &str) -> &str {
    for folder in ["/site-packages/", "/dist-packages/"] {
        if let Some(at) = file.rfind(folder) {
            return &file[at + folder.len()..];
        }
    }
    let standard = file.rfind("/lib/python3").map(|at| &file[at + "/lib/python3".len()..]);
    standard.and_then(|rest| rest.split_once('/')).map_or(file, |(_, module)| module)
}

fn first_segment(path: &str) -> &str {
    let segment = path.split(['/', '\\']).next().unwrap_or(path);
    segment.strip_suffix(".py").unwrap_or(segment)
}

/// Whether a thread with this stack only waits for work: it is in an event loop's select, or in a pool's queue.
pub(crate) fn waits_for_work(stack: &[StackCall<'_>]) -> bool {
    let Some(innermost) = stack.first() else { return true };
    let name = innermost.function.rsplit('.').next().unwrap_or(innermost.function);
    match origin_of(innermost.file) {
        Origin::Standard("selectors") => name == "select",
        Origin::Standard("threading") => name == "wait" || name == "_wait_for_tstate_lock",
        Origin::Standard("queue") => name == "get",
        Origin::Standard("concurrent") => name == "_worker",
        Origin::Standard("asyncio") => matches!(name, "_run_once" | "select" | "run_forever"),
        Origin::Library("uvloop" | "anyio") => true,
        _ => false,
    }
}

/// Whether a thread with this stack works for the instrumentation: it sends the spans.
pub(crate) fn serves_instrumentation(stack: &[StackCall<'_>]) -> bool {
    let outermost =
        stack.iter().rev().map(|call| origin_of(call.file)).find(|origin| !matches!(origin, Origin::Standard(_)));
    outermost == Some(Origin::Library("opentelemetry"))
}

/// Whether the stack is that of a thread that runs an event loop.
pub(crate) fn runs_event_loop(stack: &[StackCall<'_>]) -> bool {
    stack.iter().any(|call| {
        let name = call.function.rsplit('.').next().unwrap_or(call.function);
        matches!(name, "run_forever" | "_run_once") && matches!(origin_of(call.file), Origin::Standard("asyncio"))
            || (name == "run_until_complete" && matches!(origin_of(call.file), Origin::Library("uvloop")))
    })
}

/// Position of the innermost call of the server's own code; where it is all installed, of the innermost call of the first
/// package above the frameworks.
pub(crate) fn own_call(stack: &[StackCall<'_>]) -> Option<usize> {
    match stack.iter().position(|call| origin_of(call.file) == Origin::Own) {
        Some(own) if stack[own].function != "<module>" => Some(own),
        // A program of the author's that is not in a tool; the script that starts an installed server is none.
        Some(own) if !stack[own].file.contains("/bin/") => None,
        _ => installed_call(stack),
    }
}

/// Position of the outermost call that belongs to the work of a stack: the tool's outermost call, or the first call within the
/// event loop or the thread where the tool has none.
pub(crate) fn work_root(stack: &[StackCall<'_>]) -> usize {
    let Some(own) = own_call(stack) else {
        return stack.iter().position(begins_work).map_or(stack.len(), |at| at.max(1)).saturating_sub(1);
    };
    let origin = origin_of(stack[own].file);
    let is_framework = |call: &StackCall<'_>| match origin_of(call.file) {
        found if found == origin => call.function == "<module>",
        Origin::Library(name) => FRAMEWORKS.contains(&name),
        _ => begins_work(call),
    };
    let outside = stack[own..].iter().position(is_framework).map_or(stack.len(), |at| own + at);
    stack[..outside].iter().rposition(|call| origin_of(call.file) == origin).unwrap_or(own)
}

/// Whether the call is that of an event loop, or of a thread, that calls the code of others.
fn begins_work(call: &StackCall<'_>) -> bool {
    let name = call.function.rsplit('.').next().unwrap_or(call.function);
    match origin_of(call.file) {
        Origin::Standard("asyncio") => matches!(name, "_run" | "_run_once" | "run_forever"),
        Origin::Standard("threading") => matches!(name, "run" | "_bootstrap" | "_bootstrap_inner"),
        Origin::Standard("concurrent") => name == "_worker" || name == "run",
        Origin::Library("anyio") => name == "run",
        Origin::Library("uvloop") => true,
        _ => false,
    }
}

fn installed_call(stack: &[StackCall<'_>]) -> Option<usize> {
    let mut beneath_framework = false;
    let mut package = None;
    for call in stack.iter().rev() {
        match origin_of(call.file) {
            Origin::Library(name) if FRAMEWORKS.contains(&name) => beneath_framework = true,
            Origin::Library(name) if beneath_framework => {
                package = Some(name);
                break;
            }
            _ => {}
        }
    }
    let package = package?;
    stack.iter().position(|call| origin_of(call.file) == Origin::Library(package))
}

/// The package that the innermost calls work for: code of Python itself works for what called it, and a wrapper that reports
/// a request stands between two others. `None` is the author.
pub(crate) fn working_package<'a>(stack: &[StackCall<'a>]) -> Option<&'a str> {
    let origins = stack.iter().map(|call| origin_of(call.file));
    let mut standard = None;
    for origin in origins {
        match origin {
            Origin::Standard(module) => standard = standard.or(Some(module)),
            Origin::Library("opentelemetry" | "wrapt") => {}
            Origin::Library(name) => return Some(name),
            Origin::Own => return standard,
        }
    }
    standard
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(function: &'static str, file: &'static str) -> StackCall<'static> {
        StackCall { function, file, line: 1 }
    }

    #[test]
    fn a_file_is_the_authors_a_librarys_or_pythons() {
        let cases = [
            ("/srv/weather.py", Origin::Own),
            ("/v/lib/python3.11/site-packages/httpx/_client.py", Origin::Library("httpx")),
            ("/v/lib/python3.11/site-packages/six.py", Origin::Library("six")),
            ("/usr/lib/python3.11/ssl.py", Origin::Standard("ssl")),
            ("/usr/lib/python3.11/asyncio/base_events.py", Origin::Standard("asyncio")),
            ("<frozen importlib._bootstrap>", Origin::Standard("importlib")),
            ("<string>", Origin::Standard("python")),
            ("", Origin::Own),
            ("/srv/python/mcpace/lab/layers/worker/mcpace_layers/asgi.py", Origin::Library("mcpace")),
        ];
        for (file, expected) in cases {
            assert_eq!(origin_of(file), expected, "{file}");
        }
    }

    #[test]
    fn work_begins_at_the_tool_or_within_the_event_loop() {
        let run_once = call("BaseEventLoop._run_once", "/usr/lib/python3.11/asyncio/base_events.py");
        let handle = call("Handle._run", "/usr/lib/python3.11/asyncio/events.py");
        let mcp = call("call_tool", "/l/site-packages/mcp/server.py");
        let httpx = call("Client.get", "/l/site-packages/httpx/_client.py");
        let retry = call("retry", "/l/site-packages/tenacity/__init__.py");
        let (helper, tool) = (call("fetch", "/srv/client.py"), call("forecast", "/srv/weather.py"));
        let program = call("<module>", "/srv/weather.py");
        assert_eq!(work_root(&[httpx, helper, retry, tool, mcp, handle, run_once, program]), 3);
        assert_eq!(work_root(&[httpx, helper, handle, run_once, program]), 1);
        assert_eq!(work_root(&[helper, program]), 0);
        assert_eq!(work_root(&[httpx, mcp, handle, run_once, program]), 1);
        assert_eq!(work_root(&[run_once, program]), 0);
        assert_eq!(work_root(&[]), 0);
        let files =
            [("/l/site-packages/httpx/_client.py", "httpx/_client.py"), ("/usr/lib/python3.11/ssl.py", "ssl.py")];
        for (file, path) in [files[0], files[1], ("/srv/weather.py", "/srv/weather.py"), ("<string>", "<string>")] {
            assert_eq!(path_in_package(file), path);
        }
    }

    #[test]
    fn the_own_call_is_the_authors_or_that_of_an_installed_server() {
        let mcp = call("call_tool", "/l/site-packages/mcp/server.py");
        let httpx = call("Client.__init__", "/l/site-packages/httpx/_client.py");
        let installed = call("search", "/l/site-packages/my_server/tools.py");
        let own = call("forecast", "/srv/weather.py");
        let program = call("<module>", "/srv/weather.py");
        let script = call("<module>", "/v/bin/my-server");
        assert_eq!(own_call(&[httpx, own, mcp, program]), Some(1));
        assert_eq!(own_call(&[httpx, installed, mcp]), Some(1));
        assert_eq!(own_call(&[httpx, installed, mcp, script]), Some(1));
        assert_eq!(own_call(&[mcp, program]), None);
        assert_eq!(working_package(&[call("load", "/usr/lib/python3.11/ssl.py"), httpx, own]), Some("httpx"));
        assert_eq!(working_package(&[own, mcp]), None);
    }
}

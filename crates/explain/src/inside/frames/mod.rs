//! Where the code of a stack's calls comes from: the server's author, a library, or the language itself.
//!
//! The name of a call's file tells its language. The files of one language are read in the module of that language.

pub(crate) mod java;
mod node;
mod python;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Doing, ToolCall};
use crate::view::StackCall;

/// Where a function comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin<'a> {
    /// A file outside installed packages.
    Own,
    /// A package that was installed, by the name that is imported.
    Library(&'a str),
    /// The library of the language itself, by the name of its module.
    Standard(&'a str),
}

/// The language of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Language {
    /// Python.
    Python,
    /// JavaScript or TypeScript, run by Node.js.
    Node,
    /// Java, or another language of its virtual machine.
    Java,
}

impl Language {
    pub(crate) fn of_file(file: &str) -> Self {
        if java::has_file(file) {
            Self::Java
        } else if node::has_file(file) {
            Self::Node
        } else {
            Self::Python
        }
    }

    /// The language of a program with this stack.
    fn of_stack(stack: &[StackCall<'_>]) -> Self {
        let mut languages = stack.iter().map(|call| Self::of_file(call.file));
        languages.find(|language| *language != Self::Python).unwrap_or(Self::Python)
    }
}

/// The origin of a file's code.
pub(crate) fn origin_of(file: &str) -> Origin<'_> {
    match Language::of_file(file) {
        Language::Python => python::origin_of(file),
        Language::Node => node::origin_of(file),
        Language::Java => java::origin_of(file),
    }
}

/// The path of a file within the installed packages or the language's library; the whole path of other files.
pub(crate) fn path_in_package(file: &str) -> &str {
    match Language::of_file(file) {
        Language::Node => node::path_in_package(file),
        Language::Python | Language::Java => python::path_in_package(file),
    }
}

/// The language of the server's own code in calls of a tool, as the first sampled stack tells.
pub(crate) fn language_of_calls(calls: &[ToolCall<'_, '_>]) -> Option<Language> {
    let stretches = calls.iter().flat_map(|call| &call.stretches);
    stretches
        .filter_map(|stretch| match stretch.doing {
            Doing::Dependency { blocked, .. } => blocked,
            _ => stretch.stack(),
        })
        .find(|stack| own_call(stack).is_some())
        .map(Language::of_stack)
}

/// Packages that call tools, and check arguments and results.
fn is_framework(package: &str) -> bool {
    [&python::FRAMEWORKS[..], &node::FRAMEWORKS, &java::FRAMEWORKS].iter().any(|names| names.contains(&package))
}

pub(super) fn is_instrumentation(package: &str) -> bool {
    [&python::INSTRUMENTATION[..], &node::INSTRUMENTATION, &java::INSTRUMENTATION]
        .iter()
        .any(|names| names.contains(&package))
}

/// The part of a path before the first separator.
fn first_segment(path: &str) -> &str {
    path.split(['/', '\\']).next().unwrap_or(path)
}

/// The function's name without that of its class.
pub(crate) fn called_name<'a>(call: &StackCall<'a>) -> &'a str {
    call.function.rsplit('.').next().unwrap_or(call.function)
}

/// Whether a thread with this stack only waits for work. A thread without a stack does.
pub(crate) fn waits_for_work(stack: &[StackCall<'_>]) -> bool {
    let Some(innermost) = stack.first() else { return true };
    match Language::of_stack(stack) {
        Language::Python => python::waits_for_work(innermost, stack.get(1)),
        Language::Node | Language::Java => false,
    }
}

/// Whether a thread with this stack works for the instrumentation: it sends the spans.
pub(crate) fn serves_instrumentation(stack: &[StackCall<'_>]) -> bool {
    match Language::of_stack(stack) {
        Language::Python => python::serves_instrumentation(stack),
        Language::Node => has_instrumentation_only(stack),
        Language::Java => is_started_by_instrumentation(stack),
    }
}

/// Whether nothing but the instrumentation and the language itself is on the stack.
fn has_instrumentation_only(stack: &[StackCall<'_>]) -> bool {
    let mut origins =
        stack.iter().map(|call| origin_of(call.file)).filter(|origin| !matches!(origin, Origin::Standard(_)));
    let is_instrument = |origin| matches!(origin, Origin::Library(name) if is_instrumentation(name));
    origins.next().is_some_and(is_instrument) && origins.all(is_instrument)
}

/// Whether the instrumentation is the outermost of the libraries, and none of the author's code is on the stack. The thread
/// that sends the spans calls libraries of its own.
fn is_started_by_instrumentation(stack: &[StackCall<'_>]) -> bool {
    let origins = stack.iter().rev().map(|call| origin_of(call.file));
    let mut origins = origins.filter(|origin| !matches!(origin, Origin::Standard(_)));
    let is_started = matches!(origins.next(), Some(Origin::Library(name)) if is_instrumentation(name));
    is_started && origins.all(|origin| origin != Origin::Own)
}

/// Whether the stack is that of a thread that runs an event loop.
pub(crate) fn runs_event_loop(stack: &[StackCall<'_>]) -> bool {
    match Language::of_stack(stack) {
        Language::Python => stack.iter().any(python::is_event_loop),
        Language::Node => true,
        Language::Java => stack.iter().any(java::is_event_loop),
    }
}

/// Whether a stack that waits for a timer holds the thread of its event loop meanwhile.
pub(crate) fn sleeps_in_event_loop(stack: &[StackCall<'_>]) -> bool {
    stack.first().is_some_and(python::sleeps_in_thread) && runs_event_loop(stack)
}

/// Whether a running thread blocks its event loop: it calls a synchronous function that has an asynchronous counterpart.
pub(crate) fn calls_synchronously(stack: &[StackCall<'_>]) -> bool {
    stack.iter().any(node::is_synchronous)
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
        Origin::Library(name) => is_framework(name),
        _ => begins_work(call),
    };
    let outside = stack[own..].iter().position(is_framework).map_or(stack.len(), |at| own + at);
    stack[..outside].iter().rposition(|call| origin_of(call.file) == origin).unwrap_or(own)
}

/// Whether the call is that of an event loop, or of a thread, that calls the code of others.
fn begins_work(call: &StackCall<'_>) -> bool {
    match Language::of_file(call.file) {
        Language::Node => node::begins_work(call),
        Language::Python | Language::Java => python::begins_work(call),
    }
}

fn installed_call(stack: &[StackCall<'_>]) -> Option<usize> {
    let mut beneath_framework = false;
    let mut package = None;
    for call in stack.iter().rev() {
        match origin_of(call.file) {
            Origin::Library(name) if is_framework(name) => beneath_framework = true,
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

/// The innermost library that the server's own code calls, without frameworks and the instrumentation.
pub(crate) fn called_library<'a>(stack: &[StackCall<'a>]) -> Option<&'a str> {
    stack[..own_call(stack)?].iter().find_map(|call| match origin_of(call.file) {
        Origin::Library(name) if !is_framework(name) && !is_instrumentation(name) => Some(name),
        _ => None,
    })
}

/// The package that the innermost calls work for: code of the language itself works for what called it. A wrapper that reports
/// a request stands between two others; it counts where it works for itself, as it does while classes are loaded. `None` is
/// the author.
pub(crate) fn working_package<'a>(stack: &[StackCall<'a>]) -> Option<&'a str> {
    let origins = stack.iter().map(|call| origin_of(call.file));
    let (mut standard, mut instrumentation) = (None, None);
    for origin in origins {
        match origin {
            Origin::Standard(module) => standard = standard.or(Some(module)),
            Origin::Library(name) if is_instrumentation(name) => instrumentation = instrumentation.or(Some(name)),
            Origin::Library(name) => return Some(name),
            Origin::Own => break,
        }
    }
    instrumentation.or(standard)
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
            ("/srv/python/mcpace/lab/inside/start/sitecustomize.py", Origin::Library("opentelemetry")),
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

    #[test]
    fn a_select_waits_for_work_in_an_event_loop_and_for_an_answer_elsewhere() {
        let select = call("PollSelector.select", "/usr/lib/python3.11/selectors.py");
        let run_once = call("BaseEventLoop._run_once", "/usr/lib/python3.11/asyncio/base_events.py");
        let communicate = call("Popen._communicate", "/usr/lib/python3.11/subprocess.py");
        assert!(waits_for_work(&[select, run_once]));
        assert!(!waits_for_work(&[select, communicate, call("fetch", "/srv/tools.py")]));
    }

    #[test]
    fn a_program_of_node_runs_its_event_loop_on_the_thread_of_its_code() {
        let own = call("forecast", "/srv/weather.mjs");
        let wrapper = call("patched", "/c/node_modules/@opentelemetry/instrumentation-pg/build/src/instrumentation.js");
        let native = call("spawn", "node:native");
        let library = call("query", "/srv/node_modules/pg/lib/client.js");
        assert!(runs_event_loop(&[native, own]) && !runs_event_loop(&[call("forecast", "/srv/weather.py")]));
        assert!(calls_synchronously(&[native, call("readFileSync", "node:fs"), own]));
        assert!(!calls_synchronously(&[native, call("readFile", "node:fs"), own]));
        assert!(serves_instrumentation(&[native, wrapper]) && !serves_instrumentation(&[wrapper, own]));
        assert!(!serves_instrumentation(&[native]) && !waits_for_work(&[native]));
        assert_eq!(working_package(&[native, wrapper, library, own]), Some("pg"));
        assert_eq!(own_call(&[native, library, own]), Some(2));
    }

    #[test]
    fn a_program_of_java_has_libraries_by_jars_and_its_own_classes_beside_them() {
        let own = call("Weather.forecast", "com/example/Weather.java");
        let agent = call("Transformer.transform", "opentelemetry.jar!/io/opentelemetry/Transformer.java");
        let thread = call("Thread.run", "jrt:/java.base/java/lang/Thread.java");
        let netty = call("NioEventLoop.run", "netty-transport.jar!/io/netty/channel/nio/NioEventLoop.java");
        let driver = call("PgConnection.query", "postgresql.jar!/org/postgresql/PgConnection.java");
        assert_eq!(own_call(&[thread, driver, own, thread]), Some(2));
        assert_eq!(working_package(&[thread, driver, own, thread]), Some("postgresql"));
        assert_eq!(working_package(&[thread, agent, thread, own]), Some("opentelemetry"));
        assert_eq!(working_package(&[thread, own]), Some("java.base"));
        assert!(serves_instrumentation(&[thread, agent, thread]) && !serves_instrumentation(&[agent, own]));
        assert!(serves_instrumentation(&[driver, agent, thread]) && !serves_instrumentation(&[agent, driver, thread]));
        assert!(!serves_instrumentation(&[own, agent, thread]));
        assert!(runs_event_loop(&[own, netty, thread]) && !runs_event_loop(&[own, thread]));
        assert_eq!(Language::of_stack(&[thread, own]), Language::Java);
    }
}

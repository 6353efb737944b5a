//! Files and functions of programs of Node.js.
//!
//! All JavaScript of a program runs on the thread of its event loop. Workers are not sampled.

use super::{Origin, first_segment};
use crate::view::StackCall;

/// Endings of files that are JavaScript, or were before they were compiled.
const ENDINGS: [&str; 8] = [".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx"];

/// Folder of installed packages.
const PACKAGES: &str = "node_modules/";

/// Folder of the module that instruments a program as it starts. It counts as a part of OpenTelemetry.
const START: &str = "/mcpace/lab/inside/node/";

/// Packages that call tools, and check arguments and results. A server that is itself installed has its own code above theirs.
pub(super) const FRAMEWORKS: [&str; 18] = [
    "@modelcontextprotocol/sdk",
    "@modelcontextprotocol/server",
    "@modelcontextprotocol/core",
    "@modelcontextprotocol/node",
    "fastmcp",
    "mcp-framework",
    "express",
    "router",
    "body-parser",
    "hono",
    "@hono/node-server",
    "fastify",
    "koa",
    "zod",
    "ajv",
    "zod-to-json-schema",
    "raw-body",
    "finalhandler",
];

/// Packages of the instrumentation, which stand between the server's code and the library that they report.
pub(super) const INSTRUMENTATION: [&str; 2] = ["@opentelemetry", "require-in-the-middle"];

/// Whether the file is one of a program of Node.js.
pub(super) fn has_file(file: &str) -> bool {
    file.starts_with("node:")
        || file.starts_with("wasm:")
        || file.contains(PACKAGES)
        || ENDINGS.iter().any(|ending| file.ends_with(ending))
}

pub(super) fn origin_of(file: &str) -> Origin<'_> {
    if let Some(module) = file.strip_prefix("node:") {
        let module = module.strip_prefix("internal/").unwrap_or(module);
        return Origin::Standard(first_segment(module));
    }
    if file.starts_with("wasm:") {
        return Origin::Standard("wasm");
    }
    if file.contains(START) {
        return Origin::Library("@opentelemetry");
    }
    match file.rfind(PACKAGES) {
        Some(at) => Origin::Library(package_name(&file[at + PACKAGES.len()..])),
        None => Origin::Own,
    }
}

/// `pg`, or `@scope/name`; all packages of OpenTelemetry are one.
fn package_name(path: &str) -> &str {
    let first = first_segment(path);
    if !first.starts_with('@') || first == "@opentelemetry" {
        return first;
    }
    let second = path.get(first.len() + 1..).map_or("", first_segment);
    &path[..(first.len() + 1 + second.len()).min(path.len())]
}

/// The path of a file within the installed packages; the whole path of other files.
pub(super) fn path_in_package(file: &str) -> &str {
    file.rfind(PACKAGES).map_or(file, |at| &file[at + PACKAGES.len()..])
}

/// Whether the call is that of the event loop, which calls the code of others.
pub(super) fn begins_work(call: &StackCall<'_>) -> bool {
    matches!(
        origin_of(call.file),
        Origin::Standard("process" | "timers" | "stream_base_commons" | "streams" | "events")
    )
}

/// Whether the call is one of Node.js that returns when its work is done, and could have been asynchronous:
/// `readFileSync`, `execFileSync`, `pbkdf2Sync`, `Atomics.wait`.
pub(super) fn is_synchronous(call: &StackCall<'_>) -> bool {
    match origin_of(call.file) {
        Origin::Standard("native") => call.function == "wait",
        Origin::Standard(module) => {
            call.function.ends_with("Sync") && matches!(module, "fs" | "child_process" | "crypto" | "zlib")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_authors_a_packages_or_that_of_node() {
        let cases = [
            ("/srv/weather.mjs", Origin::Own),
            ("/srv/src/weather.ts", Origin::Own),
            ("/srv/node_modules/pg/lib/client.js", Origin::Library("pg")),
            ("/srv/node_modules/@scope/name/index.js", Origin::Library("@scope/name")),
            ("/srv/node_modules/.pnpm/pg@8.11.0/node_modules/pg/lib/client.js", Origin::Library("pg")),
            ("/c/node_modules/@opentelemetry/api/build/index.js", Origin::Library("@opentelemetry")),
            ("/lib/mcpace/lab/inside/node/start.cjs", Origin::Library("@opentelemetry")),
            ("node_modules/@scope", Origin::Library("@scope")),
            ("node_modules/", Origin::Library("")),
            ("node:internal/crypto/pbkdf2", Origin::Standard("crypto")),
            ("node:fs", Origin::Standard("fs")),
            ("wasm://wasm/0abc", Origin::Standard("wasm")),
        ];
        for (file, expected) in cases {
            assert!(has_file(file) && origin_of(file) == expected, "{file}: {:?}", origin_of(file));
        }
        assert!(!has_file("/srv/weather.py") && !has_file("<string>"));
    }
}

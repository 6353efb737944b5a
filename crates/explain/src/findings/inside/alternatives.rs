//! Libraries for which a quicker one with the same use was measured: the table that `benches/alternatives` writes.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::inside::frames::{Origin, origin_of};
use crate::inside::library_files::{Language, LibraryFile, is_instrument};
use crate::view::{SampledStack, StackCall};

const TABLE: &str = include_str!("alternatives.json");

/// One use of a library, with what was measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AlternativeLibrary {
    pub(super) language: Language,
    /// The library, as it is installed.
    pub(super) library: String,
    /// The release that was measured.
    pub(super) version: String,
    /// Its modules, and those of libraries that only it uses.
    modules: Vec<String>,
    /// Modules that are seen only in this use; empty where all uses are alike.
    seen_in: Vec<String>,
    /// Libraries that may stand between the server's own code and this library.
    through: Vec<String>,
    pub(super) alternative: String,
    pub(super) alternative_version: String,
    /// The use that was measured.
    #[serde(rename = "use")]
    pub(super) measured_use: String,
    /// Processor time of the library, divided by that of the alternative.
    pub(super) factor: f64,
    /// The day of the measurement.
    pub(super) measured: String,
    /// The interpreter of the measurement: `Python 3.11.7`.
    pub(super) runtime: String,
}

impl AlternativeLibrary {
    /// All uses that were measured. Uses of one library stand together.
    pub(super) fn all() -> &'static [Self] {
        static PARSED: LazyLock<Vec<AlternativeLibrary>> =
            LazyLock::new(|| serde_json::from_str(TABLE).unwrap_or_default());
        &PARSED
    }

    /// The name of the library that the server's own code chose and that the innermost `calls` work for. The innermost call
    /// comes first, and the server's own code is not among the calls.
    pub(super) fn library_in(calls: SampledStack<'_>) -> Option<&'static str> {
        if calls.first().is_some_and(is_instrument) {
            return None;
        }
        let table = Self::all();
        let is_used = |call: &StackCall<'_>| table.iter().any(|entry| entry.has_module(call));
        // Python's own code may stand between: `contextlib`, for example.
        let chosen =
            calls.iter().rev().filter(|call| !is_instrument(call)).find(|call| is_installed(call) || is_used(call))?;
        let mut entries = calls.iter().filter_map(|call| table.iter().find(|entry| entry.has_module(call)));
        let is_chosen = |entry: &&Self| entry.has_module(chosen) || is_in(chosen, entry.language, &entry.through);
        entries.find(is_chosen).map(|entry| entry.library.as_str())
    }

    /// Whether the calls show this use, and not another one of the library.
    pub(super) fn is_seen_in(&self, calls: SampledStack<'_>) -> bool {
        self.seen_in.is_empty() || calls.iter().any(|call| is_in(call, self.language, &self.seen_in))
    }

    fn has_module(&self, call: &StackCall<'_>) -> bool {
        is_in(call, self.language, &self.modules)
    }
}

fn is_in(call: &StackCall<'_>, language: Language, modules: &[String]) -> bool {
    LibraryFile::of_call(call).is_some_and(|file| file.is_in(language, modules))
}

fn is_installed(call: &StackCall<'_>) -> bool {
    matches!(origin_of(call.file), Origin::Library(_))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    fn library_in(files: &[&'static str]) -> Option<&'static str> {
        let calls: Vec<StackCall<'_>> = files.iter().map(|file| StackCall { function: "f", file, line: 1 }).collect();
        AlternativeLibrary::library_in(&calls)
    }

    #[test]
    fn the_library_is_the_one_that_the_server_chose() {
        let httpx = "/v/site-packages/httpx/_client.py";
        let json = "/usr/lib/python3.11/json/decoder.py";
        assert_eq!(
            library_in(&["/v/site-packages/h11/_connection.py", "/v/site-packages/httpcore/_async/http11.py", httpx]),
            Some("httpx")
        );
        assert_eq!(library_in(&[json, httpx]), Some("json"));
        assert_eq!(library_in(&[httpx, "/usr/lib/python3.11/contextlib.py"]), Some("httpx"));
        assert_eq!(
            library_in(&[httpx, "/v/site-packages/opentelemetry/instrumentation/httpx/__init__.py"]),
            Some("httpx")
        );
        assert_eq!(library_in(&["/v/site-packages/opentelemetry/sdk/trace.py", httpx]), None);
        // The author of a server cannot replace what a library of another author uses.
        assert_eq!(library_in(&[json, "/v/site-packages/botocore/parsers.py"]), None);
        assert_eq!(library_in(&[httpx, "/v/site-packages/openai/_base_client.py"]), None);
    }

    #[test]
    fn the_table_can_be_read_and_names_only_what_pays() {
        let table: Vec<AlternativeLibrary> = serde_json::from_str(TABLE).unwrap();
        assert!(!table.is_empty());
        for entry in &table {
            assert!(entry.factor >= 1.5 && entry.factor.is_finite(), "{entry:?}");
            assert!(!entry.modules.is_empty(), "{entry:?}");
            assert_eq!(entry.measured.len(), "2026-11-25".len(), "{entry:?}");
        }
    }
}

//! Paths of library files, in the way in which a library's documentation and the tables of this crate name them.

pub(crate) use super::frames::Language;
use super::frames::{Origin, is_instrumentation, java, origin_of};
use crate::view::StackCall;

/// Folders that libraries are installed in.
const INSTALLED: [(&str, Language); 3] =
    [("/site-packages/", Language::Python), ("/dist-packages/", Language::Python), ("/node_modules/", Language::Node)];

/// A file of a library, or of the language's own library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LibraryFile<'a> {
    pub(crate) language: Language,
    /// `httpx/_client.py`, `json/decoder.py`, `zod/v3/types.js`; for Java the class with its package, `com/x/Mapper.java`.
    pub(crate) path: &'a str,
}

impl<'a> LibraryFile<'a> {
    /// The file that a call is in; `None` for the author's own code.
    pub(crate) fn of_call(call: &StackCall<'a>) -> Option<Self> {
        let file = call.file;
        let installed = INSTALLED.iter().filter_map(|(folder, language)| {
            let at = file.rfind(folder)?;
            Some((at, Self { language: *language, path: &file[at + folder.len()..] }))
        });
        if let Some((_, installed)) = installed.max_by_key(|(at, _)| *at) {
            return Some(installed);
        }
        if let Some(at) = file.rfind("/lib/python3") {
            let (_, path) = file[at + "/lib/python3".len()..].split_once('/')?;
            return Some(Self { language: Language::Python, path });
        }
        if let Some(path) = file.strip_prefix("node:") {
            return Some(Self { language: Language::Node, path });
        }
        java::class_path(file).map(|path| Self { language: Language::Java, path })
    }

    /// Whether the file belongs to one of `modules`: `json` is a module of `json/decoder.py` and of `json.py`, and no module
    /// of `jsonschema/validators.py`.
    pub(crate) fn is_in(&self, language: Language, modules: &[impl AsRef<str>]) -> bool {
        self.language == language
            && modules.iter().any(|module| {
                let rest = self.path.strip_prefix(module.as_ref());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
            })
    }
}

/// Whether a call works for the instrument, which stands between a library and the code that calls it.
pub(crate) fn is_instrument(call: &StackCall<'_>) -> bool {
    matches!(origin_of(call.file), Origin::Library(name) if is_instrumentation(name))
}

/// Whether a call loads code: Python's import system, Node's loaders, Java's class loaders.
pub(crate) fn loads_code(call: &StackCall<'_>) -> bool {
    matches!(origin_of(call.file), Origin::Standard("importlib"))
        || call.file.starts_with("node:internal/modules/")
        || ["java.lang.ClassLoader.", "jdk.internal.loader."].iter().any(|name| call.function.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_of(file: &str) -> Option<(Language, &str)> {
        LibraryFile::of_call(&StackCall { function: "f", file, line: 1 }).map(|file| (file.language, file.path))
    }

    #[test]
    fn files_of_libraries_have_paths() {
        let cases = [
            ("/v/lib/python3.11/site-packages/httpx/_client.py", Some((Language::Python, "httpx/_client.py"))),
            ("/usr/lib/python3.11/json/decoder.py", Some((Language::Python, "json/decoder.py"))),
            ("/srv/node_modules/a/node_modules/zod/index.js", Some((Language::Node, "zod/index.js"))),
            ("node:internal/modules/cjs/loader", Some((Language::Node, "internal/modules/cjs/loader"))),
            ("gson.jar!/com/google/gson/Gson.java", Some((Language::Java, "com/google/gson/Gson.java"))),
            ("jrt:/java.sql/java/sql/Driver.java", Some((Language::Java, "java/sql/Driver.java"))),
            ("/srv/weather.py", None),
            ("com/example/Weather.java", None),
            ("", None),
        ];
        for (file, expected) in cases {
            assert_eq!(file_of(file), expected, "{file}");
        }
    }

    #[test]
    fn the_instrument_is_each_package_of_the_instrumentation() {
        let is_instrument = |file| is_instrument(&StackCall { function: "f", file, line: 1 });
        assert!(is_instrument("/c/node_modules/require-in-the-middle/index.js"));
        assert!(is_instrument("/v/site-packages/wrapt/wrappers.py"));
        assert!(!is_instrument("/srv/node_modules/pg/lib/client.js") && !is_instrument("/srv/weather.py"));
    }

    #[test]
    fn a_module_is_a_whole_segment_of_a_path() {
        let file = |path| LibraryFile { language: Language::Python, path };
        assert!(file("json/decoder.py").is_in(Language::Python, &["json"]));
        assert!(file("six.py").is_in(Language::Python, &["six"]));
        assert!(file("redis/_parsers/resp2.py").is_in(Language::Python, &["redis/_parsers/resp2"]));
        assert!(!file("jsonschema/validators.py").is_in(Language::Python, &["json"]));
        assert!(!file("json/decoder.py").is_in(Language::Node, &["json"]));
    }
}

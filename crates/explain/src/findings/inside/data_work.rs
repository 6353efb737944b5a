//! Libraries that check values, and libraries that turn values into text and back, by language.

use super::stack_times::calls_below_own;
use crate::inside::frames::{Origin, called_name, origin_of};
use crate::inside::library_files::{Language, LibraryFile, is_instrument};
use crate::view::{SampledStack, StackCall};

/// Work with values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum DataWork {
    /// Checks of values against a schema or a model.
    Validation,
    /// Building what checks values: a model's class, a compiled schema.
    Building,
    /// Values into text, and text into values.
    Serialization,
}

/// Modules of one kind of work.
struct Modules {
    language: Language,
    work: DataWork,
    modules: &'static [&'static str],
}

/// The first row with a module decides: parts of a library stand before the whole.
const MODULES: [Modules; 9] = [
    Modules {
        language: Language::Python,
        work: DataWork::Building,
        modules: &[
            "pydantic/_internal/_model_construction",
            "pydantic/_internal/_generate_schema",
            "pydantic/_internal/_dataclasses",
            "pydantic/plugin",
            "fastjsonschema/generator",
        ],
    },
    Modules {
        language: Language::Python,
        work: DataWork::Validation,
        modules: &[
            "pydantic",
            "pydantic_core",
            "jsonschema",
            "jsonschema_rs",
            "fastjsonschema",
            "openapi_schema_validator",
            "marshmallow",
            "cerberus",
            "voluptuous",
            "schema",
            "trafaret",
            "typeguard",
            "beartype",
            "cattrs",
            "dacite",
            "pandera",
        ],
    },
    Modules {
        language: Language::Python,
        work: DataWork::Serialization,
        modules: &[
            "json",
            "simplejson",
            "ujson",
            "orjson",
            "yaml",
            "ruamel/yaml",
            "xml",
            "xmltodict",
            "lxml",
            "plistlib",
            "pickle",
            "csv",
            "tomllib",
            "toml",
            "tomlkit",
            "tomli_w",
            "msgpack",
            "cbor2",
            "google/protobuf",
        ],
    },
    Modules {
        language: Language::Node,
        work: DataWork::Building,
        modules: &["ajv/dist/compile", "zod-to-json-schema"],
    },
    Modules {
        language: Language::Node,
        work: DataWork::Validation,
        modules: &[
            "zod",
            "ajv",
            "joi",
            "yup",
            "valibot",
            "superstruct",
            "io-ts",
            "runtypes",
            "jsonschema",
            "class-validator",
            "@sinclair/typebox",
            "@hapi/joi",
        ],
    },
    Modules {
        language: Language::Node,
        work: DataWork::Serialization,
        modules: &[
            "superjson",
            "js-yaml",
            "yaml",
            "xml2js",
            "fast-xml-parser",
            "protobufjs",
            "class-transformer",
            "csv-parse",
            "papaparse",
            "iconv-lite",
        ],
    },
    Modules {
        language: Language::Java,
        work: DataWork::Building,
        modules: &["com/networknt/schema/JsonSchemaFactory"],
    },
    Modules {
        language: Language::Java,
        work: DataWork::Validation,
        modules: &["org/hibernate/validator", "com/networknt/schema", "org/everit/json/schema"],
    },
    Modules {
        language: Language::Java,
        work: DataWork::Serialization,
        modules: &[
            "com/fasterxml/jackson",
            "tools/jackson",
            "com/google/gson",
            "org/yaml/snakeyaml",
            "jakarta/xml/bind",
        ],
    },
];

/// Functions of libraries that check values, which turn the values into text or plain data.
const SERIALIZING: [&str; 9] = [
    "model_dump",
    "model_dump_json",
    "dump",
    "dumps",
    "dump_json",
    "dump_python",
    "to_json",
    "to_jsonable_python",
    "_serialize",
];

/// Functions that build what checks values.
const BUILDING: [&str; 5] =
    ["create_model", "complete_model_class", "check_schema", "create_schema_validator", "rebuild"];

/// The work with values that the innermost calls of a stack do, and the library that does it. Work of the server's own code
/// within a library, as in a validator of a model, does not count.
pub(super) fn data_work<'a>(stack: SampledStack<'a>) -> Option<(DataWork, &'a str)> {
    let calls = calls_below_own(stack);
    if calls.first().is_some_and(is_instrument) {
        return None;
    }
    let (innermost, row) = calls.iter().enumerate().find_map(|(position, call)| Some((position, row_of(call)?)))?;
    // The work begins where other code calls the row's libraries.
    let is_within = |call: &&StackCall<'_>| row.has_call(call) || matches!(origin_of(call.file), Origin::Standard(_));
    let work_calls = || calls[innermost..].iter().take_while(is_within);
    if calls[innermost..].iter().find(|call| !is_within(call)).is_some_and(is_instrument) {
        return None;
    }
    let entry = match row.language {
        // Several jars do one work: the server's code calls `jackson-databind`, which calls `jackson-core`.
        Language::Java => work_calls().filter(|call| row.has_call(call)).last()?,
        Language::Python | Language::Node => &calls[innermost],
    };
    let library = library_name(entry)?;
    let called = |functions: &[&str]| {
        let of_library = calls.iter().filter(|call| library_name(call) == Some(library));
        of_library.map(called_name).any(|name| functions.contains(&name))
    };
    let work = match row.work {
        DataWork::Validation if called(&SERIALIZING) => DataWork::Serialization,
        DataWork::Validation if called(&BUILDING) => DataWork::Building,
        // Building calls functions in other modules.
        DataWork::Validation if calls.iter().any(is_building) => DataWork::Building,
        work => work,
    };
    Some((work, library))
}

impl Modules {
    fn has_call(&self, call: &StackCall<'_>) -> bool {
        LibraryFile::of_call(call).is_some_and(|file| file.is_in(self.language, self.modules))
    }
}

fn row_of(call: &StackCall<'_>) -> Option<&'static Modules> {
    let file = LibraryFile::of_call(call)?;
    MODULES.iter().find(|row| file.is_in(row.language, row.modules))
}

fn is_building(call: &StackCall<'_>) -> bool {
    MODULES.iter().any(|row| row.work == DataWork::Building && row.has_call(call))
}

/// The name that is installed or imported: the first segment of a path, two for scoped packages of Node, the jar of Java.
fn library_name<'a>(call: &StackCall<'a>) -> Option<&'a str> {
    let file = LibraryFile::of_call(call)?;
    if file.language == Language::Java {
        return match origin_of(call.file) {
            Origin::Library(jar) => Some(jar),
            _ => None,
        };
    }
    let segments = if file.path.starts_with('@') { 2 } else { 1 };
    let end = file.path.match_indices('/').nth(segments - 1).map_or(file.path.len(), |(at, _)| at);
    let name = &file.path[..end];
    Some(name.strip_suffix(".py").or_else(|| name.strip_suffix(".js")).unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use crate::inside::frames::own_call;

    use super::*;

    const OWN: StackCall<'_> = StackCall { function: "forecast", file: "/srv/weather.py", line: 1 };

    fn call(function: &'static str, file: &'static str) -> StackCall<'static> {
        StackCall { function, file, line: 1 }
    }

    #[test]
    fn work_is_told_by_module_and_function() {
        let main = "/v/site-packages/pydantic/main.py";
        let cases = [
            (call("BaseModel.model_validate", main), Some((DataWork::Validation, "pydantic"))),
            (call("BaseModel.model_dump_json", main), Some((DataWork::Serialization, "pydantic"))),
            (
                call("complete_model_class", "/v/site-packages/pydantic/_internal/_model_construction.py"),
                Some((DataWork::Building, "pydantic")),
            ),
            (
                call("Draft7Validator.check_schema", "/v/site-packages/jsonschema/validators.py"),
                Some((DataWork::Building, "jsonschema")),
            ),
            (
                call("JSONDecoder.decode", "/usr/lib/python3.11/json/decoder.py"),
                Some((DataWork::Serialization, "json")),
            ),
            (call("get", "/v/site-packages/httpx/_client.py"), None),
        ];
        for (innermost, expected) in cases {
            assert_eq!(data_work(&[innermost, OWN]), expected, "{innermost:?}");
        }
        let validator = [OWN, call("BaseModel.model_validate", main), OWN];
        assert_eq!(data_work(&validator), None);
    }

    #[test]
    fn work_of_java_is_told_by_class_and_has_the_name_of_the_jar() {
        let own = call("Weather.forecast", "com/example/Weather.java");
        let parser = call("UTF8StreamJsonParser.nextToken", "jackson-core.jar!/com/fasterxml/jackson/core/Parser.java");
        let mapper = call("ObjectMapper.readValue", "jackson-databind.jar!/com/fasterxml/jackson/databind/Mapper.java");
        let list = call("ArrayList.add", "jrt:/java.base/java/util/ArrayList.java");
        let jackson = Some((DataWork::Serialization, "jackson-databind"));
        assert_eq!(data_work(&[list, parser, mapper, own]), jackson);
        assert_eq!(data_work(&[mapper, own]), jackson);
        let schema = "json-schema-validator.jar!/com/networknt/schema";
        let (checks, builds) = (format!("{schema}/JsonSchema.java"), format!("{schema}/JsonSchemaFactory.java"));
        let checks = StackCall { function: "JsonSchema.validate", file: &checks, line: 1 };
        let builds = StackCall { function: "JsonSchemaFactory.getSchema", file: &builds, line: 1 };
        assert_eq!(data_work(&[checks, own]), Some((DataWork::Validation, "json-schema-validator")));
        assert_eq!(data_work(&[checks, builds, own]), Some((DataWork::Building, "json-schema-validator")));
        // The SDK's work has no own code, which would be the line of the finding.
        let sdk = call("JacksonMcpJsonMapper.writeValue", "mcp-json-jackson2.jar!/io/modelcontextprotocol/Mapper.java");
        let tomcat = call("Connector.run", "tomcat-embed-core.jar!/org/apache/catalina/Connector.java");
        assert_eq!(data_work(&[parser, mapper, sdk, tomcat]), jackson);
        assert_eq!(own_call(&[parser, mapper, sdk, tomcat]), None);
        // The agent's own work is none of the server's.
        let agent = call("Exporter.export", "opentelemetry.jar!/io/opentelemetry/exporter/Exporter.java");
        assert_eq!(data_work(&[parser, mapper, list, agent]), None);
        assert_eq!(data_work(&[agent, mapper, own]), None);
    }
}

//! Processor time inside tools: costly libraries, checks of values, text, imports, and pauses of the runtime.

use mcpace_explain::Cause;
use mcpace_record::Recording;

use crate::inside::{HTTP, Inside, LOOP, OWN, Work, looked_into, request, running};
use crate::script::ms;
use crate::{codes, found};

type Call = (&'static str, &'static str);

const HTTPX: Call = ("AsyncClient.get", "/v/lib/python3.11/site-packages/httpx/_client.py");
const HTTPCORE: Call = ("AsyncHTTP11Connection.handle_async_request", "/v/site-packages/httpcore/_async/http11.py");
const OPENAI: Call = ("AsyncCompletions.create", "/v/site-packages/openai/resources/completions.py");
const TRACES: Call = ("start_span", "/v/site-packages/opentelemetry/sdk/trace/__init__.py");
const JSON_READ: Call = ("JSONDecoder.decode", "/usr/lib/python3.11/json/decoder.py");
const PICKLE: Call = ("_Pickler.save", "/usr/lib/python3.11/pickle.py");
const YAML: Call = ("SafeConstructor.construct_mapping", "/v/site-packages/yaml/constructor.py");
const VALIDATE: Call = ("BaseModel.model_validate", "/v/site-packages/pydantic/main.py");
const MODEL_CLASS: Call = ("complete_model_class", "/v/site-packages/pydantic/_internal/_model_construction.py");
const CREATE_MODEL: Call = ("create_model", "/v/site-packages/pydantic/main.py");
const FRAMEWORK: Call =
    ("FuncMetadata.convert_result", "/v/site-packages/mcp/server/fastmcp/utilities/func_metadata.py");
const FIND_SPEC: Call = ("_find_spec", "<frozen importlib._bootstrap>");
const LOAD: Call = ("_load_unlocked", "<frozen importlib._bootstrap>");
const PANDAS: Call = ("<module>", "/v/site-packages/pandas/__init__.py");
const SETTINGS: Call = ("<module>", "/srv/settings.py");
const PROGRAM: Call = ("<module>", "/srv/weather.py");

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![
        computing(ASKS_BY_HTTPX),
        computing(&[VALIDATE, OWN, LOOP]),
        computing(PICKLES),
        computing(&[FIND_SPEC, OWN, LOOP]),
        collected(40.0),
    ]
}

const ASKS_BY_HTTPX: &[Call] = &[HTTPCORE, HTTPX, OWN, LOOP];
const PICKLES: &[Call] = &[PICKLE, OWN, LOOP];
const COMPUTES: &[Call] = &[OWN, LOOP];

/// 40 ms of each call in one stack, and 20 ms of the server's own work.
fn computing(stack: &'static [Call]) -> Recording {
    looked_into(&[], &[running(0.0, 40.0, stack), running(40.0, 60.0, COMPUTES)])
}

fn collected(to: f64) -> Recording {
    let works = [running(0.0, 60.0, COMPUTES)];
    Inside { works: &works, pauses: &[(10.0, 20.0), (15.0, to), (30.0, 35.0)], ..Inside::default() }.recording()
}

#[test]
fn a_library_with_a_quicker_one_is_named_with_its_line_and_the_measured_gain() {
    let found = found(&computing(ASKS_BY_HTTPX));
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::CostlyLibrary(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.library.as_str(), context.alternative.as_str()), ("httpx", "aiohttp"));
    assert_eq!((context.line.function.as_str(), context.callee.as_deref()), ("forecast", Some("AsyncClient.get")));
    assert!((ms(37.0)..=ms(43.0)).contains(&context.times.cause), "{context:?}");
    let gain = context.times.cause.0 as f64 * (1.0 - 1.0 / context.factor);
    assert!((context.times.gain.0 as f64 - gain).abs() < 1_000.0, "{context:?}");
    assert!((ms(57.0)..=ms(63.0)).contains(&context.processor), "{context:?}");
}

#[test]
fn a_library_that_takes_little_or_that_another_one_calls_is_no_cause() {
    let little = [running(0.0, 15.0, ASKS_BY_HTTPX), running(15.0, 90.0, COMPUTES)];
    assert_eq!(codes(&looked_into(&[], &little)), [""; 0]);
    for stack in [&[HTTPCORE, HTTPX, OPENAI, OWN, LOOP][..], &[TRACES, HTTPX, OWN, LOOP]] {
        assert_eq!(codes(&computing(stack)), [""; 0], "{stack:?}");
    }
    // httpx waits and does not run; its own share of the processor time is none.
    let waits = [Work { from: 0.0, to: 40.0, running: false, stack: ASKS_BY_HTTPX }];
    assert!(!codes(&looked_into(&[request(0.0, 40.0, HTTP)], &waits)).contains(&"costly-library"));
    // The loader in C has no scanner in Python: the library is used in the quick way.
    assert_eq!(codes(&computing(&[YAML, OWN, LOOP])), ["serialization-cost"]);
}

#[test]
fn checks_of_values_are_named_and_models_that_are_built_are_told_apart() {
    for (stack, is_built) in [(&[VALIDATE, OWN, LOOP][..], false), (&[MODEL_CLASS, CREATE_MODEL, OWN, LOOP], true)] {
        let found = found(&computing(stack));
        let [finding] = found.as_slice() else { panic!("{found:?}") };
        let Cause::ValidationCost(context) = &finding.cause else { panic!("{finding:?}") };
        assert_eq!(context.library, "pydantic");
        assert_eq!(context.line.as_ref().map(|line| line.file.as_str()), Some("/srv/weather.py"));
        assert_eq!(context.built == context.times.cause, is_built, "{context:?}");
        assert!((ms(37.0)..=ms(43.0)).contains(&context.times.gain), "{context:?}");
    }
}

#[test]
fn checks_by_the_framework_have_no_line() {
    let found = found(&computing(&[VALIDATE, FRAMEWORK, LOOP, PROGRAM]));
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::ValidationCost(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((&context.line, &context.callee), (&None, &None));
}

#[test]
fn values_into_text_are_named_once_where_no_quicker_library_is_known() {
    let found = found(&computing(PICKLES));
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::SerializationCost(context) = &finding.cause else { panic!("{finding:?}") };
    assert_eq!((context.library.as_str(), context.times.gain), ("pickle", context.times.cause));
    assert_eq!(codes(&computing(&[JSON_READ, OWN, LOOP])), ["costly-library"]);
}

#[test]
fn work_with_values_in_java_is_named_with_its_jar() {
    const TOOL: Call = ("Weather.forecast", "com/example/Weather.java");
    const PARSER: Call =
        ("UTF8StreamJsonParser.nextToken", "jackson-core.jar!/com/fasterxml/jackson/core/UTF8StreamJsonParser.java");
    const MAPPER: Call =
        ("ObjectMapper.readValue", "jackson-databind.jar!/com/fasterxml/jackson/databind/ObjectMapper.java");
    const SDK: Call = ("McpJsonMapper.readValue", "mcp-core.jar!/io/modelcontextprotocol/json/McpJsonMapper.java");
    const AGENT: Call = ("Exporter.export", "opentelemetry.jar!/io/opentelemetry/exporter/Exporter.java");
    const THREAD: Call = ("Thread.run", "jrt:/java.base/java/lang/Thread.java");
    let of_java = |stack: &'static [Call]| {
        looked_into(&[], &[running(0.0, 40.0, stack), running(40.0, 60.0, &[TOOL, SDK, THREAD])])
    };
    for (stack, line) in [
        (&[PARSER, MAPPER, TOOL, SDK, THREAD][..], Some("com/example/Weather.java")),
        // Jackson works for the SDK; no line of the server's code takes that time.
        (&[PARSER, MAPPER, SDK, THREAD], None),
    ] {
        let found = found(&of_java(stack));
        let [finding] = found.as_slice() else { panic!("{found:?}") };
        let Cause::SerializationCost(context) = &finding.cause else { panic!("{finding:?}") };
        assert_eq!(context.library, "jackson-databind");
        assert_eq!(context.line.as_ref().map(|line| line.file.as_str()), line);
    }
    assert_eq!(codes(&of_java(&[PARSER, MAPPER, AGENT, THREAD])), [""; 0]);
}

#[test]
fn a_part_of_the_processor_time_below_a_fifth_is_no_cause() {
    for stack in [&[VALIDATE, OWN, LOOP][..], PICKLES] {
        let works = [running(0.0, 15.0, stack), running(15.0, 99.0, COMPUTES)];
        assert_eq!(codes(&looked_into(&[], &works)), [""; 0]);
    }
    // A validator of the server's own is the server's own code.
    assert_eq!(codes(&computing(&[OWN, VALIDATE, OWN, LOOP])), [""; 0]);
}

#[test]
fn an_import_in_each_call_is_named_with_its_line() {
    let cases = [
        (&[FIND_SPEC, OWN, LOOP][..], None),
        (&[PANDAS, LOAD, OWN, LOOP, PROGRAM], Some("pandas")),
        (&[SETTINGS, LOAD, OWN, LOOP, PROGRAM], Some("settings")),
        // The program itself was imported by another one.
        (&[PANDAS, LOAD, OWN, LOOP, PROGRAM, LOAD, PROGRAM], Some("pandas")),
    ];
    for (stack, module) in cases {
        let found = found(&computing(stack));
        let [finding] = found.as_slice() else { panic!("{found:?}") };
        let Cause::ImportInCall(context) = &finding.cause else { panic!("{finding:?}") };
        assert_eq!((context.module.as_deref(), context.in_first_call), (module, false));
        assert_eq!((context.line.file.as_str(), context.line.function.as_str()), ("/srv/weather.py", "forecast"));
    }
    // The server was begun by an import, and its tool computes.
    assert_eq!(codes(&computing(&[OWN, LOOP, PROGRAM, LOAD, PROGRAM])), [""; 0]);
}

#[test]
fn an_import_within_the_building_of_a_client_is_not_the_clients_time_as_well() {
    const CLIENT: Call = ("Client.__init__", "/v/site-packages/httpx/_client.py");
    let works = [running(0.0, 20.0, &[PANDAS, LOAD, CLIENT, OWN, LOOP]), running(20.0, 60.0, &[CLIENT, OWN, LOOP])];
    let found = found(&looked_into(&[], &works));
    let gains: Vec<_> = found
        .iter()
        .map(|finding| match &finding.cause {
            Cause::ImportInCall(context) => ("import", context.times.gain),
            Cause::ClientBuiltPerCall(context) => ("client", context.times.gain),
            other => panic!("{other:?}"),
        })
        .collect();
    let [("client", client), ("import", import)] = gains.as_slice() else { panic!("{gains:?}") };
    assert!((ms(15.0)..=ms(25.0)).contains(import), "{gains:?}");
    assert!((ms(35.0)..=ms(45.0)).contains(client), "{gains:?}");
}

#[test]
fn an_import_in_the_first_call_is_told_apart() {
    let works = [running(0.0, 20.0, COMPUTES)];
    let first_works = [running(0.0, 80.0, &[PANDAS, LOAD, OWN, LOOP])];
    let found = found(&Inside { works: &works, first_works: &first_works, ..Inside::default() }.recording());
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::ImportInCall(context) = &finding.cause else { panic!("{finding:?}") };
    assert!(context.in_first_call);
    assert!((ms(75.0)..=ms(85.0)).contains(&context.times.gain), "{context:?}");
    assert_eq!(finding.calls.len(), 1);
    // Nobody notices 30 ms once.
    let first_works = [running(0.0, 30.0, &[PANDAS, LOAD, OWN, LOOP])];
    assert_eq!(codes(&Inside { works: &works, first_works: &first_works, ..Inside::default() }.recording()), [""; 0]);
}

#[test]
fn pauses_of_the_runtime_are_named_with_their_time_and_the_line() {
    let found = found(&collected(40.0));
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    let Cause::GcPauses(context) = &finding.cause else { panic!("{finding:?}") };
    // Two of the pauses overlap, and one lies within another.
    assert_eq!((context.times.cause, context.longest, context.pauses), (ms(30.0), ms(30.0), 1.0));
    assert_eq!(context.line.as_ref().map(|line| line.line), Some(14));
    let short = [(10.0, 11.0), (50.0, 55.0)];
    assert_eq!(codes(&Inside { pauses: &short, ..Inside::default() }.recording()), [""; 0]);
    // A pause between calls costs no call.
    assert_eq!(codes(&Inside { pauses: &[(110.0, 190.0)], ..Inside::default() }.recording()), [""; 0]);
}

#[test]
fn pauses_while_a_client_is_built_belong_to_the_client() {
    const CLIENT: Call = ("Client.__init__", "/v/site-packages/httpx/_client.py");
    let works = [running(0.0, 50.0, &[CLIENT, OWN, LOOP]), running(50.0, 90.0, COMPUTES)];
    let found_with = |pauses: &[(f64, f64)]| codes(&Inside { works: &works, pauses, ..Inside::default() }.recording());
    assert_eq!(found_with(&[(10.0, 40.0)]), ["client-built-per-call"]);
    assert_eq!(found_with(&[(10.0, 40.0), (60.0, 80.0)]), ["client-built-per-call", "gc-pauses"]);
}

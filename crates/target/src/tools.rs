//! The tools that every profile has. They do as little as their name says.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::pacing::Pacing;
use crate::timer::Timer;

/// The longest that `wait` waits.
const LONGEST_WAIT_MS: u64 = 600_000;
/// The most that `payload` makes.
const MOST_PAYLOAD_BYTES: usize = 16 << 20;

/// A tool of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Echo,
    Greet,
    Double,
    Wait,
    Payload,
    /// Only in profile `limits`.
    Answer,
}

impl Tool {
    pub(crate) const ALL: [Self; 6] = [Self::Echo, Self::Greet, Self::Double, Self::Wait, Self::Payload, Self::Answer];
    /// The tools of every profile.
    pub(crate) const COMMON: [Self; 5] = [Self::Echo, Self::Greet, Self::Double, Self::Wait, Self::Payload];

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Greet => "greet",
            Self::Double => "double",
            Self::Wait => "wait",
            Self::Payload => "payload",
            Self::Answer => "answer",
        }
    }

    /// The tool as `tools/list` shows it.
    pub(crate) fn tool_definition(self) -> Value {
        let (description, argument, schema) = match self {
            Self::Echo => ("Returns its text", "text", json!({"type": "string"})),
            Self::Greet => ("Greets somebody by name", "name", json!({"type": "string"})),
            Self::Double => ("Doubles a whole number", "n", json!({"type": "integer"})),
            Self::Wait => (
                "Waits for so many milliseconds",
                "ms",
                json!({"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT_MS}),
            ),
            Self::Payload => (
                "Returns a text of so many bytes",
                "bytes",
                json!({"type": "integer", "minimum": 0, "maximum": MOST_PAYLOAD_BYTES}),
            ),
            Self::Answer => {
                return json!({
                    "name": self.name(),
                    "description": "Answers at a chosen time, in a chosen way",
                    "inputSchema": Pacing::input_schema(),
                });
            }
        };
        json!({
            "name": self.name(),
            "description": description,
            "inputSchema": {
                "type": "object",
                "properties": {argument: schema},
                "required": [argument],
            },
        })
    }

    /// Runs the tool. The error is a sentence for the caller.
    pub(crate) async fn run_tool(self, arguments: Option<&RawValue>, timer: &Timer) -> Result<String, String> {
        match self {
            Self::Echo => read_arguments(arguments).map(|Text { text }| text),
            Self::Greet => read_arguments(arguments).map(|NameArguments { name }| format!("Hello, {name}!")),
            Self::Double => {
                let Number { n } = read_arguments(arguments)?;
                let doubled = n.checked_mul(2).ok_or("n is too large to be doubled")?;
                Ok(doubled.to_string())
            }
            Self::Wait => {
                let WaitArguments { ms } = read_arguments(arguments)?;
                if ms > LONGEST_WAIT_MS {
                    return Err(format!("ms is at most {LONGEST_WAIT_MS}"));
                }
                timer.sleep(Duration::from_millis(ms)).await;
                Ok(format!("waited {ms} ms"))
            }
            Self::Payload => {
                let Payload { bytes } = read_arguments(arguments)?;
                if bytes > MOST_PAYLOAD_BYTES {
                    return Err(format!("bytes is at most {MOST_PAYLOAD_BYTES}"));
                }
                Ok("x".repeat(bytes))
            }
            // The reply is shaped later, so nothing waits here.
            Self::Answer => Ok(Pacing::parse(arguments.map_or("{}", RawValue::get))?.answer_text()),
        }
    }
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

#[derive(Deserialize)]
struct NameArguments {
    name: String,
}

#[derive(Deserialize)]
struct Number {
    n: i64,
}

#[derive(Deserialize)]
struct WaitArguments {
    ms: u64,
}

#[derive(Deserialize)]
struct Payload {
    bytes: usize,
}

fn read_arguments<T: DeserializeOwned>(arguments: Option<&RawValue>) -> Result<T, String> {
    let arguments = arguments.map_or("{}", RawValue::get);
    serde_json::from_str(arguments).map_err(|error| format!("invalid arguments: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn call(name: &str, arguments: &str) -> Result<String, String> {
        let timer = Timer::start_thread().unwrap();
        let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
        Tool::from_name(name).unwrap().run_tool(Some(&arguments), &timer).await
    }

    #[tokio::test]
    async fn each_tool_does_what_its_name_says() {
        assert_eq!(call("echo", r#"{"text":"h\u00e9"}"#).await.unwrap(), "hé");
        assert_eq!(call("greet", r#"{"name":"World"}"#).await.unwrap(), "Hello, World!");
        assert_eq!(call("double", r#"{"n":-21}"#).await.unwrap(), "-42");
        assert_eq!(call("wait", r#"{"ms":1}"#).await.unwrap(), "waited 1 ms");
        assert_eq!(call("payload", r#"{"bytes":3}"#).await.unwrap(), "xxx");
    }

    #[tokio::test]
    async fn arguments_that_make_no_sense_are_refused() {
        for (tool, arguments) in [
            ("greet", "{}"),
            ("greet", r#"{"name":1}"#),
            ("echo", "[]"),
            ("double", r#"{"n":9223372036854775807}"#),
            ("wait", r#"{"ms":600001}"#),
            ("wait", r#"{"ms":-1}"#),
            ("payload", r#"{"bytes":16777217}"#),
        ] {
            assert!(call(tool, arguments).await.is_err(), "{tool} {arguments}");
        }
    }
}

//! The tool `answer` of profile `limits`: the caller chooses when the parts of its reply come.

use std::time::Duration;

use mcpace_wire::jsonrpc::write_notification;
use serde::Deserialize;
use serde_json::{Value, json};

/// The latest answer.
const LONGEST_MS: u64 = 600_000;
/// The shortest time between two messages, so that the messages of a reply are bounded.
const SHORTEST_MS: u64 = 100;

/// When the head of a reply is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum HeadTime {
    /// At once.
    #[default]
    Early,
    /// With the answer.
    Late,
}

/// Content of a reply before its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Sends {
    #[default]
    Nothing,
    /// Comments of the event stream, which every client skips.
    Comments,
    /// Progress, if the client gave a token.
    Progress,
    /// The bytes of the answer, in small parts.
    Bytes,
}

/// The times of one reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pacing {
    after_ms: u64,
    #[serde(default)]
    head: HeadTime,
    #[serde(default)]
    sends: Sends,
    #[serde(default = "every_second")]
    every_ms: u64,
}

fn every_second() -> u64 {
    1_000
}

impl Pacing {
    /// Reads a tool call's arguments. The error is a sentence for the caller.
    pub(crate) fn parse(arguments: &str) -> Result<Self, String> {
        let pacing: Self = serde_json::from_str(arguments).map_err(|error| format!("invalid arguments: {error}"))?;
        if pacing.after_ms > LONGEST_MS {
            return Err(format!("after_ms is at most {LONGEST_MS}"));
        }
        if pacing.every_ms < SHORTEST_MS {
            return Err(format!("every_ms is at least {SHORTEST_MS}"));
        }
        if pacing.head == HeadTime::Late && pacing.sends != Sends::Nothing {
            return Err("a late head can't follow what the reply sends; choose head early, or sends nothing".to_owned());
        }
        Ok(pacing)
    }

    /// Schema of the arguments.
    pub(crate) fn input_schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "after_ms": {"type": "integer", "minimum": 0, "maximum": LONGEST_MS, "description": "When the answer comes"},
                "head": {"enum": ["early", "late"], "description": "Whether the head of an HTTP reply comes at once or with the answer"},
                "sends": {"enum": ["nothing", "comments", "progress", "bytes"], "description": "What comes until the answer"},
                "every_ms": {"type": "integer", "minimum": SHORTEST_MS, "description": "Time between two of them"},
            },
            "required": ["after_ms"],
        })
    }

    /// Text of the answer.
    pub(crate) fn answer_text(self) -> String {
        format!("answered after {} ms", self.after_ms)
    }

    /// When the head of an HTTP reply is sent.
    pub(crate) fn head(self) -> Duration {
        if self.head == HeadTime::Late { self.answer() } else { Duration::ZERO }
    }

    /// When the answer is complete.
    pub(crate) fn answer(self) -> Duration {
        Duration::from_millis(self.after_ms)
    }

    /// Time between two parts of the answer, if it is sent in parts.
    pub(crate) fn part_period(self) -> Option<Duration> {
        (self.sends == Sends::Bytes).then_some(Duration::from_millis(self.every_ms))
    }

    /// Messages before the answer, each with its time: a notification, or `None` for a comment. Progress needs the `token`
    /// of the request.
    pub(crate) fn messages(self, token: Option<&Value>) -> Vec<(Duration, Option<Vec<u8>>)> {
        let times = (1..).map(|number| number * self.every_ms).take_while(|at| *at < self.after_ms);
        let message = |at: u64| match (self.sends, token) {
            (Sends::Comments, _) => Some(None),
            (Sends::Progress, Some(token)) => {
                let params = json!({"progressToken": token, "progress": at, "total": self.after_ms});
                let mut bytes = Vec::new();
                write_notification(&mut bytes, "notifications/progress", Some(&params)).ok()?;
                Some(Some(bytes))
            }
            _ => None,
        };
        times.filter_map(|at| Some((Duration::from_millis(at), message(at)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_comes_until_the_answer_and_only_with_a_token() {
        let pacing = Pacing::parse(r#"{"after_ms": 1000, "sends": "progress", "every_ms": 300}"#).unwrap();
        let at: Vec<u128> = pacing.messages(Some(&json!("t"))).iter().map(|(at, _)| at.as_millis()).collect();
        assert_eq!(at, [300, 600, 900]);
        assert!(pacing.messages(None).is_empty());
        assert_eq!((pacing.head(), pacing.answer()), (Duration::ZERO, Duration::from_secs(1)));
    }

    #[test]
    fn times_out_of_range_and_impossible_orders_are_refused() {
        for arguments in [
            "{}",
            r#"{"after_ms": 600001}"#,
            r#"{"after_ms": 1, "every_ms": 99}"#,
            r#"{"after_ms": 1, "head": "late", "sends": "progress"}"#,
            r#"{"after_ms": 1, "other": 1}"#,
        ] {
            assert!(Pacing::parse(arguments).is_err(), "{arguments}");
        }
    }
}

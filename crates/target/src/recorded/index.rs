//! Finds the recorded answer to a request.
//!
//! Requests are equal where their methods and their parameters without `_meta` are. Equal requests form a group, whose
//! answers are given in the recorded order and from the first again after the last. A recorded request with masked or cut
//! parameters is also found by the digest that the recorder made of the original text.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};

use mcpace_record::{Digest, MessageNote};
use mcpace_wire::jsonrpc::{Request, code};
use mcpace_wire::quote_printable;
use serde_json::Value;

use super::answer::{Fate, REDACTED, RecordedAnswer, RecordedOutcome, RecordedRequest};
use crate::failure::RequestFailure;
use crate::nearest::nearest_name;

/// Most names that a message lists.
const MOST_NAMES: usize = 20;

/// How a request is matched with a recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Matching {
    /// Method and parameters are equal.
    #[default]
    Strict,
    /// Where no recorded request is equal: the request of the same method and the same tool, prompt or resource whose
    /// parameters have most values in common.
    Lenient,
}

/// How near the recorded request is to the one that it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closeness {
    Equal,
    Nearest,
    /// No recorded request fits.
    None,
}

impl Closeness {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Nearest => "nearest",
            Self::None => "none",
        }
    }
}

/// All answers, by request.
#[derive(Debug, Default)]
pub(super) struct AnswerIndex {
    groups: Vec<AnswerGroup>,
    methods: BTreeSet<String>,
    by_params: HashMap<(String, Value), usize>,
    by_digest: HashMap<(String, Option<String>, Digest), usize>,
    /// Groups of one method and one tool, prompt or resource, in the recorded order.
    by_name: HashMap<(String, Option<String>), Vec<usize>>,
}

/// Equal requests.
#[derive(Debug)]
struct AnswerGroup {
    method: String,
    params: Option<Value>,
    /// Number of values in the parameters.
    values: usize,
    answers: Vec<RecordedAnswer>,
    cut: bool,
    refused: bool,
    next: AtomicUsize,
}

/// An answer, and how near its request is.
pub(super) struct Found<'i> {
    pub(super) answer: &'i RecordedAnswer,
    pub(super) closeness: Closeness,
}

impl AnswerIndex {
    pub(super) fn new(requests: Vec<RecordedRequest>) -> Self {
        let mut index = Self::default();
        for request in requests {
            index.add_request(request);
        }
        index
    }

    fn add_request(&mut self, request: RecordedRequest) {
        let RecordedRequest { method, params, name, digest, fate } = request;
        self.methods.insert(method.clone());
        let named = (method.clone(), name.clone());
        // Where the whole text is there, it decides.
        let is_whole = params.as_ref().is_some_and(|params| !params.to_string().contains(REDACTED));
        let digest_key = digest.filter(|_| !is_whole).map(|digest| (method.clone(), name, digest));
        let known = match (&params, &digest_key) {
            (Some(params), _) => self.by_params.get(&(method.clone(), params.clone())),
            (None, Some(key)) => self.by_digest.get(key),
            (None, None) => None,
        };
        let number = known.copied().unwrap_or_else(|| {
            let number = self.groups.len();
            self.by_name.entry(named).or_default().push(number);
            if let Some(params) = &params {
                self.by_params.insert((method.clone(), params.clone()), number);
            }
            self.groups.push(AnswerGroup {
                values: params.as_ref().map_or(0, count_values),
                method,
                params,
                answers: Vec::new(),
                cut: false,
                refused: false,
                next: AtomicUsize::new(0),
            });
            number
        });
        if let Some(key) = digest_key {
            self.by_digest.entry(key).or_insert(number);
        }
        match fate {
            Fate::Answered(answer) => self.groups[number].answers.push(answer),
            Fate::Cut => self.groups[number].cut = true,
            Fate::Refused => self.groups[number].refused = true,
            Fate::Unanswered => {}
        }
    }

    /// The first result of any request of the method, else its first failure.
    pub(super) fn first_answer(&self, method: &str) -> Option<&RecordedAnswer> {
        let answers = self.groups.iter().filter(|group| group.method == method).flat_map(|group| &group.answers);
        answers.min_by_key(|answer| !matches!(answer.outcome, RecordedOutcome::Result(_)))
    }

    pub(super) fn knows_method(&self, method: &str) -> bool {
        self.methods.contains(method)
    }

    /// Whether any request of a method that begins so has an answer.
    pub(super) fn has_methods(&self, prefix: &str) -> bool {
        self.groups.iter().any(|group| group.method.starts_with(prefix) && !group.answers.is_empty())
    }

    pub(super) fn knows_name(&self, method: &str, name: &str) -> bool {
        self.by_name.contains_key(&(method.to_owned(), Some(name.to_owned())))
    }

    /// The answer to a request.
    ///
    /// The error says what the recording has instead.
    pub(super) fn find_answer(&self, request: &Request<'_>, matching: Matching) -> Result<Found<'_>, RequestFailure> {
        let method = request.method.as_ref();
        let params = match request.params {
            Some(params) => serde_json::from_str(params.get())
                .map_err(|error| RequestFailure::new(code::INVALID_PARAMS, format!("invalid params: {error}")))?,
            None => Value::Null,
        };
        let params = comparable_params(params);
        let name = target_name(&params);
        let equal = self.by_params.get(&(method.to_owned(), params.clone())).copied().or_else(|| {
            let digest = request_digest(&note_of(request))?;
            self.by_digest.get(&(method.to_owned(), name.clone(), digest)).copied()
        });
        if let Some(answer) = equal.and_then(|number| self.groups[number].next_answer()) {
            return Ok(Found { answer, closeness: Closeness::Equal });
        }
        let named = (method.to_owned(), name);
        let Some(alike) = self.by_name.get(&named) else {
            return Err(self.unknown_request(method, named.1.as_deref()));
        };
        let nearest = nearest_group(alike.iter().map(|number| &self.groups[*number]), &params);
        if matching == Matching::Lenient
            && let Some(answer) = nearest.and_then(AnswerGroup::next_answer)
        {
            return Ok(Found { answer, closeness: Closeness::Nearest });
        }
        Err(unmatched_params(equal.map(|number| &self.groups[number]), alike.len(), nearest, &named))
    }

    fn unknown_request(&self, method: &str, name: Option<&str>) -> RequestFailure {
        let mut names: Vec<&str> =
            self.by_name.keys().filter(|(of, _)| of == method).filter_map(|(_, name)| name.as_deref()).collect();
        names.sort_unstable();
        if names.is_empty() {
            let methods: Vec<&str> = self.methods.iter().map(String::as_str).collect();
            let message = format!("the recording has no {} (it has {})", quote_printable(method), listed(&methods));
            return RequestFailure::new(code::METHOD_NOT_FOUND, message);
        }
        let given = name.unwrap_or_default();
        let meant = nearest_name(given, names.iter().copied());
        let meant = meant.map(|name| format!("; did you mean {}?", quote_printable(name))).unwrap_or_default();
        let message =
            format!("the recording has no {method} of {:?}{meant} (it has {})", quote_printable(given), listed(&names));
        RequestFailure::new(code::INVALID_PARAMS, message)
    }
}

impl AnswerGroup {
    fn next_answer(&self) -> Option<&RecordedAnswer> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.answers.get(number % self.answers.len().max(1))
    }
}

/// Parameters as they are compared: without `_meta`, and without members that say nothing.
pub(super) fn comparable_params(params: Value) -> Value {
    let Value::Object(mut members) = params else {
        return Value::Object(serde_json::Map::new());
    };
    members.remove("_meta");
    members.retain(|name, value| match name.as_str() {
        "arguments" => !value.is_null() && value.as_object().is_none_or(|arguments| !arguments.is_empty()),
        "cursor" => !value.is_null(),
        _ => true,
    });
    Value::Object(members)
}

/// The tool, prompt, resource or task that the parameters name.
pub(super) fn target_name(params: &Value) -> Option<String> {
    let reference = &params["ref"];
    let named = [&params["name"], &params["uri"], &params["taskId"], &reference["name"], &reference["uri"]];
    named.into_iter().find_map(Value::as_str).map(str::to_owned)
}

/// Identity of the text that a request asks with.
pub(super) fn request_digest(note: &MessageNote) -> Option<Digest> {
    note.arguments.or(note.content)
}

fn note_of(request: &Request<'_>) -> MessageNote {
    let mut text = Vec::new();
    request.write(&mut text);
    MessageNote::of(&text).pop().unwrap_or_else(|| MessageNote::new(mcpace_record::MessageKind::Request))
}

/// The group with an answer whose parameters have most values in common; the earliest of equals.
fn nearest_group<'g>(groups: impl Iterator<Item = &'g AnswerGroup>, params: &Value) -> Option<&'g AnswerGroup> {
    let values = count_values(params);
    let mut nearest: Option<(f64, &AnswerGroup)> = None;
    for group in groups.filter(|group| !group.answers.is_empty()) {
        let common = group.params.as_ref().map_or(0, |recorded| count_common(recorded, params));
        // Dice's coefficient; counts of one message's values are exact in a double.
        let likeness = 2.0 * common as f64 / (group.values + values).max(1) as f64;
        if nearest.is_none_or(|(best, _)| likeness > best) {
            nearest = Some((likeness, group));
        }
    }
    nearest.map(|(_, group)| group)
}

/// Number of values that are no objects or arrays; an empty one counts as a value.
fn count_values(value: &Value) -> usize {
    match value {
        Value::Object(members) => members.values().map(count_values).sum::<usize>().max(1),
        Value::Array(items) => items.iter().map(count_values).sum::<usize>().max(1),
        _ => 1,
    }
}

/// Number of values that stand in the same places of both.
fn count_common(left: &Value, right: &Value) -> usize {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) if !left.is_empty() => {
            left.iter().filter_map(|(name, value)| right.get(name).map(|other| count_common(value, other))).sum()
        }
        (Value::Array(left), Value::Array(right)) if !left.is_empty() => {
            left.iter().zip(right).map(|(value, other)| count_common(value, other)).sum()
        }
        _ => usize::from(left == right),
    }
}

fn unmatched_params(
    equal: Option<&AnswerGroup>,
    recorded: usize,
    nearest: Option<&AnswerGroup>,
    (method, name): &(String, Option<String>),
) -> RequestFailure {
    let what = match name {
        Some(name) => format!("{method} of {:?}", quote_printable(name)),
        None => method.clone(),
    };
    let message = match equal {
        Some(AnswerGroup { cut: true, .. }) => {
            format!("the recording has only a part of the answer to this {what}; record with a larger --body-limit")
        }
        Some(AnswerGroup { refused: true, .. }) => {
            format!("the recorded server refused this {what} with an HTTP status and did not answer it")
        }
        Some(_) => format!("the recording has no answer to this {what}"),
        None => {
            let nearest = nearest.and_then(|group| group.params.as_ref());
            let nearest = nearest.map(|params| format!("; the nearest has {}", quote_printable(&params.to_string())));
            format!(
                "the recording has {what} with {recorded} other sets of parameters, and not with these{}",
                nearest.unwrap_or_default()
            )
        }
    };
    RequestFailure::new(code::INVALID_PARAMS, message)
}

fn listed(names: &[&str]) -> String {
    let mut text: Vec<String> = names.iter().take(MOST_NAMES).map(|name| quote_printable(name)).collect();
    if names.len() > MOST_NAMES {
        text.push(format!("{} more", names.len() - MOST_NAMES));
    }
    text.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_in_the_same_places_are_common() {
        let recorded = json!({"name": "search", "arguments": {"query": "tea", "limit": 5, "tags": ["a", "b"]}});
        assert_eq!((count_values(&recorded), count_common(&recorded, &recorded)), (5, 5));
        let other = json!({"name": "search", "arguments": {"query": "rice", "limit": 5, "tags": ["a"]}});
        assert_eq!(count_common(&recorded, &other), 3);
        assert_eq!(count_common(&json!({}), &json!({})), 1);
    }

    #[test]
    fn members_that_say_nothing_are_not_compared() {
        for params in [
            json!({"name": "now", "arguments": {}, "_meta": {"progressToken": 1}}),
            json!({"name": "now", "arguments": null}),
            json!({"name": "now", "cursor": null}),
        ] {
            assert_eq!(comparable_params(params), json!({"name": "now"}));
        }
        assert_eq!(comparable_params(Value::Null), json!({}));
    }
}

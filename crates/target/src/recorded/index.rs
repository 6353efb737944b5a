//! Finds the recorded answer to a request.
//!
//! Requests are equal where their methods and their parameters without `_meta` are. Equal requests form a group, whose
//! answers are given in the recorded order and from the first again after the last. A recorded request with masked or cut
//! parameters is also found by the digest that the recorder made of the original text.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcpace_record::{Digest, MessageNote};
use mcpace_wire::jsonrpc::{Request, code};
use mcpace_wire::quote_printable;
use serde_json::Value;

use super::answer::{Fate, REDACTED, RecordedAnswer, RecordedRequest};
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
    methods: BTreeMap<String, MethodAnswers>,
}

/// Groups of one method.
#[derive(Debug, Default)]
struct MethodAnswers {
    /// By tool, prompt or resource.
    names: HashMap<Option<String>, NameAnswers>,
    /// The first result, else the first failure: the number of its group, and its number in the group.
    first: Option<(usize, usize)>,
}

/// Groups of one method and one tool, prompt or resource.
#[derive(Debug, Default)]
struct NameAnswers {
    by_params: HashMap<Arc<Value>, usize>,
    by_digest: HashMap<Digest, usize>,
    /// In the recorded order.
    groups: Vec<usize>,
}

/// Equal requests.
#[derive(Debug)]
struct AnswerGroup {
    params: Option<Arc<Value>>,
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
        // Where the whole text is there, it decides.
        let is_whole = params.as_ref().is_some_and(|params| !params.to_string().contains(REDACTED));
        let digest = digest.filter(|_| !is_whole);
        let of_method = self.methods.entry(method).or_default();
        let of_name = of_method.names.entry(name).or_default();
        let known = match (&params, &digest) {
            (Some(params), _) => of_name.by_params.get(params),
            (None, Some(digest)) => of_name.by_digest.get(digest),
            (None, None) => None,
        };
        let number = known.copied().unwrap_or_else(|| {
            let number = self.groups.len();
            of_name.groups.push(number);
            let params = params.map(Arc::new);
            if let Some(params) = &params {
                of_name.by_params.insert(Arc::clone(params), number);
            }
            self.groups.push(AnswerGroup {
                values: params.as_deref().map_or(0, count_values),
                params,
                answers: Vec::new(),
                cut: false,
                refused: false,
                next: AtomicUsize::new(0),
            });
            number
        });
        if let Some(digest) = digest {
            of_name.by_digest.entry(digest).or_insert(number);
        }
        match fate {
            Fate::Answered(answer) => {
                let is_first = match of_method.first {
                    Some((group, first)) => answer.is_result() && !self.groups[group].answers[first].is_result(),
                    None => true,
                };
                let answers = &mut self.groups[number].answers;
                if is_first {
                    of_method.first = Some((number, answers.len()));
                }
                answers.push(answer);
            }
            Fate::Cut => self.groups[number].cut = true,
            Fate::Refused => self.groups[number].refused = true,
            Fate::Unanswered => {}
        }
    }

    /// The first result of any request of the method, else its first failure.
    pub(super) fn first_answer(&self, method: &str) -> Option<&RecordedAnswer> {
        let (group, number) = self.methods.get(method)?.first?;
        self.groups[group].answers.get(number)
    }

    pub(super) fn knows_method(&self, method: &str) -> bool {
        self.methods.contains_key(method)
    }

    /// Whether any request of a method that begins so has an answer.
    pub(super) fn has_methods(&self, prefix: &str) -> bool {
        self.methods.iter().any(|(method, answers)| method.starts_with(prefix) && answers.first.is_some())
    }

    pub(super) fn knows_name(&self, method: &str, name: &str) -> bool {
        self.methods.get(method).is_some_and(|answers| answers.names.contains_key(&Some(name.to_owned())))
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
        let Some(of_name) = self.methods.get(method).and_then(|answers| answers.names.get(&name)) else {
            return Err(self.unknown_request(method, name.as_deref()));
        };
        let equal = of_name.by_params.get(&params).or_else(|| {
            // A recording without masked or cut parameters needs no digest of the request.
            let digest = (!of_name.by_digest.is_empty()).then(|| request_digest(&note_of(request)))??;
            of_name.by_digest.get(&digest)
        });
        let equal = equal.map(|number| &self.groups[*number]);
        if let Some(answer) = equal.and_then(AnswerGroup::next_answer) {
            return Ok(Found { answer, closeness: Closeness::Equal });
        }
        let nearest = nearest_group(of_name.groups.iter().map(|number| &self.groups[*number]), &params);
        if matching == Matching::Lenient
            && let Some(answer) = nearest.and_then(AnswerGroup::next_answer)
        {
            return Ok(Found { answer, closeness: Closeness::Nearest });
        }
        Err(unmatched_params(equal, of_name.groups.len(), nearest, (method, name.as_deref())))
    }

    fn unknown_request(&self, method: &str, name: Option<&str>) -> RequestFailure {
        let names = self.methods.get(method).into_iter().flat_map(|answers| answers.names.keys());
        let mut names: Vec<&str> = names.filter_map(Option::as_deref).collect();
        names.sort_unstable();
        if names.is_empty() {
            let methods: Vec<&str> = self.methods.keys().map(String::as_str).collect();
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
        let common = group.params.as_deref().map_or(0, |recorded| count_common(recorded, params));
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
    (method, name): (&str, Option<&str>),
) -> RequestFailure {
    let what = match name {
        Some(name) => format!("{method} of {:?}", quote_printable(name)),
        None => method.to_owned(),
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
            let nearest = nearest.and_then(|group| group.params.as_deref());
            let nearest = nearest.map(|params| format!("; the nearest has {}", quote_printable(&params.to_string())));
            let sets = if recorded == 1 { "another set".to_owned() } else { format!("{recorded} other sets") };
            format!(
                "the recording has {what} with {sets} of parameters, and not with these{}",
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

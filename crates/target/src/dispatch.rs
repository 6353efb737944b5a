//! From a JSON-RPC request to its result: the methods that a target serves.
//!
//! No HTTP in here. The clock is read at the border to the tool and at both ends.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::{Id, Request, code, write_error, write_result};
use mcpace_wire::mcp::key;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::counters::{Tally, count};
use crate::faults::{FaultKind, Faults};
use crate::timer::Timer;
use crate::timing::{Inner, Layers};
use crate::tools::Tool;

/// For how long a client may keep a list, in milliseconds (2026-07-28).
const LIST_TTL_MS: u64 = 60_000;

/// Settings and state that dispatching needs.
pub(crate) struct Dispatcher<'a> {
    pub(crate) faults: &'a Faults,
    pub(crate) timer: &'a Timer,
    pub(crate) tally: &'a Tally,
    /// Whether the request is of 2026-07-28 or later.
    pub(crate) is_modern: bool,
}

/// A request's outcome before it is encoded, since its timing is not known yet.
#[derive(Debug)]
pub(crate) struct Dispatched {
    id: Id<'static>,
    outcome: Result<Value, Failure>,
    pub(crate) inner: Inner,
    /// Whether the request asked for its timing.
    pub(crate) wants_timing: bool,
}

/// A JSON-RPC error.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) code: i64,
    pub(crate) message: Cow<'static, str>,
    pub(crate) data: Option<Value>,
}

impl Failure {
    pub(crate) fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The error as a JSON-RPC response.
    pub(crate) fn encoded(&self, id: Option<&Id<'_>>) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Writing fails on maps whose keys are no strings; `Value` has none.
        let _ = write_error(&mut bytes, id, self.code, &self.message, self.data.as_ref());
        bytes
    }
}

/// The parameters that any method here looks at.
#[derive(Debug, Default, Deserialize)]
struct Params<'a> {
    #[serde(rename = "protocolVersion", borrow, default)]
    protocol_version: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(rename = "_meta", default)]
    meta: Option<serde_json::Map<String, Value>>,
}

impl Dispatcher<'_> {
    /// Serves one request.
    pub(crate) async fn dispatch(&self, request: &Request<'_>) -> Dispatched {
        let begun = Instant::now();
        let mut service = Duration::ZERO;
        let params = read_params(request.params);
        let wants_timing = matches!(
            &params,
            Ok(Params { meta: Some(meta), .. }) if meta.contains_key(key::TIMING)
        );
        let outcome = match params {
            Ok(params) => self.method(&request.method, &params, &mut service).await,
            Err(failure) => Err(failure),
        };
        let dispatch = begun.elapsed().saturating_sub(service);
        Dispatched {
            id: self.answering(&request.id, &request.method),
            outcome: outcome.map(|result| self.finished(&request.method, result)),
            inner: Inner { dispatch, service },
            wants_timing,
        }
    }

    async fn method(&self, method: &str, params: &Params<'_>, service: &mut Duration) -> Result<Value, Failure> {
        let known = matches!(
            (method, self.is_modern),
            ("initialize" | "ping", false) | ("server/discover", true) | ("tools/list" | "tools/call", _)
        );
        let counted = if known { method } else { "other" };
        self.tally.add(|counters| count(&mut counters.requests, counted));
        if !known {
            return Err(Failure::new(code::METHOD_NOT_FOUND, "this method is not served here"));
        }
        match method {
            "initialize" => Ok(initialize(params.protocol_version.as_deref())),
            "server/discover" => Ok(discover()),
            "tools/list" => Ok(tools(self.is_modern)),
            "tools/call" => self.call(params, service).await,
            _ => Ok(json!({})),
        }
    }

    async fn call(&self, params: &Params<'_>, service: &mut Duration) -> Result<Value, Failure> {
        self.timer.sleep(self.faults.delay(FaultKind::Dispatch, "tools/call")).await;
        let tool = params.name.as_deref().and_then(Tool::from_name).ok_or_else(|| {
            let all = Tool::ALL.map(Tool::name).join(", ");
            Failure::new(code::INVALID_PARAMS, format!("unknown tool (tools: {all})"))
        })?;
        self.tally.add(|counters| count(&mut counters.tools, tool.name()));
        let begun = Instant::now();
        self.timer.sleep(self.faults.delay(FaultKind::Tool, "tools/call")).await;
        let result = tool.call(params.arguments, self.timer).await;
        *service = begun.elapsed();
        let is_error = result.is_err();
        let (Ok(text) | Err(text)) = result;
        Ok(json!({"content": [{"type": "text", "text": text}], "isError": is_error}))
    }

    /// Adds the members that every result of the revision has, and the padding of a fault.
    fn finished(&self, method: &str, mut result: Value) -> Value {
        if self.is_modern {
            result["resultType"] = json!("complete");
            result["_meta"][key::SERVER_INFO] = server_info();
        }
        if let Some(bytes) = self.faults.amount(FaultKind::OversizedReply, method) {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            result["_meta"]["dev.mcpace/padding"] = json!("x".repeat(bytes));
        }
        result
    }

    /// The id that the response carries: the request's own, unless the fault says otherwise.
    fn answering(&self, id: &Id<'_>, method: &str) -> Id<'static> {
        if !self.faults.is_on(FaultKind::WrongId, method) {
            return id.clone().into_owned();
        }
        match id {
            Id::Integer(number) => Id::Integer(number.wrapping_add(1_000_000)),
            Id::Number(_) => Id::Integer(1_000_000),
            Id::String(text) => Id::from(format!("{text}-wrong")),
        }
    }
}

impl Dispatched {
    /// The error's code, if the request failed.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.outcome.as_ref().err()
    }

    /// The JSON-RPC response, with the layers' times in a result where they are told.
    pub(crate) fn encoded(self, told: Option<&Layers>) -> Vec<u8> {
        match self.outcome {
            Ok(mut result) => {
                if let Some(layers) = told {
                    result["_meta"][key::TIMING] = layers.meta();
                }
                let mut bytes = Vec::new();
                // Writing fails on maps whose keys are no strings; `Value` has none.
                let _ = write_result(&mut bytes, &self.id, &result);
                bytes
            }
            Err(failure) => failure.encoded(Some(&self.id)),
        }
    }
}

fn read_params(params: Option<&RawValue>) -> Result<Params<'_>, Failure> {
    params.map_or(Ok(Params::default()), |params| {
        serde_json::from_str(params.get())
            .map_err(|error| Failure::new(code::INVALID_PARAMS, format!("invalid params: {error}")))
    })
}

/// Legacy: the version that was asked for, or the latest that has `initialize`.
fn initialize(asked: Option<&str>) -> Value {
    let version = asked
        .and_then(|asked| asked.parse::<Revision>().ok())
        .filter(|revision| revision.is_legacy())
        .unwrap_or(Revision::LATEST_LEGACY);
    json!({
        "protocolVersion": version,
        "capabilities": capabilities(),
        "serverInfo": server_info(),
    })
}

fn discover() -> Value {
    let versions: Vec<Revision> = Revision::ALL.into_iter().filter(|revision| revision.is_modern()).collect();
    json!({
        "supportedVersions": versions,
        "capabilities": capabilities(),
        "ttlMs": LIST_TTL_MS,
        "cacheScope": "public",
    })
}

fn tools(is_modern: bool) -> Value {
    let mut list = json!({"tools": Tool::ALL.map(Tool::definition)});
    if is_modern {
        list["ttlMs"] = json!(LIST_TTL_MS);
        list["cacheScope"] = json!("public");
    }
    list
}

fn capabilities() -> Value {
    json!({"tools": {"listChanged": false}})
}

fn server_info() -> Value {
    json!({"name": "mcpace-target", "version": env!("CARGO_PKG_VERSION")})
}

//! From a JSON-RPC request to its result: the methods that a target serves.
//!
//! No HTTP in here. The clock is read at the border to the tool and at both ends.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::{Id, Request, code, write_result};
use mcpace_wire::mcp::key;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::counters::{Tally, count_one};
use crate::failure::RequestFailure;
use crate::faults::{FaultKind, Faults};
use crate::pacing::Pacing;
use crate::timer::Timer;
use crate::timing::{Layers, ServiceTime};
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
    /// Tools of the profile.
    pub(crate) tools: &'static [Tool],
}

/// A request's outcome before it is encoded, since its timing is not known yet.
#[derive(Debug)]
pub(crate) struct Dispatched {
    id: Id<'static>,
    outcome: Result<Value, RequestFailure>,
    pub(crate) inner: ServiceTime,
    /// Whether the request asked for its timing.
    pub(crate) wants_timing: bool,
    /// Times of the reply that the caller chose, and the request's progress token.
    pub(crate) pacing: Option<(Pacing, Option<Value>)>,
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
    pub(crate) async fn dispatch_request(&self, request: &Request<'_>) -> Dispatched {
        let begun = Instant::now();
        let mut service = Duration::ZERO;
        let params = read_params(request.params);
        let wants_timing = matches!(
            &params,
            Ok(Params { meta: Some(meta), .. }) if meta.contains_key(key::TIMING)
        );
        let pacing = params.as_ref().ok().and_then(|params| self.chosen_pacing(&request.method, params));
        let outcome = match params {
            Ok(params) => self.run_method(&request.method, &params, &mut service).await,
            Err(failure) => Err(failure),
        };
        let dispatch = begun.elapsed().saturating_sub(service);
        Dispatched {
            id: self.response_id(&request.id, &request.method),
            outcome: outcome.map(|result| self.finish_result(&request.method, result)),
            inner: ServiceTime { dispatch, service },
            wants_timing,
            pacing,
        }
    }

    /// The times that a call of `answer` chooses.
    fn chosen_pacing(&self, method: &str, params: &Params<'_>) -> Option<(Pacing, Option<Value>)> {
        let is_answer = method == "tools/call" && params.name.as_deref() == Some(Tool::Answer.name());
        if !is_answer || !self.tools.contains(&Tool::Answer) {
            return None;
        }
        let token = params.meta.as_ref().and_then(|meta| meta.get(key::PROGRESS_TOKEN)).cloned();
        Pacing::parse(params.arguments?.get()).ok().map(|pacing| (pacing, token))
    }

    async fn run_method(
        &self,
        method: &str,
        params: &Params<'_>,
        service: &mut Duration,
    ) -> Result<Value, RequestFailure> {
        let known = matches!(
            (method, self.is_modern),
            ("initialize" | "ping", false) | ("server/discover", true) | ("tools/list" | "tools/call", _)
        );
        let counted = if known { method } else { "other" };
        self.tally.change_counts(|counters| count_one(&mut counters.requests, counted));
        if !known {
            return Err(RequestFailure::new(code::METHOD_NOT_FOUND, "this method is not served here"));
        }
        match method {
            "initialize" => Ok(initialize_result(params.protocol_version.as_deref())),
            "server/discover" => Ok(discover_result()),
            "tools/list" => Ok(tool_list(self.tools, self.is_modern)),
            "tools/call" => self.call_tool(params, service).await,
            _ => Ok(json!({})),
        }
    }

    async fn call_tool(&self, params: &Params<'_>, service: &mut Duration) -> Result<Value, RequestFailure> {
        self.timer.sleep(self.faults.delay_for(FaultKind::Dispatch, "tools/call")).await;
        let tool = params.name.as_deref().and_then(Tool::from_name).filter(|tool| self.tools.contains(tool));
        let tool = tool.ok_or_else(|| {
            let all = self.tools.iter().map(|tool| tool.name()).collect::<Vec<_>>().join(", ");
            RequestFailure::new(code::INVALID_PARAMS, format!("unknown tool (tools: {all})"))
        })?;
        self.tally.change_counts(|counters| count_one(&mut counters.tools, tool.name()));
        let begun = Instant::now();
        self.timer.sleep(self.faults.delay_for(FaultKind::Tool, "tools/call")).await;
        let result = tool.run_tool(params.arguments, self.timer).await;
        *service = begun.elapsed();
        let is_error = result.is_err();
        let (Ok(text) | Err(text)) = result;
        Ok(json!({"content": [{"type": "text", "text": text}], "isError": is_error}))
    }

    /// Adds the members that every result of the revision has, and the padding of a fault.
    fn finish_result(&self, method: &str, mut result: Value) -> Value {
        if self.is_modern {
            result["resultType"] = json!("complete");
            result["_meta"][key::SERVER_INFO] = server_info();
        }
        if let Some(bytes) = self.faults.amount_for(FaultKind::OversizedReply, method) {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            result["_meta"]["dev.mcpace/padding"] = json!("x".repeat(bytes));
        }
        result
    }

    /// The id that the response carries: the request's own, unless the fault says otherwise.
    fn response_id(&self, id: &Id<'_>, method: &str) -> Id<'static> {
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
    pub(crate) fn failure(&self) -> Option<&RequestFailure> {
        self.outcome.as_ref().err()
    }

    /// The JSON-RPC response, with the layers' times in a result where they are told.
    pub(crate) fn into_response(self, told: Option<&Layers>) -> Vec<u8> {
        match self.outcome {
            Ok(mut result) => {
                if let Some(layers) = told {
                    result["_meta"][key::TIMING] = layers.meta_value();
                }
                let mut bytes = Vec::new();
                // Writing fails on maps whose keys are no strings; `Value` has none.
                let _ = write_result(&mut bytes, &self.id, &result);
                bytes
            }
            Err(failure) => failure.to_response(Some(&self.id)),
        }
    }
}

fn read_params(params: Option<&RawValue>) -> Result<Params<'_>, RequestFailure> {
    params.map_or(Ok(Params::default()), |params| {
        serde_json::from_str(params.get())
            .map_err(|error| RequestFailure::new(code::INVALID_PARAMS, format!("invalid params: {error}")))
    })
}

/// Legacy: the version that was asked for, or the latest that has `initialize`.
fn initialize_result(asked: Option<&str>) -> Value {
    let version = asked
        .and_then(|asked| asked.parse::<Revision>().ok())
        .filter(|revision| revision.is_legacy())
        .unwrap_or(Revision::LATEST_LEGACY);
    json!({
        "protocolVersion": version,
        "capabilities": server_capabilities(),
        "serverInfo": server_info(),
    })
}

fn discover_result() -> Value {
    let versions: Vec<Revision> = Revision::ALL.into_iter().filter(|revision| revision.is_modern()).collect();
    json!({
        "supportedVersions": versions,
        "capabilities": server_capabilities(),
        "ttlMs": LIST_TTL_MS,
        "cacheScope": "public",
    })
}

fn tool_list(tools: &[Tool], is_modern: bool) -> Value {
    let tools: Vec<Value> = tools.iter().map(|tool| tool.tool_definition()).collect();
    let mut list = json!({"tools": tools});
    if is_modern {
        list["ttlMs"] = json!(LIST_TTL_MS);
        list["cacheScope"] = json!("public");
    }
    list
}

fn server_capabilities() -> Value {
    json!({"tools": {"listChanged": false}})
}

fn server_info() -> Value {
    json!({"name": "mcpace-target", "version": env!("CARGO_PKG_VERSION")})
}

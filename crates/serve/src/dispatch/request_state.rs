//! `requestState`: state that one round of a request gives to the client for the next round (2026-07-28,
//! basic/patterns/mrtr).
//!
//! Constraint: the client may read the state. It can neither change it nor use it for another request, for another principal
//! or after its expiry: an HMAC-SHA256 covers the state, its expiry and the digest of method, parameters and principal. The
//! server keeps nothing, so any server with the same key accepts the state. Replay before the expiry is not prevented: a
//! handler that must do something only once has to remember that itself.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::{InputResponses, Json};
use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Call, Refusal};
use crate::principal::Principal;
use crate::server_state::ServerState;
use crate::service::{InputRequired, Inputs, OwnedRequest};

/// Content of `requestState`.
#[derive(Serialize, Deserialize)]
struct Sealed {
    /// Milliseconds since 1970.
    expires: u64,
    round: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    answers: BTreeMap<String, Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<Json>,
}

impl Call<'_> {
    /// Answers and state of the earlier rounds, verified.
    pub(super) fn read_inputs(&self) -> Result<Inputs, Refusal> {
        if self.revision.is_legacy() {
            return Ok(Inputs::default());
        }
        let mut inputs = match &self.outline.request_state {
            Some(state) => self.open_state(state)?,
            None => Inputs::default(),
        };
        if let Some(responses) = self.outline.input_responses {
            // New answers replace earlier ones: a question that was asked again has been answered again.
            inputs.answers.extend(serde_json::from_str::<InputResponses>(responses.get())?);
        }
        Ok(inputs)
    }

    fn open_state(&self, text: &str) -> Result<Inputs, Refusal> {
        let invalid = || Refusal::error(code::INVALID_PARAMS, "requestState: not one of ours for this request");
        if text.len() > self.server.limits.request_state {
            return Err(invalid());
        }
        let (payload, tag) = text.split_once('.').ok_or_else(invalid)?;
        let payload = URL_SAFE_NO_PAD.decode(payload).map_err(|_| invalid())?;
        let tag = URL_SAFE_NO_PAD.decode(tag).map_err(|_| invalid())?;
        let bound = request_binding(
            self.method.as_str(),
            self.request.params.map_or("{}", |params| params.get()),
            self.incoming.peer.principal.as_ref(),
        );
        let signed = [bound.as_bytes(), &payload].concat();
        hmac::verify(&self.server.key, &signed, &tag).map_err(|_| invalid())?;
        let sealed: Sealed = serde_json::from_slice(&payload).map_err(|_| invalid())?;
        if since_epoch(Duration::ZERO) >= sealed.expires {
            return Err(Refusal::error(code::INVALID_PARAMS, "requestState: expired"));
        }
        Ok(Inputs { answers: sealed.answers, state: sealed.state, round: sealed.round })
    }
}

/// The state to give out with `input`, for the request that asks it.
pub(super) fn seal_state(
    server: &ServerState,
    request: &OwnedRequest,
    input: &InputRequired,
) -> Result<String, Refusal> {
    let limits = &server.limits;
    if request.inputs.round >= limits.rounds {
        return Err(Refusal::error(code::INTERNAL_ERROR, "too many rounds"));
    }
    let sealed = Sealed {
        expires: since_epoch(limits.request_state_time),
        round: request.inputs.round + 1,
        answers: request.inputs.answers.clone(),
        // A handler that asks a second question by `?` sets no state; what it set before stays.
        state: input.state.clone().or_else(|| request.inputs.state.clone()),
    };
    let payload = serde_json::to_vec(&sealed).map_err(|_| Refusal::internal_error())?;
    let params = request.params.as_deref().unwrap_or(b"{}");
    let params = std::str::from_utf8(params).map_err(|_| Refusal::internal_error())?;
    let bound = request_binding(request.method.as_str(), params, request.principal.as_ref());
    let tag = hmac::sign(&server.key, &[bound.as_bytes(), &payload].concat());
    let text = format!("{}.{}", URL_SAFE_NO_PAD.encode(&payload), URL_SAFE_NO_PAD.encode(tag));
    if text.len() > limits.request_state {
        return Err(Refusal::error(code::INTERNAL_ERROR, "the state of this request has grown too long"));
    }
    Ok(text)
}

/// Method, parameters and principal as one text, ending where the payload begins. Members that differ
/// between rounds are left out, and the order of members is ignored: a client may serialize the parameters again.
fn request_binding(method: &str, params: &str, principal: Option<&Principal>) -> String {
    // Too deep for a tree, say: then by the letter, which no second round can match. Never by nothing.
    let mut params: Value = serde_json::from_str(params).unwrap_or_else(|_| params.into());
    if let Some(members) = params.as_object_mut() {
        for member in ["_meta", "inputResponses", "requestState"] {
            members.remove(member);
        }
    }
    sort_members(&mut params);
    let subject = principal.map(|principal| &*principal.subject);
    // An array of JSON values ends where its bracket closes: nothing of the payload can be taken for part of it.
    Value::Array(vec![method.into(), params, subject.into()]).to_string()
}

/// Members by name, whatever map serde_json was built with.
fn sort_members(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = std::mem::take(members).into_iter().collect();
            sorted.sort_by(|a, b| a.0.cmp(&b.0));
            sorted.iter_mut().for_each(|(_, value)| sort_members(value));
            members.extend(sorted);
        }
        Value::Array(values) => values.iter_mut().for_each(sort_members),
        _ => {}
    }
}

/// Wall clock, since another process or a later one must agree. In milliseconds.
fn since_epoch(later: Duration) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + later;
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

//! Requests in several rounds: the server asks for input, the callbacks give it, and the request is asked again (2026-07-28,
//! basic/patterns/mrtr).

use std::time::Duration;

use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::{InputRequests, InputRequiredResult, InputResponses, Json, Task};

use crate::callbacks::ClientQuestion;
use crate::client::{ClientInner, RequestOutcome, UnsentRequest};
use crate::{Callbacks, ClientError, Raw, RpcError};
use mcpace_client_protocol::ParamsWriter;

/// How long to wait before asking again where the server only gave a state: it doubles, up to the second.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(250));

/// Content of a further round.
#[derive(Clone, Default)]
pub(crate) struct Round {
    pub(crate) responses: Option<InputResponses>,
    pub(crate) state: Option<String>,
}

impl Round {
    pub(crate) fn write_params(&self, params: &mut ParamsWriter<'_>) {
        params.optional("inputResponses", self.responses.as_ref());
        params.optional("requestState", self.state.as_deref());
    }
}

/// How rounds ended: with a result, or with a task that goes on.
pub(crate) enum RoundsEnd {
    Complete(Raw),
    Task(Box<Task>),
}

impl ClientInner {
    /// Goes on with a request that the server answered with `first`, round by round.
    pub(crate) async fn answer_rounds(
        &self,
        first: RequestOutcome,
        ask: &UnsentRequest<'_>,
        fill: &(dyn Fn(&mut ParamsWriter<'_>) + Sync),
    ) -> Result<RoundsEnd, ClientError> {
        let limit = self.options.limits.rounds;
        let (mut outcome, mut pause) = (first, PAUSES.0);
        for _ in 0..=limit {
            let wanted = match outcome {
                RequestOutcome::Complete(raw, _) => return Ok(RoundsEnd::Complete(raw)),
                RequestOutcome::Task(task) => return Ok(RoundsEnd::Task(task)),
                RequestOutcome::InputRequired(wanted) => wanted,
            };
            let InputRequiredResult { input_requests, request_state, .. } = wanted;
            let responses = match input_requests.filter(|requests| !requests.is_empty()) {
                Some(requests) => {
                    pause = PAUSES.0;
                    Some(answer_all(&self.options.callbacks, ask.method, requests).await?)
                }
                None => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSES.1);
                    None
                }
            };
            let round = Round { responses, state: request_state };
            let fill = |params: &mut ParamsWriter<'_>| {
                fill(params);
                round.write_params(params);
            };
            outcome = self.send_request(&UnsentRequest { fill: &fill, ..*ask }).await?;
        }
        Err(ClientError::TooLarge { what: "the number of rounds that the server asks for", limit })
    }
}

/// Answers all requests for input, at the same time; the first refusal ends it.
pub(crate) async fn answer_all(
    callbacks: &Callbacks,
    method: &'static str,
    requests: InputRequests,
) -> Result<InputResponses, ClientError> {
    let mut answering = tokio::task::JoinSet::new();
    for (key, request) in requests {
        let asked = ClientQuestion { method: request.method.clone(), params: request.params, id: quoted_key(&key) };
        let answer = callbacks.answer_question(asked);
        answering.spawn(async move { (key, request.method, answer.await) });
    }
    let mut responses = InputResponses::new();
    while let Some(answered) = answering.join_next().await {
        // A callback that panicked has nothing to say; it is not ours to end with it, and no fault of the server's.
        let Ok((key, wants, answer)) = answered else {
            let error = RpcError::new(code::INTERNAL_ERROR, "the callback panicked");
            return Err(ClientError::InputRefused { method, wants: "a request for input".to_owned(), error });
        };
        let refused = |error| ClientError::InputRefused { method, wants: mcpace_wire::quote_printable(&wants), error };
        responses.insert(key, answer.map_err(refused)?);
    }
    Ok(responses)
}

fn quoted_key(key: &str) -> String {
    Json::of(&key).map_or_else(|_| "null".to_owned(), |json| json.get().to_owned())
}

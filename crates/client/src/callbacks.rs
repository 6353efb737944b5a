//! The caller's side of what a server asks and tells: questions are answered in futures of their own, news are told in order.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult, ElicitationCapability,
    Json, ListChanged, ListRootsResult, LogMessageParams, SamplingCapability,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::RpcError;

/// A question of the server: `sampling/createMessage`, `elicitation/create` or `roots/list`.
#[derive(Clone, Debug)]
pub struct ClientQuestion {
    /// The method.
    pub method: String,
    /// Its parameters.
    pub params: Option<Json>,
    /// The request's id, or in 2026-07-28 the key that the server gave it; as JSON.
    pub id: String,
}

/// Something that the server tells: a notification, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct ServerNotification<'a> {
    /// Such as `notifications/tools/list_changed`.
    pub method: &'a str,
    /// Its parameters.
    pub params: Option<&'a RawValue>,
}

type Answering = Pin<Box<dyn Future<Output = Result<Json, RpcError>> + Send>>;
type Answerer = Arc<dyn Fn(ClientQuestion) -> Answering + Send + Sync>;
type Ear = Arc<dyn Fn(ServerNotification<'_>) + Send + Sync>;

/// Functions of the caller that answer the server's questions and hear its notifications. Each answer is declared to the server as a
/// capability. Cheap to clone.
#[derive(Clone, Default)]
pub struct Callbacks {
    sampling: Option<(Answerer, SamplingCapability)>,
    elicitation: Option<(Answerer, ElicitationCapability)>,
    roots: Option<Answerer>,
    ears: Vec<Ear>,
}

impl Callbacks {
    /// Answers `sampling/createMessage`.
    #[must_use]
    pub fn sampling<F, A>(self, capability: SamplingCapability, answer: F) -> Self
    where
        F: Fn(CreateMessageParams) -> A + Send + Sync + 'static,
        A: Future<Output = Result<CreateMessageResult, RpcError>> + Send + 'static,
    {
        self.raw_sampling(capability, typed_callback(answer))
    }

    /// Answers `elicitation/create`. `ElicitationCapability::default()` declares forms.
    #[must_use]
    pub fn elicitation<F, A>(self, capability: ElicitationCapability, answer: F) -> Self
    where
        F: Fn(ElicitParams) -> A + Send + Sync + 'static,
        A: Future<Output = Result<ElicitResult, RpcError>> + Send + 'static,
    {
        self.raw_elicitation(capability, typed_callback(answer))
    }

    /// Answers `roots/list`.
    #[must_use]
    pub fn roots<F, A>(self, answer: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Result<ListRootsResult, RpcError>> + Send + 'static,
    {
        self.raw_roots(move |_| {
            let answering = answer();
            async move { to_json(&answering.await?) }
        })
    }

    /// As [`Callbacks::sampling`], with JSON both ways.
    #[must_use]
    pub fn raw_sampling<F, A>(mut self, capability: SamplingCapability, answer: F) -> Self
    where
        F: Fn(ClientQuestion) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Json, RpcError>> + Send + 'static,
    {
        self.sampling = Some((Arc::new(move |asked| Box::pin(answer(asked))), capability));
        self
    }

    /// As [`Callbacks::elicitation`], with JSON both ways.
    #[must_use]
    pub fn raw_elicitation<F, A>(mut self, capability: ElicitationCapability, answer: F) -> Self
    where
        F: Fn(ClientQuestion) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Json, RpcError>> + Send + 'static,
    {
        self.elicitation = Some((Arc::new(move |asked| Box::pin(answer(asked))), capability));
        self
    }

    /// As [`Callbacks::roots`], with JSON both ways.
    #[must_use]
    pub fn raw_roots<F, A>(mut self, answer: F) -> Self
    where
        F: Fn(ClientQuestion) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Json, RpcError>> + Send + 'static,
    {
        self.roots = Some(Arc::new(move |asked| Box::pin(answer(asked))));
        self
    }

    /// Hears log messages. One that can't be read is passed over.
    #[must_use]
    pub fn logging(self, hear: impl Fn(LogMessageParams) + Send + Sync + 'static) -> Self {
        self.hears(move |told| {
            let params = told.params.filter(|_| told.method == "notifications/message");
            if let Some(Ok(params)) = params.map(|params| serde_json::from_str(params.get())) {
                hear(params);
            }
        })
    }

    /// Hears everything that the server tells, in order, progress included. Must return at once.
    #[must_use]
    pub fn hears(mut self, hear: impl Fn(ServerNotification<'_>) + Send + Sync + 'static) -> Self {
        self.ears.push(Arc::new(hear));
        self
    }

    /// Whether the server has a reason to speak to us outside of our requests.
    pub(crate) fn has_any(&self) -> bool {
        self.sampling.is_some() || self.elicitation.is_some() || self.roots.is_some() || !self.ears.is_empty()
    }

    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities {
            roots: self.roots.is_some().then(|| ListChanged { list_changed: Some(true), ..ListChanged::default() }),
            sampling: self.sampling.as_ref().map(|(_, capability)| capability.clone()),
            elicitation: self.elicitation.as_ref().map(|(_, capability)| capability.clone()),
            ..ClientCapabilities::default()
        }
    }

    /// The answer to a question; what nobody answers is refused as an unknown method.
    pub(crate) fn answer_question(&self, asked: ClientQuestion) -> Answering {
        let answerer = match asked.method.as_str() {
            "sampling/createMessage" => self.sampling.as_ref().map(|(answerer, _)| answerer),
            "elicitation/create" => self.elicitation.as_ref().map(|(answerer, _)| answerer),
            "roots/list" => self.roots.as_ref(),
            _ => None,
        };
        match answerer {
            Some(answerer) => answerer(asked),
            None => {
                let method = mcpace_wire::quote_printable(&asked.method);
                let message = format!("this client has no answer to {method}");
                Box::pin(std::future::ready(Err(RpcError::new(code::METHOD_NOT_FOUND, message))))
            }
        }
    }

    pub(crate) fn forward_notification(&self, told: ServerNotification<'_>) {
        for ear in &self.ears {
            ear(told);
        }
    }
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callbacks").field("capabilities", &self.capabilities()).finish_non_exhaustive()
    }
}

/// JSON to the parameters' type and the result's type to JSON.
fn typed_callback<P, R, F, A>(answer: F) -> impl Fn(ClientQuestion) -> Answering + Send + Sync + 'static
where
    P: DeserializeOwned,
    R: Serialize,
    F: Fn(P) -> A + Send + Sync + 'static,
    A: Future<Output = Result<R, RpcError>> + Send + 'static,
{
    move |asked| {
        let params = asked.params.as_ref().map_or("{}", Json::get);
        match serde_json::from_str(params) {
            Ok(params) => {
                let answering = answer(params);
                Box::pin(async move { to_json(&answering.await?) })
            }
            Err(error) => {
                let error = RpcError::new(code::INVALID_PARAMS, error.to_string());
                Box::pin(std::future::ready(Err(error)))
            }
        }
    }
}

fn to_json(value: &impl Serialize) -> Result<Json, RpcError> {
    Json::of(value).map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string()))
}

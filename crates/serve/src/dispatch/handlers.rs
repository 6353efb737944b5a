//! `resources/read`, `prompts/get` and `completion/complete`: anything whose handler gives a value, not bytes.

use std::sync::Arc;
use std::time::Instant;

use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::{Id, code};
use mcpace_wire::mcp::{
    CacheScope, CompleteParams, Completion, CompletionRef, Extra, GetPromptResult, Json, ReadResourceResult,
};

use super::clocks::Clocks;
use super::failure::{self, Failing};
use super::guard_check::Used;
use super::in_flight::InFlight;
use super::lifecycle::write_members;
use super::reply::{ResultEnd, reply_head};
use super::result_limits::{in_time, too_long};
use super::{Call, Refusal, missing_member};
use crate::catalogue::{Catalogue, Listed as _};
use crate::exchange::{Handled, Reply};
use crate::guard::{Compiled, ComponentKind};
use crate::server_state::ServerState;
use crate::service::{
    Completed, CompletionRequest, Context, Handler, HandlerError, Panicked, ResourceRequest, catch_panic, caught_future,
};

impl Call<'_> {
    pub(super) fn read_resource(&self, catalogue: &Arc<Catalogue>) -> Result<Handled, Refusal> {
        let uri = self.outline.uri.as_deref().ok_or_else(|| missing_member("uri"))?;
        if let Some(entry) = catalogue.resources.get(uri) {
            let used = |guard| Used {
                kind: ComponentKind::Resource,
                name: entry.lookup_key(),
                uri: None,
                guard,
                counts: true,
            };
            if let Some(guard) = &entry.guard
                && let Some(answer) = self.authorize_use(catalogue, used(guard))?
            {
                return Ok(answer);
            }
            let request = ResourceRequest::new(uri.to_owned(), <_>::default(), entry.listed.mime_type.as_deref());
            return self.run_handler(&entry.handler, request, Some(uri), entry.guard.as_deref());
        }
        let (entry, variables) = catalogue.find_template(uri).ok_or_else(|| failure::not_found(self.revision, uri))?;
        let used = |guard| Used {
            kind: ComponentKind::Template,
            name: entry.lookup_key(),
            uri: Some(uri),
            guard,
            counts: true,
        };
        if let Some(guard) = &entry.guard
            && let Some(answer) = self.authorize_use(catalogue, used(guard))?
        {
            return Ok(answer);
        }
        let request = ResourceRequest::new(uri.to_owned(), variables, entry.listed.mime_type.as_deref());
        self.run_handler(&entry.handler, request, Some(uri), entry.guard.as_deref())
    }

    pub(super) fn get_prompt(&self, catalogue: &Arc<Catalogue>) -> Result<Handled, Refusal> {
        let name = self.outline.name.as_deref().ok_or_else(|| missing_member("name"))?;
        let Some(prompt) = catalogue.prompts.get(name) else {
            let name: String = name.chars().take(128).collect();
            return Err(Refusal::error(code::INVALID_PARAMS, format!("unknown prompt: {name}")));
        };
        if let Some(guard) = &prompt.guard {
            let used = Used { kind: ComponentKind::Prompt, name: prompt.lookup_key(), uri: None, guard, counts: true };
            if let Some(answer) = self.authorize_use(catalogue, used)? {
                return Ok(answer);
            }
        }
        self.run_handler(&prompt.handler, self.outline.arguments.map(Json::from), None, prompt.guard.as_deref())
    }

    pub(super) fn complete_argument(&self, catalogue: &Arc<Catalogue>) -> Result<Handled, Refusal> {
        let params: CompleteParams = self.read_params()?;
        let of = match &params.reference {
            CompletionRef::Prompt { name, .. } => Completed::Prompt(name.clone()),
            CompletionRef::Resource { uri, .. } => Completed::Template(uri.clone()),
        };
        // Proposals tell of what they are for. They don't count as a use.
        if let Some((kind, name, guard)) = catalogue.completion_target(&of)
            && let Some(answer) = self.authorize_use(catalogue, Used { kind, name, uri: None, guard, counts: false })?
        {
            return Ok(answer);
        }
        let completion = catalogue.find_completion(of, params.argument.name.clone());
        let request = CompletionRequest {
            value: params.argument.value,
            settled: params.context.and_then(|context| context.arguments).unwrap_or_default(),
            of: Some(params.reference),
            argument: params.argument.name,
        };
        match (completion, &catalogue.definitions.completer) {
            (Ok(Some(entry)), _) => self.run_handler(&entry.handler, request, None, None),
            (Ok(None), Some(completer)) => self.run_handler(completer, request, None, None),
            // An unknown name has no guard: a caller without permission for the true name could send a similar one.
            (Err(()), Some(completer)) if !catalogue.is_selective() => self.run_handler(completer, request, None, None),
            (Ok(None), None) => self.run_handler(&Handler::plain(|()| Ok(Vec::<String>::new())), (), None, None),
            (Err(()), _) => Err(Refusal::error(code::INVALID_PARAMS, "ref: no such prompt or resource template")),
        }
    }

    fn run_handler<I: Send + 'static, O: ResultMembers>(
        &self,
        handler: &Handler<I, O>,
        input: I,
        uri: Option<&str>,
        guard: Option<&Compiled>,
    ) -> Result<Handled, Refusal> {
        let mut finish = Finish {
            server: Arc::clone(self.server),
            revision: self.revision,
            clocks: self.clocks,
            uri: uri.map(str::to_owned),
            context: None,
            most: guard.and_then(|guard| guard.max_result_bytes),
            is_selective: guard.is_some_and(Compiled::is_selective),
        };
        // Checked even where the handler doesn't care: a state that was tampered with is refused by all.
        let inputs = self.read_inputs()?;
        match handler {
            Handler::Plain(handler) => {
                let started = self.clocks.map(|_| Instant::now());
                let outcome = catch_panic(|| handler(input));
                finish.record_service_time(started);
                finish.write_reply(self.id(), outcome).map(Handled::Now)
            }
            Handler::Async(handler) => {
                let in_flight = InFlight::begin_request(self)?;
                let context = self.make_context(&in_flight, inputs, false);
                finish.context = Some(context.clone());
                let work = in_time(guard, handler(input, context), |error, _| Err(error));
                let (id, revision, timed) = (self.id().clone().into_owned(), self.revision, self.clocks.is_some());
                Ok(Handled::Later(Box::pin(async move {
                    let started = timed.then(Instant::now);
                    let Some(outcome) = in_flight.run_cancellable(caught_future(work)).await else {
                        return Refusal::Cancelled.into_reply(&id, revision);
                    };
                    finish.record_service_time(started);
                    finish.write_reply(&id, outcome).unwrap_or_else(|refusal| refusal.into_reply(&id, revision))
                })))
            }
        }
    }
}

/// From what a handler left behind to a reply.
struct Finish {
    server: Arc<ServerState>,
    revision: Revision,
    clocks: Option<Clocks>,
    uri: Option<String>,
    context: Option<Context>,
    /// How long the result may be.
    most: Option<usize>,
    /// Whether there is anybody who may not have it.
    is_selective: bool,
}

impl Finish {
    fn record_service_time(&mut self, started: Option<Instant>) {
        if let (Some(clocks), Some(started)) = (&mut self.clocks, started) {
            clocks.service = started.elapsed();
        }
    }

    fn write_reply<O: ResultMembers>(
        self,
        id: &Id<'_>,
        outcome: Result<Result<O, HandlerError>, Panicked>,
    ) -> Result<Reply, Refusal> {
        let mut out = reply_head(id);
        let mut end = ResultEnd::new(&self.server, self.revision, self.clocks.as_ref());
        match outcome {
            Err(Panicked) => {
                ::tracing::error!("a handler panicked");
                Err(Refusal::internal_error())
            }
            Ok(Ok(answer)) => {
                let members = out.len();
                let scope = if self.is_selective { CacheScope::Private } else { self.server.tell.scope };
                let meta = answer.write_members(&self.server, scope, self.revision, &mut out)?;
                if let Some(words) = too_long(out.len() - members, self.most) {
                    return Err(Refusal::error(code::INTERNAL_ERROR, words));
                }
                end.meta = meta.as_ref();
                Ok(end.close_complete(out))
            }
            Ok(Err(error)) => match failure::classify_error(&self.server, self.revision, self.uri.as_deref(), error) {
                Failing::Refuse(refusal) => Err(refusal),
                Failing::Tell(result) => Err(failure::tool_failure(&result)),
                Failing::Ask(input) => {
                    failure::input_required_reply(self.context.as_ref().map(Context::request), &input, end, out)
                }
            },
        }
    }
}

/// A handler's value as the members of a result.
trait ResultMembers: Send + 'static {
    /// Appends them; gives the metadata, which the end of the result takes.
    fn write_members(
        self,
        server: &ServerState,
        scope: CacheScope,
        revision: Revision,
        out: &mut Vec<u8>,
    ) -> Result<Option<Extra>, Refusal>;
}

impl ResultMembers for ReadResourceResult {
    fn write_members(
        mut self,
        server: &ServerState,
        scope: CacheScope,
        revision: Revision,
        out: &mut Vec<u8>,
    ) -> Result<Option<Extra>, Refusal> {
        if revision.is_modern() {
            self.ttl_ms.get_or_insert(server.tell.ttl_ms);
            self.cache_scope.get_or_insert(scope);
        } else {
            (self.ttl_ms, self.cache_scope) = (None, None);
        }
        self.result_type = None;
        let meta = self.meta.take();
        write_members(&self, out)?;
        Ok(meta)
    }
}

impl ResultMembers for GetPromptResult {
    fn write_members(
        mut self,
        _: &ServerState,
        _: CacheScope,
        _: Revision,
        out: &mut Vec<u8>,
    ) -> Result<Option<Extra>, Refusal> {
        self.result_type = None;
        let meta = self.meta.take();
        write_members(&self, out)?;
        Ok(meta)
    }
}

impl ResultMembers for Completion {
    fn write_members(
        mut self,
        _: &ServerState,
        _: CacheScope,
        _: Revision,
        out: &mut Vec<u8>,
    ) -> Result<Option<Extra>, Refusal> {
        #[derive(serde::Serialize)]
        struct CompletionMembers {
            completion: Completion,
        }
        self.values.truncate(PROPOSALS);
        write_members(&CompletionMembers { completion: self }, out)?;
        Ok(None)
    }
}

/// Proposals: at most 100 of them are told (server/utilities/completion).
const PROPOSALS: usize = 100;

impl ResultMembers for Vec<String> {
    fn write_members(
        self,
        server: &ServerState,
        scope: CacheScope,
        revision: Revision,
        out: &mut Vec<u8>,
    ) -> Result<Option<Extra>, Refusal> {
        let total = self.len();
        let completion = Completion {
            values: self,
            total: Some(total as u64),
            has_more: Some(total > PROPOSALS),
            extra: Extra::new(),
        };
        completion.write_members(server, scope, revision, out)
    }
}

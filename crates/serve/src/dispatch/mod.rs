//! Messages to handlers, and what they say to replies: the protocol itself, in all revisions.
//!
//! Constraint: no I/O and no clock but the layers' own, and that only where asked. The order of checks is 2026-07-28's:
//! `_meta`, (headers, by the transport,) version, method, parameters.

mod call;
mod clocks;
mod cursor;
mod delegation;
mod failure;
mod guard_check;
mod handlers;
mod in_flight;
mod lifecycle;
mod lists;
mod local_authorization;
mod notifications;
mod raw_call;
mod reply;
mod request_state;
mod result_limits;
mod subscriptions;
mod tasks;
mod telemetry;
mod tracing;
mod visible_page;

use std::borrow::Cow;
use std::sync::Arc;

use mcpace_wire::Revision;
use mcpace_wire::http::{Rejection, check_meta};
use mcpace_wire::jsonrpc::{Id, Message, Request, code};
use mcpace_wire::mcp::{MetaOutline, Method, ParamsOutline, Sender};

use crate::catalogue::Catalogue;
use crate::exchange::{Handled, Incoming};
use crate::server_state::ServerState;
use clocks::Clocks;
pub(crate) use local_authorization::LocalCaller;
pub(crate) use reply::Refusal;

/// Takes one message.
pub(crate) fn handle_message(server: &Arc<ServerState>, incoming: Incoming<'_>) -> Handled {
    match incoming.message {
        Message::Request(request) => match Call::read_request(server, &incoming, request) {
            Ok(call) => {
                let answered =
                    || call.route_request().unwrap_or_else(|refusal| refusal.into_handled(&request.id, call.revision));
                match server.observer.get() {
                    None => tracing::trace_request(&call, answered),
                    Some(observer) => {
                        telemetry::observe_request(&call, &**observer, || tracing::trace_request(&call, answered))
                    }
                }
            }
            Err(refusal) => refusal.into_handled(&request.id, incoming.peer.revision),
        },
        Message::Notification(notification) => {
            notifications::handle_notification(incoming.peer, notification);
            Handled::Nothing
        }
        Message::Response(response) => {
            notifications::handle_response(incoming.peer, response);
            Handled::Nothing
        }
    }
}

/// A request that has passed the checks that all have in common.
pub(crate) struct Call<'a> {
    pub(crate) server: &'a Arc<ServerState>,
    pub(crate) incoming: &'a Incoming<'a>,
    pub(crate) request: &'a Request<'a>,
    pub(crate) outline: Cow<'a, ParamsOutline<'a>>,
    pub(crate) revision: Revision,
    pub(crate) method: Method,
    pub(crate) clocks: Option<Clocks>,
    /// Whether its guard has been asked already.
    has_passed: bool,
}

impl<'a> Call<'a> {
    fn read_request(
        server: &'a Arc<ServerState>,
        incoming: &'a Incoming<'a>,
        request: &'a Request<'a>,
    ) -> Result<Self, Refusal> {
        let revision = incoming.peer.revision;
        let outline = match incoming.outline {
            Some(outline) => Cow::Borrowed(outline),
            None => Cow::Owned(ParamsOutline::parse(request.params).map_err(|error| {
                // Where a modern request goes must be readable, as its `_meta` must be.
                match revision.is_modern().then(|| ParamsOutline::parse_routing(request.params)) {
                    Some(Err(error)) => Rejection::InvalidParams(error.to_string().into()).into(),
                    _ => Refusal::from(error),
                }
            })?),
        };
        if revision.is_modern() {
            check_meta(&outline, &server.tell.revisions)?;
        }
        let clocks = Clocks::start(incoming, outline.meta.as_ref(), server.observer.get().is_some());
        let method = Method::parse(&request.method).filter(|method| {
            method.exists_in(revision) && method.sender() != Sender::Server && !method.is_notification()
        });
        let method = method.ok_or(Refusal::UnknownMethod)?;
        Ok(Call { server, incoming, request, outline, revision, method, clocks, has_passed: false })
    }

    fn route_request(&self) -> Result<Handled, Refusal> {
        if let Some(delegate) = self.request_delegate() {
            return self.call_delegate(delegate);
        }
        self.route_in(&self.server.catalogue.load())
    }

    fn route_in(&self, catalogue: &Arc<Catalogue>) -> Result<Handled, Refusal> {
        let told = catalogue.capabilities(self.revision);
        // A method of a capability that the server did not declare is unknown.
        let declared = |yes: bool| if yes { Ok(()) } else { Err(Refusal::UnknownMethod) };
        match self.method {
            Method::ToolsCall => self.call_tool(catalogue),
            Method::Initialize => self.initialize_session(),
            Method::Discover => self.discover_server(),
            Method::Ping => Ok(self.empty_reply()),
            Method::ToolsList => {
                declared(told.tools.is_some())?;
                self.list_page(catalogue, &catalogue.tool_pages, |catalogue| &catalogue.definitions.tools)
            }
            Method::ResourcesList => {
                declared(told.resources.is_some())?;
                self.list_page(catalogue, &catalogue.resource_pages, |catalogue| &catalogue.definitions.resources)
            }
            Method::ResourceTemplatesList => {
                declared(told.resources.is_some())?;
                self.list_page(catalogue, &catalogue.template_pages, |catalogue| &catalogue.definitions.templates)
            }
            Method::ResourcesRead => self.read_resource(catalogue),
            Method::ResourcesSubscribe => self.subscribe_resource(catalogue),
            Method::ResourcesUnsubscribe => self.unsubscribe_resource(),
            Method::PromptsList => {
                declared(told.prompts.is_some())?;
                self.list_page(catalogue, &catalogue.prompt_pages, |catalogue| &catalogue.definitions.prompts)
            }
            Method::PromptsGet => self.get_prompt(catalogue),
            Method::Complete => {
                declared(told.completions.is_some())?;
                self.complete_argument(catalogue)
            }
            Method::SetLevel => self.set_level(),
            Method::SubscriptionsListen => self.open_subscription(catalogue),
            Method::TasksGet if self.revision.is_modern() => self.task_get(),
            Method::TasksUpdate => self.task_update(),
            Method::TasksCancel if self.revision.is_modern() => self.task_cancel(),
            // Core tasks of 2025-11-25 are not offered.
            _ => Err(Refusal::UnknownMethod),
        }
    }

    pub(crate) fn id(&self) -> &Id<'a> {
        &self.request.id
    }

    /// Metadata of the request.
    pub(crate) fn meta(&self) -> Option<&MetaOutline<'a>> {
        self.outline.meta.as_ref()
    }
}

impl From<serde_json::Error> for Refusal {
    fn from(error: serde_json::Error) -> Self {
        let text = error.to_string();
        // The position is in a text that the sender never wrote as such.
        let reason = text.split(" at line ").next().unwrap_or_default();
        Refusal::error(code::INVALID_PARAMS, format!("params: {reason}"))
    }
}

impl From<Rejection> for Refusal {
    fn from(rejection: Rejection) -> Self {
        Refusal::Rejected(rejection)
    }
}

fn missing_member(member: &'static str) -> Refusal {
    Refusal::error(code::INVALID_PARAMS, Cow::Owned(format!("params.{member} is required")))
}

//! `Server`: what is registered, before and while it is served.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcpace_serve::store::BroadcastChange;
use mcpace_serve::{Changes, Limits, NotifyError, Prompt, Resource, ResourceTemplate, Tool, http, stdio};
use mcpace_wire::mcp::{self, CacheScope, Extra, Icon};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::problem::{OrRaise, RegistrationProblem, UsageProblem};
use crate::runtime::shared_runtime;
use crate::seconds::parse_seconds;
use crate::server::auth::guards::Guard;
use crate::server::auth::rate_limiter::{Limiter, on_limiter_down as on_down};
use crate::server::call::delegate::PythonDelegate;
use crate::server::call::handler::{FunctionKind, Handler};
use crate::server::call::output::text_of;
use crate::server::call::submission::CallTarget;
use crate::server::call::tool::PythonTool;
use crate::server::call::value_handlers;
use crate::server::http::endpoint::Endpoint;
use crate::server::http::options::HttpOptions;
use crate::server::process_key::process_key;
use crate::server::server_handle::{self, Running};
use crate::server::telemetry::Observations;
use crate::server::threads::awaitable::{self, Given};
use crate::server::threads::function_host::FunctionHost;
use crate::server::threads::inline_policy::InlinePolicy;

/// A registry of Python functions, served by the runtime as often as wanted.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Server {
    inner: mcpace_serve::Server,
    shared: Arc<FunctionHost>,
    known: Mutex<HashSet<(Sort, String)>>,
}

/// Kind of a registered component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Sort {
    Tool,
    Resource,
    Template,
    Prompt,
}

impl Sort {
    fn name(self) -> &'static str {
        match self {
            Sort::Tool => "tool",
            Sort::Resource => "resource",
            Sort::Template => "resource template",
            Sort::Prompt => "prompt",
        }
    }
}

#[pymethods]
impl Server {
    #[new]
    #[pyo3(signature = (name, version, *, title=None, description=None, instructions=None, website_url=None, icons=None,
                        page_size=1000, ttl_ms=0, cache_scope="private", tell_failures=false, key=None, revisions=None,
                        extensions=None, keep_headers=true, threads=40, open=false, limiter=None,
                        on_limiter_down="refuse", max_tasks=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        name: String,
        version: String,
        title: Option<String>,
        description: Option<String>,
        instructions: Option<String>,
        website_url: Option<String>,
        icons: Option<&Bound<'_, PyAny>>,
        page_size: usize,
        ttl_ms: u64,
        cache_scope: &str,
        tell_failures: bool,
        key: Option<[u8; 32]>,
        revisions: Option<Vec<String>>,
        extensions: Option<&Bound<'_, PyAny>>,
        keep_headers: bool,
        threads: usize,
        open: bool,
        limiter: Option<&Limiter>,
        on_limiter_down: &str,
        max_tasks: Option<usize>,
    ) -> PyResult<Self> {
        let scope = match cache_scope {
            "private" => CacheScope::Private,
            "public" => CacheScope::Public,
            other => return Err(UsageProblem::new_err(format!("cache_scope takes private or public, not {other:?}"))),
        };
        let mut builder = mcpace_serve::Server::builder(name, version)
            .keep_headers(keep_headers)
            .open(open)
            .page_size(page_size)
            .cache(ttl_ms, scope)
            .tell_failures(tell_failures)
            .on_limiter_down(on_down(on_limiter_down)?);
        if let Some(tasks) = max_tasks {
            builder = builder.limits(Limits { tasks, ..Limits::default() });
        }
        if let Some(limiter) = limiter {
            builder = builder.limiter(limiter.inner());
        }
        if let Some(title) = title {
            builder = builder.title(title);
        }
        if let Some(description) = description {
            builder = builder.description(description);
        }
        if let Some(instructions) = instructions {
            builder = builder.instructions(instructions);
        }
        if let Some(url) = website_url {
            builder = builder.website(url);
        }
        if let Some(icons) = icons {
            builder = builder.icons(read_description::<Vec<Icon>>("icons", icons)?);
        }
        if let Some(key) = key.or_else(process_key) {
            builder = builder.key(key);
        }
        if let Some(revisions) = revisions {
            let parsed: Result<Vec<_>, _> = revisions.iter().map(|revision| revision.parse()).collect();
            let parsed = parsed.map_err(|_| UsageProblem::new_err(format!("no revisions are called {revisions:?}")))?;
            builder = builder.revisions(&parsed);
        }
        if let Some(extensions) = extensions {
            for (name, settings) in read_description::<Extra>("extensions", extensions)? {
                let settings = settings.as_object().cloned().unwrap_or_default();
                builder = builder.extension(name, settings);
            }
        }
        let inner = builder.build().or_raise()?;
        Ok(Self { inner, shared: Arc::new(FunctionHost::new(threads)), known: Mutex::default() })
    }

    /// Registers a tool; `listed` is its JSON as `tools/list` tells it. `task`: `optional`, `required`, `on-demand`, or
    /// `None` for a tool without tasks.
    #[pyo3(signature = (listed, handler, *, timeout_s=None, guard=None, task=None, task_ttl_s=None,
                        task_poll_interval_s=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn add_tool(
        &self,
        py: Python<'_>,
        listed: &Bound<'_, PyAny>,
        handler: &Handler,
        timeout_s: Option<f64>,
        guard: Option<&Guard>,
        task: Option<&str>,
        task_ttl_s: Option<f64>,
        task_poll_interval_s: Option<f64>,
    ) -> PyResult<()> {
        let listed: mcp::Tool = read_description("tool", listed)?;
        let name = listed.name.clone();
        let target = self.handler_target(py, handler, timeout_s)?;
        let tool = Tool::raw(listed, PythonTool { target });
        let tool = match task {
            None => tool,
            Some("optional") => tool.task(),
            Some("required") => tool.task_required(),
            Some("on-demand") => tool.task_on_demand(),
            Some(other) => {
                let message = format!("task takes optional, required or on-demand, not {other:?}");
                return Err(UsageProblem::new_err(message));
            }
        };
        let tool = match task_ttl_s {
            Some(ttl) => tool.task_ttl(parse_seconds("task_ttl_s", ttl)?),
            None => tool,
        };
        let tool = match task_poll_interval_s {
            Some(interval) => tool.task_poll_interval(parse_seconds("task_poll_interval_s", interval)?),
            None => tool,
        };
        let tool = match guard {
            Some(guard) => tool.guard(guard.resolve_guard(py, &self.shared)?),
            None => tool,
        };
        self.add_component(py, Sort::Tool, name, |changes| changes.tool(tool))
    }

    /// Takes a tool away; tells whether there was one.
    fn remove_tool(&self, py: Python<'_>, name: String) -> PyResult<bool> {
        self.remove_component(py, Sort::Tool, name, Changes::remove_tool)
    }

    /// Registers a resource; its handler gives a `ReadResourceResult` as JSON.
    #[pyo3(signature = (listed, handler, *, timeout_s=None, guard=None))]
    fn add_resource(
        &self,
        py: Python<'_>,
        listed: &Bound<'_, PyAny>,
        handler: &Handler,
        timeout_s: Option<f64>,
        guard: Option<&Guard>,
    ) -> PyResult<()> {
        let listed: mcp::Resource = read_description("resource", listed)?;
        let (uri, mime_type) = (listed.uri.clone(), listed.mime_type.clone());
        let target = self.handler_target(py, handler, timeout_s)?;
        let resource = Resource::listed(listed).handler_async(value_handlers::resource_handler(target, mime_type));
        let resource = match guard {
            Some(guard) => resource.guard(guard.resolve_guard(py, &self.shared)?),
            None => resource,
        };
        self.add_component(py, Sort::Resource, uri, |changes| changes.resource(resource))
    }

    /// Takes a resource away; tells whether there was one.
    fn remove_resource(&self, py: Python<'_>, uri: String) -> PyResult<bool> {
        self.remove_component(py, Sort::Resource, uri, Changes::remove_resource)
    }

    /// Registers a family of resources; its handler's arguments are the template's variables.
    #[pyo3(signature = (listed, handler, *, timeout_s=None, guard=None))]
    fn add_resource_template(
        &self,
        py: Python<'_>,
        listed: &Bound<'_, PyAny>,
        handler: &Handler,
        timeout_s: Option<f64>,
        guard: Option<&Guard>,
    ) -> PyResult<()> {
        let listed: mcp::ResourceTemplate = read_description("resource template", listed)?;
        let (template, mime_type) = (listed.uri_template.clone(), listed.mime_type.clone());
        let target = self.handler_target(py, handler, timeout_s)?;
        let family =
            ResourceTemplate::listed(listed).handler_async(value_handlers::resource_handler(target, mime_type));
        let family = match guard {
            Some(guard) => family.guard(guard.resolve_guard(py, &self.shared)?),
            None => family,
        };
        self.add_component(py, Sort::Template, template, |changes| changes.resource_template(family))
    }

    /// Takes a family of resources away; tells whether there was one.
    fn remove_resource_template(&self, py: Python<'_>, template: String) -> PyResult<bool> {
        self.remove_component(py, Sort::Template, template, Changes::remove_resource_template)
    }

    /// Registers a prompt; its handler gives a `GetPromptResult` as JSON.
    #[pyo3(signature = (listed, handler, *, timeout_s=None, guard=None))]
    fn add_prompt(
        &self,
        py: Python<'_>,
        listed: &Bound<'_, PyAny>,
        handler: &Handler,
        timeout_s: Option<f64>,
        guard: Option<&Guard>,
    ) -> PyResult<()> {
        let listed: mcp::Prompt = read_description("prompt", listed)?;
        let name = listed.name.clone();
        let target = self.handler_target(py, handler, timeout_s)?;
        let prompt = Prompt::raw(listed, value_handlers::prompt_handler(target));
        let prompt = match guard {
            Some(guard) => prompt.guard(guard.resolve_guard(py, &self.shared)?),
            None => prompt,
        };
        self.add_component(py, Sort::Prompt, name, |changes| changes.prompt(prompt))
    }

    /// Takes a prompt away; tells whether there was one.
    fn remove_prompt(&self, py: Python<'_>, name: String) -> PyResult<bool> {
        self.remove_component(py, Sort::Prompt, name, Changes::remove_prompt)
    }

    /// Has one function propose for all arguments of prompts and resource templates. Its arguments: `ref`, `argument`
    /// (`name`, `value`), `context` (`arguments`). It gives a `Completion` as JSON.
    fn set_completer(&self, py: Python<'_>, handler: &Handler) -> PyResult<()> {
        let target = self.handler_target(py, handler, None)?;
        py.detach(|| self.inner.update(|changes| changes.completer(value_handlers::completion_handler(target))))
            .or_raise()
    }

    /// Tells all clients that want to know that a list has changed: `everywhere`, of all processes that share a store.
    #[pyo3(signature = (list, *, everywhere=true))]
    fn list_changed(&self, py: Python<'_>, list: &str, everywhere: bool) -> PyResult<()> {
        let changed = match list {
            "tools" => BroadcastChange::Tools,
            "prompts" => BroadcastChange::Prompts,
            "resources" => BroadcastChange::Resources,
            other => return Err(UsageProblem::new_err(format!("there is no list of {other:?}"))),
        };
        py.detach(|| self.tell_changes(changed, everywhere));
        Ok(())
    }

    /// Tells all clients that watch a resource that it has changed.
    #[pyo3(signature = (uri, *, everywhere=true))]
    fn resource_updated(&self, py: Python<'_>, uri: String, everywhere: bool) {
        py.detach(|| self.tell_changes(BroadcastChange::Resource(uri), everywhere));
    }

    /// Tells the client of one session something, `params` being JSON; an awaitable.
    #[pyo3(signature = (session_id, method, params=None))]
    fn notify<'py>(
        &self,
        py: Python<'py>,
        session_id: String,
        method: String,
        params: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (server, params) = (self.inner.clone(), params_of(params)?);
        awaitable::spawn_awaitable(py, shared_runtime()?.handle(), async move {
            notify_outcome(server.notify(&session_id, &method, params.as_deref()).await)
        })
    }

    /// Tells the clients of all sessions that read a stream something; an awaitable.
    #[pyo3(signature = (method, params=None))]
    fn notify_all<'py>(&self, py: Python<'py>, method: String, params: Option<String>) -> PyResult<Bound<'py, PyAny>> {
        let (server, params) = (self.inner.clone(), params_of(params)?);
        awaitable::spawn_awaitable(py, shared_runtime()?.handle(), async move {
            notify_outcome(server.notify_all(&method, params.as_deref()).await)
        })
    }

    /// Puts a server with handlers of its own behind the registry; see `delegate`.
    fn delegate(&self, submit: Py<PyAny>, methods: Vec<String>) -> PyResult<()> {
        if !self.inner.delegate(PythonDelegate::new(submit, &methods)?) {
            return Err(RegistrationProblem::new_err("there is a delegate already"));
        }
        Ok(())
    }

    /// Has requests told; whether nobody is told already.
    fn observe(&self, observations: &Observations) -> bool {
        self.inner.observe(observations.observer())
    }

    /// The event loop that asynchronous functions run on, on a thread of its own; started where it wasn't.
    fn event_loop(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.shared.start_loop(py)?.event_loop().clone_ref(py))
    }

    /// Serves over HTTP; returns at once.
    fn serve_http(&self, py: Python<'_>, options: &HttpOptions) -> PyResult<Running> {
        self.shared.capture_context(py)?;
        let options = options.resolve_options(py, &self.shared)?;
        let server = self.inner.clone();
        let running = py.detach(|| http::serve(server, options)).or_raise()?;
        Running::new(py, running)
    }

    /// The HTTP endpoint without a socket.
    fn endpoint(&self, py: Python<'_>, options: &HttpOptions) -> PyResult<Endpoint> {
        self.shared.capture_context(py)?;
        let options = options.resolve_options(py, &self.shared)?;
        let inner = http::Endpoint::new(self.inner.clone(), options).or_raise()?;
        Ok(Endpoint::new(inner, shared_runtime()?.handle().clone()))
    }

    /// Serves stdin and stdout until the client leaves.
    #[pyo3(signature = (*, server_timing=false))]
    fn serve_stdio(&self, py: Python<'_>, server_timing: bool) -> PyResult<()> {
        self.shared.capture_context(py)?;
        let options = stdio::Options { timed: server_timing, ..stdio::Options::default() };
        server_handle::serve_stdio(py, self.inner.clone(), options)
    }
}

impl Server {
    /// The server itself, for whoever reaches it within the process.
    pub(crate) fn begin(&self, py: Python<'_>) -> PyResult<mcpace_serve::Server> {
        self.shared.capture_context(py)?;
        Ok(self.inner.clone())
    }

    fn tell_changes(&self, told: BroadcastChange, everywhere: bool) {
        match told {
            told if !everywhere => self.inner.hear(told),
            BroadcastChange::Tools => self.inner.tools_changed(),
            BroadcastChange::Prompts => self.inner.prompts_changed(),
            BroadcastChange::Resources => self.inner.resources_changed(),
            BroadcastChange::Resource(uri) => self.inner.resource_updated(&uri),
            told @ BroadcastChange::Message(_) => self.inner.hear(told),
        }
    }

    fn lock_known(&self) -> MutexGuard<'_, HashSet<(Sort, String)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handler_target(&self, py: Python<'_>, handler: &Handler, timeout_s: Option<f64>) -> PyResult<CallTarget> {
        let limit = timeout_s.map(|timeout_s| parse_seconds("timeout_s", timeout_s)).transpose()?;
        if handler.inner.kind == FunctionKind::Async {
            self.shared.want_loop(py)?;
        }
        let inline_policy = (handler.inner.kind == FunctionKind::Sync).then(|| Arc::new(InlinePolicy::default()));
        Ok(CallTarget { callable: Arc::clone(&handler.inner), shared: Arc::clone(&self.shared), inline_policy, limit })
    }

    fn add_component(
        &self,
        py: Python<'_>,
        sort: Sort,
        name: String,
        change: impl FnOnce(&mut Changes) + Send,
    ) -> PyResult<()> {
        // Clients are told, which can take a lock that another thread of Python's holds.
        py.detach(|| {
            if !self.lock_known().insert((sort, name.clone())) {
                return Err(RegistrationProblem::new_err(format!("{} {name:?} is there twice", sort.name())));
            }
            self.inner.update(change).map_err(|error| {
                self.lock_known().remove(&(sort, name));
                RegistrationProblem::new_err(error.to_string())
            })
        })
    }

    fn remove_component(
        &self,
        py: Python<'_>,
        sort: Sort,
        name: String,
        change: impl FnOnce(&mut Changes, &str) + Send,
    ) -> PyResult<bool> {
        py.detach(|| {
            let removed = self.lock_known().remove(&(sort, name.clone()));
            self.inner.update(|changes| change(changes, &name)).or_raise()?;
            Ok(removed)
        })
    }
}

fn params_of(params: Option<String>) -> PyResult<Option<Box<RawValue>>> {
    let read = |text| RawValue::from_string(text).map_err(|error| PyValueError::new_err(format!("params: {error}")));
    params.map(read).transpose()
}

/// How telling went, for whoever awaits it.
fn notify_outcome(outcome: Result<(), NotifyError>) -> Given {
    Box::new(move |py: Python<'_>| outcome.or_raise().map(|()| py.None()))
}

/// Reads the JSON of a description.
fn read_description<T: DeserializeOwned>(kind: &str, listed: &Bound<'_, PyAny>) -> PyResult<T> {
    serde_json::from_str(text_of(listed)?)
        .map_err(|error| RegistrationProblem::new_err(format!("the description of the {kind} can't be read: {error}")))
}

//! `Caller`: a connected client. Every request is a [`Pending`].

use std::sync::Arc;

use mcpace_client::{Arguments, CacheMode, CallOptions, Change, Client, List, Program, Socket, Subscription, Target};
use mcpace_serve::{Principal, TransportKind, stdio};
use mcpace_wire::mcp::{Extra, Method, SubscriptionFilter};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tokio::sync::{Mutex, Semaphore};

use super::bridge::Bridge;
use super::pending::{Given, Pending, ProgressInbox};
use super::server_requests::ServerCallbacks;
use super::settings::ClientSettings;
use crate::event_loop::running_loop;
use crate::problem::{OrRaise as _, UsageProblem};
use crate::seconds::parse_seconds;
use crate::server::{Server, on_behalf};

/// The runtime's client, for Python.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Caller {
    client: Client,
}

/// Options of one request: `time_s`, `progress`, `meta` (a JSON object), `cache`.
struct Extras;

impl Extras {
    fn read_extras(extras: Option<&Bound<'_, PyDict>>) -> PyResult<(CallOptions, Option<Arc<ProgressInbox>>)> {
        let Some(extras) = extras else { return Ok((CallOptions::default(), None)) };
        let time_s: Option<f64> = dict_member(extras, "time_s")?;
        let meta: Option<Vec<u8>> = dict_member(extras, "meta")?;
        let cache: Option<String> = dict_member(extras, "cache")?;
        let progress = extras.get_item("progress")?.map(Bound::unbind);
        let inbox = progress.map(|hear| Arc::new(ProgressInbox::new(hear)));
        let put = inbox.clone();
        let meta = meta.map(|meta| serde_json::from_slice::<Extra>(&meta)).transpose();
        let options = CallOptions {
            time: time_s.map(|limit| parse_seconds("a time limit", limit)).transpose()?,
            progress: put.map(|put| Arc::new(move |progress| put.put_progress(progress)) as _),
            meta: meta.map_err(|error| UsageProblem::new_err(format!("meta: {error}")))?,
            cache: match cache.as_deref() {
                None | Some("use") => CacheMode::Use,
                Some("refresh") => CacheMode::Refresh,
                Some("bypass") => CacheMode::Bypass,
                Some(other) => return Err(UsageProblem::new_err(format!("there is no cache mode {other:?}"))),
            },
        };
        Ok((options, inbox))
    }
}

fn dict_member<T: for<'a, 'py> FromPyObject<'a, 'py, Error: Into<PyErr>>>(
    extras: &Bound<'_, PyDict>,
    name: &str,
) -> PyResult<Option<T>> {
    extras.get_item(name)?.map(|value| value.extract().map_err(Into::into)).transpose()
}

fn parse_arguments(text: Option<String>) -> PyResult<Arguments> {
    match text {
        Some(text) => Arguments::from_text(text).or_raise(),
        None => Arguments::of(&()).or_raise(),
    }
}

#[pymethods]
impl Caller {
    /// Connects to a URL, a command (a list) or a server of this process. `asks` takes each question of the server's,
    /// `hears` each notification, `opens` shows a page; with `in_loop` all on the running loop's thread.
    #[staticmethod]
    #[pyo3(signature = (target, settings, asks, *, hears=None, opens=None, in_loop=true, environment=None, folder=None,
                        principal=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn connect(
        py: Python<'_>,
        target: &Bound<'_, PyAny>,
        settings: &[u8],
        asks: Py<PyAny>,
        hears: Option<Py<PyAny>>,
        opens: Option<Py<PyAny>>,
        in_loop: bool,
        environment: Option<Vec<(String, String)>>,
        folder: Option<String>,
        principal: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Pending> {
        let settings = ClientSettings::parse_settings(settings)?;
        let mut options = settings.client_options(opens)?;
        let bridge = if in_loop { Some(Bridge::of_loop(&running_loop(py)?)?) } else { None };
        let ears = ServerCallbacks { asks: Arc::new(asks), hears: hears.map(Arc::new), bridge, news: Arc::default() };
        options.callbacks = ears.into_callbacks(settings.answered);
        let target = parse_target(py, target, environment, folder, principal)?;
        let work = async move {
            let client = Client::connect(target, options).await.or_raise()?;
            Ok(Given::Object(Box::new(|py| Ok(Bound::new(py, Caller { client })?.into_any().unbind()))))
        };
        Ok(Pending::new(work, None))
    }

    /// Revision, transport, and the whole result of `initialize` or `server/discover`.
    fn server(&self, py: Python<'_>) -> PyResult<(&'static str, &'static str, Py<PyAny>)> {
        let server = self.client.server().or_raise()?;
        let raw = pyo3::types::PyBytes::new(py, server.raw.as_bytes()).into_any().unbind();
        Ok((server.revision.as_str(), server.transport.as_str(), raw))
    }

    /// `arguments` is a JSON object's text; `extras` has `time_s`, `progress`, `meta` and `cache`, or is nothing.
    #[pyo3(signature = (name, arguments=None, extras=None))]
    fn call_tool(
        &self,
        name: String,
        arguments: Option<String>,
        extras: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Pending> {
        let arguments = self::parse_arguments(arguments)?;
        let (options, inbox) = Extras::read_extras(extras)?;
        let client = self.client.clone();
        let work = async move { client.call_tool_raw(&name, &arguments, &options).await.map(Given::Raw).or_raise() };
        Ok(Pending::new(work, inbox))
    }

    /// With answers (a JSON object) and state that an earlier call was given.
    #[pyo3(signature = (name, arguments=None, responses=None, state=None, extras=None))]
    fn resume_tool(
        &self,
        name: String,
        arguments: Option<String>,
        responses: Option<&[u8]>,
        state: Option<String>,
        extras: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Pending> {
        let arguments = self::parse_arguments(arguments)?;
        let (options, inbox) = Extras::read_extras(extras)?;
        let responses = responses.map(serde_json::from_slice).transpose();
        let responses = responses.map_err(|error| UsageProblem::new_err(format!("input_responses: {error}")))?;
        let client = self.client.clone();
        let work = async move {
            let resumed = client.resume_tool_raw(&name, &arguments, responses, state, &options).await;
            resumed.map(Given::Raw).or_raise()
        };
        Ok(Pending::new(work, inbox))
    }

    /// A page of `tools`, `resources`, `resource_templates` or `prompts`.
    #[pyo3(signature = (kind, cursor=None, extras=None))]
    fn list(&self, kind: &str, cursor: Option<String>, extras: Option<&Bound<'_, PyDict>>) -> PyResult<Pending> {
        let list = match kind {
            "tools" => List::Tools,
            "resources" => List::Resources,
            "resource_templates" => List::ResourceTemplates,
            "prompts" => List::Prompts,
            other => return Err(UsageProblem::new_err(format!("there is no list of {other}"))),
        };
        let (options, inbox) = Extras::read_extras(extras)?;
        let client = self.client.clone();
        let work = async move { client.list_raw(list, cursor.as_deref(), &options).await.map(Given::Raw).or_raise() };
        Ok(Pending::new(work, inbox))
    }

    #[pyo3(signature = (uri, extras=None))]
    fn read_resource(&self, uri: String, extras: Option<&Bound<'_, PyDict>>) -> PyResult<Pending> {
        let (options, inbox) = Extras::read_extras(extras)?;
        let client = self.client.clone();
        let work = async move { client.read_resource_raw(&uri, &options).await.map(Given::Raw).or_raise() };
        Ok(Pending::new(work, inbox))
    }

    #[pyo3(signature = (name, arguments=None, extras=None))]
    fn get_prompt(
        &self,
        name: String,
        arguments: Option<String>,
        extras: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Pending> {
        let arguments = self::parse_arguments(arguments)?;
        let (options, inbox) = Extras::read_extras(extras)?;
        let client = self.client.clone();
        let work = async move { client.get_prompt_raw(&name, &arguments, &options).await.map(Given::Raw).or_raise() };
        Ok(Pending::new(work, inbox))
    }

    /// Any other request of the protocol, such as `completion/complete`.
    #[pyo3(signature = (method, params=None, extras=None))]
    fn request(&self, method: &str, params: Option<String>, extras: Option<&Bound<'_, PyDict>>) -> PyResult<Pending> {
        let method = known_method(method)?;
        let params = parse_arguments(params)?;
        let (options, inbox) = Extras::read_extras(extras)?;
        let client = self.client.clone();
        let work = async move { client.request_raw(method, &params, &options).await.map(Given::Raw).or_raise() };
        Ok(Pending::new(work, inbox))
    }

    fn notify(&self, method: &str, params: String) -> PyResult<Pending> {
        let method = known_method(method)?;
        let client = self.client.clone();
        let work = async move { client.notify(method, &params).await.map(|()| Given::Nothing).or_raise() };
        Ok(Pending::new(work, None))
    }

    /// Listens for changes; gives a [`Listening`]. `filter` is the JSON of what is wanted.
    fn listen(&self, filter: &[u8]) -> PyResult<Pending> {
        let wanted: SubscriptionFilter =
            serde_json::from_slice(filter).map_err(|error| UsageProblem::new_err(format!("filter: {error}")))?;
        let client = self.client.clone();
        let work = async move {
            let subscription = client.listen(&wanted).await.or_raise()?;
            Ok(Given::Object(Box::new(|py| Ok(Bound::new(py, Listening::new(subscription))?.into_any().unbind()))))
        };
        Ok(Pending::new(work, None))
    }

    fn close(&self) -> Pending {
        let client = self.client.clone();
        Pending::new(
            async move {
                client.close().await;
                Ok(Given::Nothing)
            },
            None,
        )
    }
}

/// A subscription.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Listening {
    subscription: Arc<Mutex<Option<Subscription>>>,
    /// Closed with it, so that whoever waits for a change doesn't hold up its end. Nobody ever gets in.
    open: Arc<Semaphore>,
    #[pyo3(get)]
    id: i64,
    /// Subscriptions that the server accepted, as JSON.
    #[pyo3(get)]
    agreed: String,
}

impl Listening {
    fn new(subscription: Subscription) -> Self {
        let agreed = serde_json::to_string(subscription.agreed()).unwrap_or_default();
        let (id, subscription) = (subscription.id(), Arc::new(Mutex::new(Some(subscription))));
        Self { subscription, open: Arc::new(Semaphore::new(0)), id, agreed }
    }
}

#[pymethods]
impl Listening {
    /// The next change: `tools`, `prompts`, `resources` or a resource's URI after `resource `; nothing at the end.
    fn next(&self) -> Pending {
        let (subscription, open) = (Arc::clone(&self.subscription), Arc::clone(&self.open));
        let work = async move {
            let mut subscription = subscription.lock().await;
            let Some(subscription) = subscription.as_mut() else { return Ok(Given::Nothing) };
            let change = tokio::select! {
                biased;
                _ = open.acquire() => return Ok(Given::Nothing),
                change = subscription.next() => change.or_raise()?,
            };
            Ok(match change {
                None => Given::Nothing,
                Some(Change::Tools) => Given::Text("tools".to_owned()),
                Some(Change::Prompts) => Given::Text("prompts".to_owned()),
                Some(Change::Resources) => Given::Text("resources".to_owned()),
                Some(Change::Resource(uri)) => Given::Text(format!("resource {uri}")),
                Some(other) => Given::Text(format!("other {other:?}")),
            })
        };
        Pending::new(work, None)
    }

    /// Ends it, also for whoever waits for the next change.
    fn close(&self) -> Pending {
        self.open.close();
        let subscription = Arc::clone(&self.subscription);
        let work = async move {
            subscription.lock().await.take();
            Ok(Given::Nothing)
        };
        Pending::new(work, None)
    }
}

fn known_method(method: &str) -> PyResult<&'static str> {
    let known = Method::parse(method).map(Method::as_str);
    known.ok_or_else(|| UsageProblem::new_err(format!("MCP has no method {method:?}")))
}

fn parse_target(
    py: Python<'_>,
    target: &Bound<'_, PyAny>,
    environment: Option<Vec<(String, String)>>,
    folder: Option<String>,
    principal: Option<&Bound<'_, PyAny>>,
) -> PyResult<Target> {
    if let Ok(server) = target.cast::<Server>() {
        let principal = principal.map_or(Ok(None), on_behalf)?;
        return in_process(server.get().begin(py)?, principal);
    }
    if principal.is_some() {
        return Err(UsageProblem::new_err("principal is of a server of this process: any other finds out who calls"));
    }
    if let Ok(url) = target.extract::<String>() {
        return Target::url(&url).or_raise();
    }
    let command: Vec<String> = target.extract()?;
    let (program, args) = command.split_first().ok_or_else(|| UsageProblem::new_err("there is no command to run"))?;
    let mut program = Program::new(program, args);
    if let Some(environment) = environment {
        program.environment = environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        program.only_environment = true;
    }
    program.folder = folder.map(Into::into);
    Ok(Target::program(program))
}

/// A server of this process, spoken to in lines over memory.
fn in_process(server: mcpace_serve::Server, principal: Option<Principal>) -> PyResult<Target> {
    /// Bytes that one side may be ahead of the other.
    const AHEAD: usize = 256 * 1024;
    Ok(Target::pipe(move || {
        let (ours, theirs) = tokio::io::duplex(AHEAD);
        let server = server.clone();
        let principal = principal.clone();
        let options = stdio::Options { principal, transport: TransportKind::Memory, ..stdio::Options::default() };
        async move {
            let (input, output) = tokio::io::split(theirs);
            // How it ends is seen at our end.
            drop(tokio::spawn(async move {
                drop(stdio::serve_streams(server, options, input, output).await);
            }));
            Ok(Box::new(ours) as Box<dyn Socket>)
        }
    }))
}

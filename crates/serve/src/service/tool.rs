//! A tool: what a list tells of it, and the erased closure that runs it.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpace_wire::Revision;
use mcpace_wire::mcp::{self, Extra, Json, ToolAnnotations};
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::arguments::{self, Malformed};
use super::described::described;
use super::{Context, HandlerError, Panicked, RawHandler, ToolOutput, ToolWriter, catch_panic, caught_future};
use crate::guard::{BoxFuture, Guard};
use crate::tasks::Terms;

/// A tool to register with [`crate::Builder::tool`].
///
/// ```
/// use mcpace_serve::{Context, Server, Structured, Tool, ToolError};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Sum {
///     /// What to add up.
///     numbers: Vec<f64>,
/// }
///
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Total {
///     total: f64,
/// }
///
/// let server = Server::builder("calculator", "1.0")
///     .tool(
///         Tool::new("sum")
///             .description("Adds numbers up")
///             .handler(|sum: Sum| Ok::<_, ToolError>(Structured(Total { total: sum.numbers.iter().sum() }))),
///     )
///     .tool(Tool::new("wait").handler_async(|_: mcpace_serve::NoArguments, context: Context| async move {
///         context.progress(1.0, Some(2.0), Some("half way"));
///         Ok::<_, ToolError>("waited")
///     }))
///     .build()?;
/// # Ok::<(), mcpace_serve::BuildError>(())
/// ```
pub struct Tool {
    pub(crate) listed: mcp::Tool,
    pub(crate) input: Option<Schema>,
    pub(crate) output: Option<Schema>,
    pub(crate) handler: Option<ToolHandler>,
    pub(crate) task: TaskUse,
    pub(crate) terms: Terms,
    pub(crate) guard: Option<Guard>,
}

described!(Tool, hints: ToolAnnotations);

impl Tool {
    /// A tool of this name (2025-11-25, server/tools, "Tool Names": 1 to 128 of `A–Z a–z 0–9 _ - .`; `/` is let through too).
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Tool {
            listed: mcp::Tool {
                name: name.into(),
                title: None,
                description: None,
                input_schema: Json::from(RawValue::NULL),
                output_schema: None,
                annotations: None,
                execution: None,
                icons: None,
                meta: None,
                extra: Extra::new(),
            },
            input: None,
            output: None,
            handler: None,
            task: TaskUse::Never,
            terms: Terms::default(),
            guard: None,
        }
    }

    /// Takes this schema for the arguments instead of the one of the handler's type: any JSON Schema 2020-12 of an object,
    /// `x-mcp-header` annotations included. The handler has to check demands
    /// of the schema that go beyond its type.
    #[must_use]
    pub fn input_schema(mut self, schema: impl Into<Schema>) -> Self {
        self.input = Some(schema.into());
        self
    }

    /// Takes this schema for the structured content instead of the one of the handler's return type.
    #[must_use]
    pub fn output_schema(mut self, schema: impl Into<Schema>) -> Self {
        self.output = Some(schema.into());
        self
    }

    /// Runs the tool as a task where the client declares the extension `io.modelcontextprotocol/tasks` (2026-07-28): the
    /// call is answered at once, the result is fetched later. Has no effect on plain handlers, nor for other clients. A raw
    /// handler that answers at once is not made a task either.
    #[must_use]
    pub fn task(mut self) -> Self {
        self.task = TaskUse::AtOnce;
        self
    }

    /// As [`Tool::task`], but a client that has not declared the extension is refused (−32021).
    #[must_use]
    pub fn task_required(mut self) -> Self {
        self.task = TaskUse::Required;
        self
    }

    /// Lets an asynchronous handler become a task when it wants to, by [`Context::begin_task`]: after it asked its
    /// questions, or once it knows that it takes long.
    #[must_use]
    pub fn task_on_demand(mut self) -> Self {
        self.task = TaskUse::OnDemand;
        self
    }

    /// How long a task of this tool is kept, from its creation on, instead of [`crate::Limits::task_time`]. Work that takes
    /// longer is cancelled.
    #[must_use]
    pub fn task_ttl(mut self, ttl: Duration) -> Self {
        self.terms.ttl = Some(ttl);
        self
    }

    /// How long clients are asked to wait between two looks at a task of this tool, instead of a second.
    #[must_use]
    pub fn task_poll_interval(mut self, interval: Duration) -> Self {
        self.terms.poll_interval = Some(interval);
        self
    }

    /// Runs `handler` for each call, on the thread that read the request: the quickest way, for what takes microseconds.
    #[must_use]
    pub fn handler<A, R, F>(self, handler: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + 'static,
        R: ToolOutput,
        F: Fn(A) -> Result<R, HandlerError> + Send + Sync + 'static,
    {
        let plain = move |raw: Option<&RawValue>, call: &mut Plain<'_>| -> Result<(), CallFailure> {
            let arguments = arguments::read_arguments::<A>(raw)?;
            let started = call.timed.then(Instant::now);
            let returned = catch_panic(|| handler(arguments));
            if let Some(started) = started {
                call.service = started.elapsed();
            }
            returned??.write(&mut call.writer).map_err(CallFailure::Unwritable)
        };
        self.typed::<A, R>(ToolHandler::Plain(Box::new(plain)))
    }

    /// Runs `handler` for each call as a future on the thread that read the request, with a [`Context`].
    #[must_use]
    pub fn handler_async<A, R, F, Fut>(self, handler: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: ToolOutput,
        F: Fn(A, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let call = move |raw: Option<&RawValue>, context: Context, mut out: Vec<u8>| {
            let arguments = arguments::read_arguments::<A>(raw)?;
            let handler = Arc::clone(&handler);
            let revision = context.revision();
            Ok(Box::pin(async move {
                let started = context.is_timed().then(Instant::now);
                let returned = caught_future(async move { handler(arguments, context).await }).await;
                let service = started.map_or(Duration::ZERO, |started| started.elapsed());
                let outcome = write_output(returned, &mut out, revision);
                Done { out, outcome, service }
            }) as BoxFuture<Done>)
        };
        self.typed::<A, R>(ToolHandler::Async(Box::new(call)))
    }

    /// Runs `handler` for each call on a thread of tokio's pool for blocking work: for files, locks and long sums.
    #[must_use]
    pub fn handler_blocking<A, R, F>(self, handler: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: ToolOutput,
        F: Fn(A, Context) -> Result<R, HandlerError> + Send + Sync + 'static,
    {
        let handler = Arc::new(handler);
        self.handler_async(move |arguments: A, context: Context| {
            let handler = Arc::clone(&handler);
            async move {
                let work = tokio::task::spawn_blocking(move || handler(arguments, context));
                // A panic surfaces here as an error, and is told as any other: not at all.
                work.await.map_err(HandlerError::internal)?
            }
        })
    }

    /// Makes a tool of its description, schemas included, and a handler that reads and writes bytes. The arguments are an
    /// object; whether they fit the schema is the handler's to check.
    #[must_use]
    pub fn raw(listed: mcp::Tool, handler: impl RawHandler) -> Self {
        let schema = |json: &Json| json.parse::<Schema>().ok();
        Tool {
            // An invalid schema is no object's schema either; registration reports it.
            input: Some(schema(&listed.input_schema).unwrap_or_default()),
            output: listed.output_schema.as_ref().and_then(schema),
            listed,
            handler: Some(ToolHandler::Raw(Arc::new(handler))),
            task: TaskUse::Never,
            terms: Terms::default(),
            guard: None,
        }
    }

    fn typed<A: JsonSchema, R: ToolOutput>(mut self, handler: ToolHandler) -> Self {
        self.input.get_or_insert_with(arguments::schema_read::<A>);
        if self.output.is_none() {
            self.output = R::schema();
        }
        self.handler = Some(handler);
        self
    }
}

fn write_output<R: ToolOutput>(
    returned: Result<Result<R, HandlerError>, Panicked>,
    out: &mut Vec<u8>,
    revision: Revision,
) -> Result<Written, CallFailure> {
    let mut writer = ToolWriter::new(out, revision);
    returned??.write(&mut writer).map_err(CallFailure::Unwritable)?;
    Ok(Written { meta: writer.meta, is_error: writer.is_error })
}

/// When a call becomes a task, for clients that take tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskUse {
    Never,
    /// Before the handler runs.
    AtOnce,
    /// Before the handler runs; other clients are refused.
    Required,
    /// When the handler says so.
    OnDemand,
}

pub(crate) type PlainCall = Box<dyn Fn(Option<&RawValue>, &mut Plain<'_>) -> Result<(), CallFailure> + Send + Sync>;
pub(crate) type AsyncCall =
    Box<dyn Fn(Option<&RawValue>, Context, Vec<u8>) -> Result<BoxFuture<Done>, Malformed> + Send + Sync>;

/// How a tool runs.
pub(crate) enum ToolHandler {
    /// At once, on this thread.
    Plain(PlainCall),
    /// As a future. Its buffer already holds the reply's head.
    Async(AsyncCall),
    /// As it likes.
    Raw(Arc<dyn RawHandler>),
}

/// A plain call under way.
pub(crate) struct Plain<'a> {
    pub(crate) writer: ToolWriter<'a>,
    /// Whether anybody wants `service`.
    pub(crate) timed: bool,
    pub(crate) service: Duration,
}

/// An asynchronous call that is over.
pub(crate) struct Done {
    pub(crate) out: Vec<u8>,
    pub(crate) outcome: Result<Written, CallFailure>,
    pub(crate) service: Duration,
}

/// Properties of a result that its written members don't show.
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) meta: Option<Extra>,
    pub(crate) is_error: bool,
}

/// Why a call wrote no result; the buffer may hold part of one.
#[derive(Debug)]
pub(crate) enum CallFailure {
    Malformed(Malformed),
    Failed(HandlerError),
    Panicked,
    Unwritable(serde_json::Error),
}

impl From<Malformed> for CallFailure {
    fn from(malformed: Malformed) -> Self {
        CallFailure::Malformed(malformed)
    }
}

impl From<Panicked> for CallFailure {
    fn from(_: Panicked) -> Self {
        CallFailure::Panicked
    }
}

impl From<HandlerError> for CallFailure {
    fn from(error: HandlerError) -> Self {
        CallFailure::Failed(error)
    }
}

//! The closed list of causes: one table, from which everything that must know all of them is made.

use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde::Serialize;

use super::scene::Scene;
use super::*;
use crate::closed::closed;
use crate::waterfall::Phase;

/// One row for each cause. Rows of recordings stand in the order in which their rules run, as
/// `Context = "code" in Family by rule;`. Rows of loads and of tokens have no rule here, as `Context = "code" in Family;`. The macro makes
/// [`Cause`], [`Code`], the list of rules and the entries of the [`FindingCatalogue`].
macro_rules! causes {
    (
        recordings { $($(#[doc = $doc:literal])* $name:ident = $code:literal in $family:ident by $rule:path;)* }
        loads { $($(#[doc = $load_doc:literal])* $load:ident = $load_code:literal in $load_family:ident;)* }
        tokens { $($(#[doc = $token_doc:literal])* $token:ident = $token_code:literal in $token_family:ident;)* }
    ) => {
        /// Cause of a finding, with its facts. Serialises as `"code"` and `"context"`.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(tag = "code", content = "context")]
        pub enum Cause {
            $($(#[doc = $doc])* #[serde(rename = $code)] $name($name),)*
        }

        /// A cause without its facts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub enum Code {
            $($(#[doc = $doc])* #[serde(rename = $code)] $name,)*
        }

        impl Cause {
            /// Which one this is.
            #[must_use]
            pub fn kind(&self) -> Code {
                match self {
                    $(Cause::$name(_) => Code::$name,)*
                }
            }

            /// This cause's code, as it is serialised.
            #[must_use]
            pub fn code(&self) -> &'static str {
                self.kind().as_str()
            }
        }

        impl Code {
            /// All of them.
            pub const ALL: &'static [Code] = &[$(Code::$name),*];

            /// As it is serialised.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Code::$name => $code,)*
                }
            }

            /// Family that the cause belongs to.
            #[must_use]
            pub fn family(self) -> Family {
                match self {
                    $(Code::$name => Family::$family,)*
                }
            }
        }

        pub(super) const RULES: &[Rule] = &[$($rule),*];

        /// The entries of all causes. `generator` gets the schemas of their contexts.
        fn cause_entries(generator: &mut SchemaGenerator) -> Vec<CatalogueEntry> {
            vec![
                $(CatalogueEntry::new::<$name>($code, Family::$family, Source::Recording, &[$($doc),*], generator),)*
                $(CatalogueEntry::new::<$load>($load_code, Family::$load_family, Source::Load, &[$($load_doc),*], generator),)*
                $(CatalogueEntry::new::<$token>($token_code, Family::$token_family, Source::Tokens, &[$($token_doc),*], generator),)*
            ]
        }
    };
}

pub(super) type Rule = fn(&mut Scene<'_, '_>) -> Vec<Finding>;

closed! {
    /// The subject that causes have in common.
    pub enum Family {
        /// Done twice, or asked for by nobody.
        HiddenWork,
        /// A call waits for what it doesn't need.
        Waiting,
        /// Connections and what travels on them.
        Transport,
        /// A client or server repeats one operation without an end.
        Loops,
        /// One call holds up others.
        Concurrency,
        /// Processor time, memory, start-up.
        Resources,
        /// The code of a tool, and what it waits for.
        Inside,
        /// The instrument was measured, not the target.
        Measurement,
    }
}

closed! {
    /// The kind of results that prove a cause.
    pub enum Source {
        /// A recording: a rule of this crate finds the cause.
        Recording,
        /// The results of a load: `mcpace.lab` finds the cause.
        Load,
        /// Counts of tokens: `mcpace.lab` finds the cause.
        Tokens,
    }
}

/// One cause, found in one kind of results.
#[derive(Clone, Debug, Serialize)]
pub struct CatalogueEntry {
    /// The code, as it is serialised. A cause that recordings and loads prove has one entry for each.
    pub code: &'static str,
    /// The family of the cause.
    pub family: Family,
    /// The kind of results that prove it.
    pub found_in: Source,
    /// One sentence that describes the cause.
    pub meaning: String,
    /// Name of the schema of its context.
    pub context: String,
}

impl CatalogueEntry {
    fn new<Context: JsonSchema>(
        code: &'static str,
        family: Family,
        found_in: Source,
        meaning: &[&str],
        generator: &mut SchemaGenerator,
    ) -> Self {
        generator.subschema_for::<Context>();
        let meaning = meaning.concat().trim().to_owned();
        Self { code, family, found_in, meaning, context: Context::schema_name().into_owned() }
    }
}

/// Everything that findings can say, as data for the languages that read them.
#[derive(Clone, Debug, Serialize)]
pub struct FindingCatalogue {
    /// Every cause.
    pub causes: Vec<CatalogueEntry>,
    /// JSON schemas of the contexts and of the types that contexts use, by name.
    pub schemas: serde_json::Map<String, serde_json::Value>,
    /// All families.
    pub families: &'static [Family],
    /// All roles of evidence.
    pub roles: &'static [ProofRole],
    /// All reasons, those of recordings first.
    pub reasons: (&'static [Reason], &'static [LoadReason]),
    /// All experiments that disprove, those of recordings first.
    pub disproofs: (&'static [Disproof], &'static [LoadDisproof]),
    /// Every alternative that a rule names.
    pub alternatives: &'static [Alternative],
    /// All stages of an exchange in a waterfall.
    pub phases: &'static [Phase],
}

/// The catalogue of all findings.
#[must_use]
pub fn catalogue() -> FindingCatalogue {
    let mut generator = SchemaSettings::default().for_serialize().into_generator();
    let causes = cause_entries(&mut generator);
    FindingCatalogue {
        causes,
        schemas: generator.take_definitions(true),
        families: Family::ALL,
        roles: ProofRole::ALL,
        reasons: (Reason::ALL, LoadReason::ALL),
        disproofs: (Disproof::ALL, LoadDisproof::ALL),
        alternatives: Alternative::ALL,
        phases: Phase::ALL,
    }
}

causes! {
    recordings {
        /// A tool loads code while a call waits.
        ImportInCall = "import-in-call" in Inside by inside::import_in_call::find;
        /// A tool builds a client of a library, a session or a connection in each call.
        ClientBuiltPerCall = "client-built-per-call" in Inside by inside::client_built_per_call::find;
        /// The runtime of the server's language stops a tool to collect garbage.
        GcPauses = "gc-pauses" in Inside by inside::gc_pauses::find;
        /// A tool spends its processor time in a library for which a quicker one with the same use was measured.
        CostlyLibrary = "costly-library" in Inside by inside::costly_library::find;
        /// A tool spends its processor time on checks of values.
        ValidationCost = "validation-cost" in Inside by inside::data_cost::find_validation;
        /// A tool spends its processor time on turning values into text and back.
        SerializationCost = "serialization-cost" in Inside by inside::data_cost::find_serialization;
        /// A tool asks the same thing again and again within one call.
        RepeatedDependencyCall = "repeated-dependency-call" in Inside by inside::repeated_dependency_call::find;
        /// A tool sends its requests one after another. Whether one needs another's answer is not seen.
        SerialDependencies = "serial-dependencies" in Inside by inside::serial_dependencies::find;
        /// A tool blocks the thread that runs the event loop.
        BlockingCallInEventLoop = "blocking-call-in-event-loop" in Inside by inside::blocking_call_in_event_loop::find;
        /// A tool waits for one dependency most of its time.
        SlowDependency = "slow-dependency" in Inside by inside::slow_dependency::find;
        /// A tool opens a new connection to a dependency in each call.
        DependencyConnectionPerCall = "dependency-connection-per-call" in Inside by inside::dependency_connection_per_call::find;
        /// Calls of a tool wait for a connection of a pool that other calls hold.
        PoolWait = "pool-wait" in Inside by inside::pool_wait::find;
        /// Calls of a tool wait for a lock, or for the interpreter, that other threads hold.
        LockWait = "lock-wait" in Inside by inside::lock_wait::find;
        /// A tool waits for a timer that its own code, or a library that it calls, has set.
        TimerWait = "timer-wait" in Inside by inside::timer_wait::find;
        /// A request is sent again though the first sending succeeded; the server executes it twice.
        DuplicateRequest = "duplicate-request" in HiddenWork by hidden_work::duplicate_request::find;
        /// A tool is called again with the same arguments while the first call may be running still.
        RetriedExecution = "retried-execution" in HiddenWork by hidden_work::retried_execution::find;
        /// A `tools/list` between a call's result and the call's return.
        HiddenListing = "hidden-listing" in HiddenWork by hidden_work::hidden_listing::find;
        /// Each call begins a session of its own.
        SessionPerCall = "session-per-call" in HiddenWork by hidden_work::session_per_call::find;
        /// A listing that a client already has, fetched again and again.
        RepeatedListing = "repeated-listing" in HiddenWork by hidden_work::repeated_listing::find;
        /// A gateway sends several requests on for one call.
        Amplification = "amplification" in HiddenWork by hidden_work::amplification::find;
        /// A gateway asks the servers behind it one after another.
        SerialFanOut = "serial-fan-out" in HiddenWork by hidden_work::serial_fan_out::find;
        /// OAuth metadata fetched again though nothing had changed.
        DiscoveryRepeated = "discovery-repeated" in HiddenWork by hidden_work::discovery_repeated::find;
        /// Requests are sent on to another path each time.
        RedirectPerRequest = "redirect-per-request" in Transport by transport::redirect_per_request::find;
        /// The client tries out which transport the server speaks, on every connect.
        TransportProbing = "transport-probing" in Transport by transport::transport_probing::find;
        /// The token came, then nothing was sent any more.
        AuthDeadlock = "auth-deadlock" in Waiting by waiting::auth_deadlock::find;
        /// No request leaves the client until the head of the standalone GET's reply has arrived.
        WaitsForGet = "waits-for-get" in Waiting by waiting::waits_for_get::find;
        /// A request waits until one of the client's connections is free.
        ConnectionLimit = "connection-limit" in Transport by transport::connection_limit::find;
        /// The first address of the server's name doesn't answer.
        AddressFallback = "address-fallback" in Transport by transport::address_fallback::find;
        /// The client drops replies before their end, so that their connections can't be used again.
        StreamNotDrained = "stream-not-drained" in Waiting by waiting::stream_not_drained::find;
        /// A new connection for each request though an open one was free.
        ConnectionPerRequest = "connection-per-request" in Transport by transport::connection_per_request::find;
        /// The standalone GET is opened again and again.
        GetLoop = "get-loop" in Loops by loops::get_loop::find;
        /// A client resumes a stream after the same event again and again, and the answer never comes.
        ResumeLoop = "resume-loop" in Loops by loops::resume_loop::find;
        /// Refused requests come again at a steady pace, or from many clients in step.
        RetryStorm = "retry-storm" in Loops by loops::retry_storm::find;
        /// The server's memory grows with the number of sessions: it keeps sessions that were never ended, or that were ended.
        SessionLeak = "session-leak" in Resources by resources::session_leak::find;
        /// The server's memory grows with the number of requests, not with the number of sessions.
        TaskLeak = "task-leak" in Resources by resources::task_leak::find;
        /// The processor time of each request grows with the number of tools.
        RebuiltPerRequest = "rebuilt-per-request" in Resources by resources::rebuilt_per_request::find;
        /// A listing of tools that takes a good part of a model's context.
        LargeListing = "large-listing" in Resources by resources::large_listing::find;
        /// A client's time for a line grows faster than the length of the line.
        SuperlinearLine = "superlinear-line" in Resources by resources::superlinear_line::find;
        /// A server process takes long until it first answers.
        SlowStart = "slow-start" in Resources by resources::slow_start::find;
        /// A reply's second small write waits for the acknowledgement of the first.
        DelayedAck = "delayed-ack" in Transport by transport::delayed_ack::find;
        /// Segments that were lost on their way hold calls up until the kernel sends them again.
        PacketLoss = "packet-loss" in Transport by transport::packet_loss::find;
        /// The client does not read what the server sends.
        SlowReader = "slow-reader" in Transport by transport::slow_reader::find;
        /// Progress comes all at once, with the result.
        BufferedStream = "buffered-stream" in Transport by transport::buffered_stream::find;
        /// The client gives its requests up after the same time, before their answers come.
        ClientTimeOut = "client-time-out" in Waiting by waiting::client_time_out::find;
        /// The client's time-out ends requests for which the server sends progress.
        ProgressIgnored = "progress-ignored" in Waiting by waiting::progress_ignored::find;
        /// Streams end at one fixed age.
        ClusteredStreamLifetime = "clustered-stream-lifetime" in Transport by transport::clustered_stream_lifetime::find;
        /// Requests of every kind wait until a thread or worker of the server is free.
        ThreadPoolSaturation = "thread-pool-saturation" in Concurrency by concurrency::thread_pool_saturation::find;
        /// Calls end in waves: a cap on workers or threads.
        CompletionWaves = "completion-waves" in Concurrency by concurrency::completion_waves::find;
        /// Requests of one session run one after another.
        SerialSession = "serial-session" in Concurrency by concurrency::serial_session::find;
        /// Nothing else is answered while a tool runs.
        BlockedEventLoop = "blocked-event-loop" in Concurrency by concurrency::blocked_event_loop::find;
        /// Replies that were ready arrive only together with a slower reply.
        HeadOfLine = "head-of-line" in Concurrency by concurrency::head_of_line::find;
        /// Every request takes the same extra time, whatever it asks.
        ConstantCostPerRequest = "constant-cost-per-request" in HiddenWork by hidden_work::constant_cost_per_request::find;
        /// The way to the server and back takes a notable part of each call.
        DistantServer = "distant-server" in Transport by transport::distant_server::find;
        /// The recorder was too busy to take its timestamps in time.
        RecorderLimited = "recorder-limited" in Measurement by measurement::recorder_limited::find;
        /// The instrument was kept from running: the machine had other things to do.
        NoisyRun = "noisy-run" in Measurement by measurement::noisy_run::find;
        /// The result was complete at the client long before the call returned.
        LateDelivery = "late-delivery" in Waiting by waiting::late_delivery::find;
    }
    loads {
        /// Calls of a load wait for the acknowledgement of a reply's first part.
        DelayedAckInLoad = "delayed-ack" in Transport;
        /// The load generator, not the target, was the limit.
        GeneratorLimited = "generator-limited" in Measurement;
    }
    tokens {
        /// One tool takes a good part of a model's context.
        VerboseTool = "verbose-tool" in Resources;
        /// A tool's result takes a good part of a model's context.
        HugeResult = "huge-result" in Resources;
        /// Tools of one listing repeat the same part of a schema.
        DuplicateSchema = "duplicate-schema" in Resources;
    }
}

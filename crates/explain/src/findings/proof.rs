//! Parts of a finding's proof: how sure it is and why, the events that prove it, the experiment that would disprove it,
//! and other causes that would look alike.

use mcpace_record::Nanos;
use serde::Serialize;

use super::catalogue::Code;
use crate::closed::closed;

/// How sure a finding is, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Confidence {
    /// How sure.
    pub level: Level,
    /// Why.
    pub reason: Reason,
}

/// Steps of sureness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Likely; another cause would look alike.
    Low,
    /// Probable; one thing is not seen.
    Medium,
    /// The events leave no other explanation.
    High,
}

/// An event that proves a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Index into [`Recording::events`](mcpace_record::Recording::events).
    pub event: usize,
    /// Its time (of the first byte, for a message's start).
    #[serde(rename = "at_ns")]
    pub at: Nanos,
    /// Role of the event in the proof.
    pub role: ProofRole,
    /// Whether it is an event of the recording behind the gateway.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub behind: bool,
}

/// Another cause that would look the same in this recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Alternative {
    /// The other cause.
    pub code: Code,
    /// The experiment that would decide between the two.
    pub decided_by: Disproof,
}

/// Declares every pair of a cause and an experiment that a rule may name as an alternative.
macro_rules! alternatives {
    ($($name:ident = $code:ident by $disproof:ident;)*) => {
        impl Alternative {
            $(pub(super) const $name: Self = Self { code: Code::$code, decided_by: Disproof::$disproof };)*

            /// All alternatives that rules name.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

alternatives! {
    BLOCKED_EVENT_LOOP_BY_BYPASS = BlockedEventLoop by BypassProxy;
    COMPLETION_WAVES_BY_PING = CompletionWaves by PingMeanwhile;
    COMPLETION_WAVES_BY_SESSION = CompletionWaves by CallFromSecondSession;
    CONNECTION_PER_REQUEST_BY_DRAINING = ConnectionPerRequest by DrainReplies;
    REBUILT_PER_REQUEST_BY_TOOLS = RebuiltPerRequest by ChangeNumberOfTools;
    SERIAL_SESSION_BY_SESSION = SerialSession by CallFromSecondSession;
    SERIAL_SESSION_BY_WAITING_TOOL = SerialSession by CallToolThatOnlyWaits;
    STREAM_NOT_DRAINED_BY_DRAINING = StreamNotDrained by DrainReplies;
    TASK_LEAK_BY_ONE_SESSION = TaskLeak by HoldOneSession;
    THREAD_POOL_SATURATION_BY_PING = ThreadPoolSaturation by PingMeanwhile;
}

closed! {
    /// Why a finding is as sure as it is.
    pub enum Reason {
        /// A repeat has the same body and the same JSON-RPC id, after a success.
        IdenticalBytesAndId,
        /// A repeat has the same body, back to back with the first, after a success; it has no id.
        IdenticalBytesBackToBack,
        /// The order of requests inside a call's window shows it.
        OrderInsideCall,
        /// Seen again and again.
        Repeated,
        /// Seen once: chance is not excluded.
        SeenOnce,
        /// The call returned when the reply's stream ended or its connection closed.
        ReturnFollowsEnd,
        /// Nothing on the wire says why the client held the result.
        NothingOnTheWire,
        /// Which layer used the time inside the process was not recorded.
        ProcessorTimeUnknown,
        /// The client left before the reply's end: whether the end was near is not seen.
        EndNotSeen,
        /// The recording is incomplete: what is missing may explain it.
        RecordingIncomplete,
        /// Another cause would show itself in the same events.
        AnotherLooksAlike,
        /// Some other requests were sent meanwhile, and none of them was answered.
        NothingPassed,
        /// Equal calls ended in waves of one size, one call's time apart.
        EndedInWaves,
        /// An equal call took a known time elsewhere, or the server reported the time.
        ReadyBefore,
        /// Replies came in bursts of a buffer's size.
        BurstsFillBuffers,
        /// A pause of the size by which kernels delay acknowledgements, on connections that had carried replies before,
        /// and not the tool's own.
        AcknowledgementsOwnTime,
        /// The stream was compressed on its way.
        StreamCompressed,
        /// Requests to the same server without it came back much sooner.
        ControlIsQuick,
        /// Connecting to the same server took a small part of the time.
        ConnectsQuickly,
        /// The processor time of the server's process was read at each request.
        ProcessorTimeRead,
        /// Behind what stands between, the same came one by one.
        SpreadBehind,
        /// The gateway had only this request while it sent those on.
        AloneAtGateway,
        /// Other streams of the recording ended right after their result.
        OthersEndPromptly,
        /// It comes again at a fixed period.
        FixedPeriod,
        /// A reply that the client waits for never came.
        NeverAnswered,
        /// Many clients at the same moments, with nothing in between.
        SameMoments,
        /// It rises with the count all the time; garbage that waits for its collection would too.
        RisesWithCount,
        /// It rises with the number of tools.
        RisesWithTools,
        /// The size is what was on the wire.
        SizeOnTheWire,
        /// Time grows with more than the size, over sizes that are far apart.
        GrowsFaster,
        /// The instrument's own threads were at work when they were late.
        InstrumentBusy,
        /// The instrument's own threads were kept from running when they were late.
        InstrumentKept,
        /// The kernel counted it on the connection.
        CountedByKernel,
        /// The stacks of the server's threads were sampled.
        StacksSampled,
        /// The server's program reported each of its requests.
        RequestsReported,
        /// The runtime of the server's language reported its pauses.
        PausesReported,
        /// The server's program reported each timer that went off.
        TimersReported,
        /// Stacks show the library, and the quicker one was measured for one use of it.
        AlternativeMeasured,
        /// The kernel told of the connections of the server's program.
        ConnectionsSeen,
        /// Requests without progress were given up after the same time.
        SameWithoutProgress,
    }
}

closed! {
    /// Role of an event in a finding's proof.
    pub enum ProofRole {
        /// A request's first sending.
        FirstRequest,
        /// The result that it got.
        FirstResult,
        /// The end of the reply with it.
        FirstReplyEnd,
        /// The repeat of a request.
        RepeatedRequest,
        /// The end of the second reply, or the result in it.
        RepeatedResult,
        /// The result of the call itself.
        Result,
        /// The end of the reply that held it.
        ReplyEnd,
        /// A list was asked for.
        Listing,
        /// Its result.
        ListingResult,
        /// The call started.
        CallStarted,
        /// The call returned.
        CallReturned,
        /// A connection was opened.
        ConnectionOpened,
        /// A connection ended.
        ConnectionClosed,
        /// A session was begun.
        SessionBegun,
        /// A tool was called.
        ToolCalled,
        /// Discovery, needed.
        Discovery,
        /// Discovery of what was known.
        RepeatedDiscovery,
        /// The server's own stream was asked for.
        StreamRequest,
        /// Its reply's head.
        StreamHead,
        /// The request that left after it.
        HeldRequest,
        /// A server process was spawned.
        ProcessStarted,
        /// Its first line on stderr.
        FirstStderr,
        /// Its first line on stdout.
        FirstOutput,
        /// Its answer to `initialize`.
        InitializeAnswered,
        /// The server had the whole of a request.
        RequestReceived,
        /// Another request, asked before it, was answered.
        OtherAnswered,
        /// The request was answered.
        Answered,
        /// The reply that sent it on.
        Redirected,
        /// The reply that refused it.
        Refused,
        /// A connection was tried.
        ConnectTried,
        /// That failed.
        ConnectFailed,
        /// The first part of a reply.
        FirstWrite,
        /// The part that came late.
        SecondWrite,
        /// The first progress notification.
        FirstProgress,
        /// A stream ended.
        StreamEnded,
        /// The client gave the request up.
        GivenUp,
        /// A listing of what was known.
        RepeatedListing,
        /// The reply's head came.
        ReplyHead,
        /// The server had a request that lacks what is blamed.
        ControlReceived,
        /// The head of that one's reply.
        ControlReplyHead,
        /// A request left behind the gateway.
        SentOn,
        /// A token was asked for.
        TokenRequest,
        /// It was granted.
        TokenGranted,
        /// A stream was asked to go on after an event.
        ResumeRequest,
        /// A request that was refused.
        RefusedRequest,
        /// Memory of the process before.
        MemoryBefore,
        /// Memory of the process after.
        MemoryAfter,
        /// Processor time of the process before.
        ProcessorBefore,
        /// Processor time of the process after.
        ProcessorAfter,
        /// The first of an answer was there.
        AnswerBegan,
        /// The client had taken all of it.
        AnswerTaken,
        /// The instrument was late.
        InstrumentLate,
        /// The kernel's statistics of the connection before.
        TcpBefore,
        /// The kernel's statistics of the connection after.
        TcpAfter,
    }
}

closed! {
    /// The experiment that would disprove a finding.
    pub enum Disproof {
        /// Count executions in the server's own log: it is wrong if each request arrives once.
        CountExecutionsAtServer,
        /// Call a tool without an output schema, or list before: it is wrong if the listing stays.
        CallWithoutOutputSchema,
        /// Let the server end its reply right after the result: it is wrong if the call is as slow.
        EndReplyWithResult,
        /// Measure the client's processor time during the call: it is wrong if the client was computing.
        MeasureClientProcessorTime,
        /// Repeat with one client object for all requests: it is wrong if connections are still as many.
        ReuseOneClient,
        /// Repeat with one session held open for all calls: it is wrong if each call still begins its own.
        HoldOneSession,
        /// Connect twice with the same credentials and a warm cache: it is wrong if the second asks nothing.
        ConnectTwiceWithSameCredentials,
        /// Answer the GET with 405 at once: it is wrong if requests are still held.
        RefuseStandaloneStream,
        /// Repeat without authentication: it is wrong if requests are still held.
        RepeatWithoutAuthentication,
        /// Start again from a warm package cache and read the process's processor time: tells a download from imports.
        StartAgainWarm,
        /// Call from a second session at the same time: tells what holds up a session from what holds up the server.
        CallFromSecondSession,
        /// Call a tool that waits without blocking in the same way: it is wrong if calls still run one after another.
        CallToolThatOnlyWaits,
        /// Ping while calls are under way: it is wrong if the ping waits too.
        PingMeanwhile,
        /// Repeat with a larger pool of workers or threads: it is wrong if as many calls end at a time.
        RaiseWorkerLimit,
        /// Flush the server's stdout after each line: it is wrong if replies still come in bursts.
        FlushEachLine,
        /// Ask at the path that the redirect names: it is wrong if requests are still sent on.
        AskAtFinalPath,
        /// Name the server by the address that stood: it is wrong if connecting takes as long.
        ConnectByAddress,
        /// Name the transport in the client's settings: it is wrong if it is still tried out.
        NameTransport,
        /// Acknowledge at once (TCP_QUICKACK on the client's socket): it is wrong if the pause stays.
        AcknowledgeAtOnce,
        /// Ask the server itself, past every proxy: it is wrong if the stream is the same.
        BypassProxy,
        /// Ask without `Accept-Encoding`: it is wrong if progress still comes all at once.
        AskUncompressed,
        /// Raise the client's time-out for bodies: it is wrong if streams end at the same age.
        RaiseStreamTimeout,
        /// Raise the client's time-out for requests: it is wrong if it gives up after the same time.
        RaiseRequestTimeout,
        /// Send no progress: it is wrong if the client gives up sooner.
        SendNoProgress,
        /// Allow the client more connections: it is wrong if requests still wait.
        RaiseConnectionLimit,
        /// Let the client keep its listing (a cache, or one listing a session): it is wrong if as many are fetched.
        KeepListing,
        /// Ask the same server for the same without a token, or with one it knows: it is wrong if requests take as long.
        CallWithoutToken,
        /// Ask the same server without a session: it is wrong if requests take as long.
        CallWithoutSession,
        /// Ask the same server for a path that no MCP code serves: it is wrong if the answer takes as long.
        AskForAnotherPath,
        /// Call the server behind the gateway directly: it is wrong if it gets as many requests.
        CallBehindGateway,
        /// Delay every server behind the gateway by a second: it is wrong if the answer comes one second later, not several.
        DelayEveryServer,
        /// Call with a token that is still good: it is wrong if the call hangs as well.
        CallWithGoodToken,
        /// Read each reply to its end before the next request: it is wrong if connections stay as many.
        DrainReplies,
        /// Hold the GET's stream open: it is wrong if it is still opened again.
        HoldStreamOpen,
        /// Answer the resumed GET with what follows that event: it is wrong if the client asks again.
        ReplayAfterEvent,
        /// Let clients wait longer after each refusal, each by a time of its own: it is wrong if requests stay as many.
        BackOff,
        /// End each session with DELETE: it is wrong if memory rises as much.
        EndEachSession,
        /// Wait for some minutes without requests and look again: it is wrong if the memory is given back.
        WaitAndLookAgain,
        /// Repeat with another number of tools: it is wrong if processor time doesn't follow it.
        ChangeNumberOfTools,
        /// Count the listing's tokens with the model's own tokenizer: it is wrong if they are few.
        CountTokens,
        /// Profile the server's process while it answers: it is wrong if the time is spent in what the requests ask for.
        ProfileServer,
        /// Send the same amount in several lines: it is wrong if the client takes as long.
        SplitAnswer,
        /// Repeat without the recorder, by the client's own clock: it is wrong if calls take as long.
        RepeatWithoutRecorder,
        /// Repeat on a machine that does nothing else: it is wrong if calls take as long.
        RepeatOnQuietMachine,
        /// Repeat from a machine next to the peer: it is wrong if calls take as long.
        RepeatBesidePeer,
        /// Ask for the same with a client that reads at once: it is wrong if the reply takes as long.
        AskWithAnotherClient,
        /// Build the client once, when the server starts: it is wrong if calls take as long.
        ShareClient,
        /// Ask for all of it in one request: it is wrong if calls take as long.
        AskOnceForAll,
        /// Send the requests together: it is wrong if one of them needs another's answer.
        SendTogether,
        /// Ask the dependency from a shell on the same machine: it is wrong if it answers much sooner.
        AskDependencyDirectly,
        /// Do the same with the other library: it is wrong if calls take as long.
        UseAlternative,
        /// Pass the values on without a check: it is wrong if calls take as long.
        SkipChecks,
        /// Return a tenth of the data: it is wrong if calls take as long.
        ReturnLess,
        /// Load the module when the server starts: it is wrong if calls take as long.
        ImportAtStart,
        /// Turn the collector off for a run: it is wrong if calls take as long.
        CollectLess,
        /// Let the timer go off sooner: it is wrong if calls take as long.
        ShortenTimer,
        /// Keep the connection between calls: it is wrong if calls take as long.
        KeepConnection,
        /// Make the calls one at a time, each with one thread: it is wrong if they take as long.
        CallOneAtATime,
    }
}

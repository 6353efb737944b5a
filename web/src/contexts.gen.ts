// Made by `make docs` from crates/explain/src/findings: change it there.

/** Facts of ``address-fallback``. The first address of the server's name doesn't answer. */
export interface AddressFallback {
  from?: string;
  longest_ns?: number;
  to?: string;
  tries?: number;
}

/** Facts of ``amplification``. A gateway sends several requests on for one call. */
export interface Amplification {
  calls?: number;
  methods?: Record<string, number>;
  requests?: number;
  sessions?: number;
  typical?: number;
}

/** Facts of ``auth-deadlock``. The token came, then nothing was sent any more. */
export interface AuthDeadlock {
  calls?: number;
  longest_ns?: number;
  of_calls?: number;
}

/** Facts of ``blocked-event-loop``. Nothing else is answered while a tool runs. */
export interface BlockedEventLoop {
  across_sessions?: boolean;
  held?: number;
  longest_ns?: number;
  without_tool?: number;
}

/** Facts of ``blocking-call-in-event-loop``. A tool blocks the thread that runs the event loop. */
export interface BlockingCallInEventLoop {
  callee?: string;
  cause_ns?: number;
  file?: string;
  function?: string;
  gain_ns?: number;
  line?: number;
  server_ns?: number;
  tool?: string;
}

/** Facts of ``buffered-stream``. Progress comes all at once, with the result. */
export interface BufferedStream {
  encoding?: string;
  events?: number;
  longest_ns?: number;
  replies?: number;
}

/** Facts of ``client-built-per-call``. A tool builds a client of a library, a session or a connection in each call. */
export interface ClientBuiltPerCall {
  built?: number;
  cause_ns?: number;
  client?: string;
  file?: string;
  function?: string;
  gain_ns?: number;
  line?: number;
  server_ns?: number;
  slowest_function?: string;
  tool?: string;
}

/** Facts of ``client-time-out``. The client gives its requests up after the same time, before their answers come. */
export interface ClientTimeOut {
  answered_later?: number;
  calls?: number;
  counted_from?: "beginning" | "last-event";
  layer?: "call" | "head" | "body";
  longest_answer_ns?: number;
  of_calls?: number;
  sign?: "cancelled" | "closed" | "repeated" | "call-failed";
  time_out_ns?: number;
  tool?: string;
}

/** Facts of ``clustered-stream-lifetime``. Streams end at one fixed age. */
export interface ClusteredStreamLifetime {
  age_ns?: number;
  closed_by?: "client" | "server" | "instrument";
  counted_from?: "beginning" | "last-event";
  streams?: number;
  without_result?: number;
}

/** Facts of ``completion-waves``. Calls end in waves: a cap on workers or threads. */
export interface CompletionWaves {
  at_a_time?: number;
  held?: number;
  longest_ns?: number;
}

/** Facts of ``connection-limit``. A request waits until one of the client's connections is free. */
export interface ConnectionLimit {
  held?: number;
  limit?: number;
  longest_ns?: number;
  never_left?: number;
}

/** Facts of ``connection-per-request``. A new connection for each request though an open one was free. */
export interface ConnectionPerRequest {
  closed_by?: "client" | "server" | "instrument";
  connections?: number;
  left_early?: number;
  needless?: number;
  replies?: "json" | "sse" | "mixed";
  requests?: number;
}

/** Facts of ``constant-cost-per-request``. Every request takes the same extra time, whatever it asks. */
export interface ConstantCostPerRequest {
  floor_ns?: number;
  follows?: "token" | "session" | "everything" | "processor-time";
  kinds?: number;
  requests?: number;
  without_ns?: number;
}

/** Facts of ``costly-library``. A tool spends its processor time in a library for which a quicker one with the same use was measured. */
export interface CostlyLibrary {
  alternative?: string;
  callee?: string;
  cause_ns?: number;
  factor?: number;
  file?: string;
  function?: string;
  gain_ns?: number;
  library?: string;
  line?: number;
  measured?: string;
  measured_use?: string;
  measured_versions?: string;
  processor_ns?: number;
  server_ns?: number;
  tool?: string;
}

/** Facts of ``delayed-ack``. A reply's second small write waits for the acknowledgement of the first. */
export interface DelayedAck {
  of_replies?: number;
  pause_ns?: number;
  pauses?: number;
}

/** Facts of ``delayed-ack`` of a load. Calls of a load wait for the acknowledgement of a reply's first part. */
export interface DelayedAckInLoad {
  alone_p50_s?: number;
  alone_quick_p50_s?: number;
  alone_share?: number;
  cpu_share?: number;
  from_s?: number;
  mean_s?: number;
  p50_s?: number;
  quick_mean_s?: number;
  quick_p50_s?: number;
  quick_share?: number;
  share?: number;
  to_s?: number;
}

/** Facts of ``dependency-connection-per-call``. A tool opens a new connection to a dependency in each call. */
export interface DependencyConnectionPerCall {
  address?: string;
  cause_ns?: number;
  connections?: number;
  dependency_closes?: boolean;
  file?: string;
  function?: string;
  gain_ns?: number;
  handshake?: boolean;
  line?: number;
  round_trip_ns?: number;
  server_ns?: number;
  tool?: string;
}

/** Facts of ``discovery-repeated``. OAuth metadata fetched again though nothing had changed. */
export interface DiscoveryRepeated {
  repeats?: number;
  targets?: string[];
}

/** Facts of ``distant-server``. The way to the server and back takes a notable part of each call. */
export interface DistantServer {
  call_ns?: number;
  connections?: number;
  of_calls?: number;
  round_trip_ns?: number;
  round_trips?: number;
}

/** Facts of ``duplicate-request``. A request is sent again though the first sending succeeded; the server executes it twice. */
export interface DuplicateRequest {
  after_reply_end?: number;
  authenticated?: boolean;
  executions?: number;
  methods?: string[];
  repeats?: number;
  streams?: number;
}

/** Facts of ``duplicate-schema``. Tools of one listing repeat the same part of a schema. */
export interface DuplicateSchema {
  listing_tokens?: number;
  member?: string;
  repeated_tokens?: number;
  tokens?: number;
  tools?: number;
}

/** Facts of ``gc-pauses``. The runtime of the server's language stops a tool to collect garbage. */
export interface GcPauses {
  cause_ns?: number;
  file?: string;
  function?: string;
  gain_ns?: number;
  line?: number;
  longest_ns?: number;
  pauses?: number;
  server_ns?: number;
  tool?: string;
}

/** Facts of ``generator-limited`` of a load. The load generator, not the target, was the limit. */
export interface GeneratorLimited {
  busy?: number;
  late_p99_s?: number;
  reason?: "late-starts" | "threads-busy";
  threads?: number;
}

/** Facts of ``get-loop``. The standalone GET is opened again and again. */
export interface GetLoop {
  life_ns?: number;
  not_a_stream?: boolean;
  period_ns?: number;
  sessions?: number;
  streams?: number;
}

/** Facts of ``head-of-line``. Replies that were ready arrive only together with a slower reply. */
export interface HeadOfLine {
  held?: number;
  longest_ns?: number;
  released_with?: "slower-reply" | "full-buffer";
}

/** Facts of ``hidden-listing``. A ``tools/list`` between a call's result and the call's return. */
export interface HiddenListing {
  calls?: number;
  listings?: number;
  of_calls?: number;
}

/** Facts of ``huge-result``. A tool's result takes a good part of a model's context. */
export interface HugeResult {
  at_least?: boolean;
  tokens?: number;
  tool?: string;
}

/** Facts of ``import-in-call``. A tool loads code while a call waits. */
export interface ImportInCall {
  cause_ns?: number;
  file?: string;
  function?: string;
  gain_ns?: number;
  in_first_call?: boolean;
  line?: number;
  module?: string;
  server_ns?: number;
  tool?: string;
}

/** Facts of ``large-listing``. A listing of tools that takes a good part of a model's context. */
export interface LargeListing {
  bytes?: number;
  bytes_in_all?: number;
  of_bytes?: number;
  pages?: number;
  tokens?: number;
  tools?: number;
}

/** Facts of ``late-delivery``. The result was complete at the client long before the call returned. */
export interface LateDelivery {
  calls?: number;
  longest_ns?: number;
  of_calls?: number;
  released_by?: "reply-end" | "connection-close" | "nothing-seen";
}

/** Facts of ``lock-wait``. Calls of a tool wait for a lock, or for the interpreter, that other threads hold. */
export interface LockWait {
  cause_ns?: number;
  file?: string;
  function?: string;
  gain_ns?: number;
  holder_file?: string;
  holder_line?: number;
  interpreter?: boolean;
  line?: number;
  server_ns?: number;
  threads?: number;
  tool?: string;
}

/** Facts of ``noisy-run``. The instrument was kept from running: the machine had other things to do. */
export interface NoisyRun {
  late_ns?: number;
  of_ns?: number;
  times?: number;
}

/** Facts of ``packet-loss``. Segments that were lost on their way hold calls up until the kernel sends them again. */
export interface PacketLoss {
  of_exchanges?: number;
  pause_ns?: number;
  retransmitted?: number;
  stalls?: number;
  way?: "to-client" | "to-server";
}

/** Facts of ``pool-wait``. Calls of a tool wait for a connection of a pool that other calls hold. */
export interface PoolWait {
  cause_ns?: number;
  file?: string;
  function?: string;
  gain_ns?: number;
  line?: number;
  pool?: string;
  server_ns?: number;
  tool?: string;
}

/** Facts of ``progress-ignored``. The client's time-out ends requests for which the server sends progress. */
export interface ProgressIgnored {
  calls?: number;
  notifications?: number;
  silence_ns?: number;
  time_out_ns?: number;
  tool?: string;
  without_progress?: number;
}

/** Facts of ``rebuilt-per-request``. The processor time of each request grows with the number of tools. */
export interface RebuiltPerRequest {
  each_with_few_ns?: number;
  each_with_many_ns?: number;
  few_tools?: number;
  many_tools?: number;
  of?: "client" | "server";
  requests?: number;
}

/** Facts of ``recorder-limited``. The recorder was too busy to take its timestamps in time. */
export interface RecorderLimited {
  late_ns?: number;
  of_ns?: number;
  times?: number;
}

/** Facts of ``redirect-per-request``. Requests are sent on to another path each time. */
export interface RedirectPerRequest {
  from?: string;
  of_requests?: number;
  redirects?: number;
  status?: number;
  to?: string;
}

/** Facts of ``repeated-dependency-call``. A tool asks the same thing again and again within one call. */
export interface RepeatedDependencyCall {
  cause_ns?: number;
  dependency?: string;
  gain_ns?: number;
  kind?: "http" | "database" | "other" | "connection" | "program" | "pool-work" | "timer";
  pattern?: string;
  requests?: number;
  server_ns?: number;
  tool?: string;
}

/** Facts of ``repeated-listing``. A listing that a client already has, fetched again and again. */
export interface RepeatedListing {
  largest_bytes?: number;
  methods?: string[];
  repeats?: number;
  tool_calls?: number;
}

/** Facts of ``resume-loop``. A client resumes a stream after the same event again and again, and the answer never comes. */
export interface ResumeLoop {
  attempts?: number;
  calls?: number;
  period_ns?: number;
}

/** Facts of ``retried-execution``. A tool is called again with the same arguments while the first call may be running still. */
export interface RetriedExecution {
  both_answered?: number;
  repeats?: number;
  timeout_ns?: number;
  tool?: string;
  trigger?: "time-out" | "at-once";
}

/** Facts of ``retry-storm``. Refused requests come again at a steady pace, or from many clients in step. */
export interface RetryStorm {
  clients?: number;
  pattern?: "steady" | "in-step";
  period_ns?: number;
  requests?: number;
  status?: number;
}

/** Facts of ``serial-dependencies``. A tool sends its requests one after another. Whether one needs another's answer is not seen. */
export interface SerialDependencies {
  cause_ns?: number;
  dependencies?: string[];
  gain_ns?: number;
  language?: "python" | "node" | "java";
  longest_ns?: number;
  requests?: number;
  server_ns?: number;
  tool?: string;
}

/** Facts of ``serial-fan-out``. A gateway asks the servers behind it one after another. */
export interface SerialFanOut {
  at_once_ns?: number;
  longest_ns?: number;
  methods?: string[];
  requests?: number;
  servers?: number;
}

/** Facts of ``serial-session``. Requests of one session run one after another. */
export interface SerialSession {
  held?: number;
  longest_ns?: number;
}

/** Facts of ``serialization-cost``. A tool spends its processor time on turning values into text and back. */
export interface SerializationCost {
  callee?: string;
  cause_ns?: number;
  file?: string;
  function?: string;
  gain_ns?: number;
  library?: string;
  line?: number;
  processor_ns?: number;
  server_ns?: number;
  tool?: string;
}

/** Facts of ``session-leak``. The server's memory grows with the number of sessions: it keeps sessions that were never ended, or that were ended. */
export interface SessionLeak {
  begun?: number;
  bytes_after?: number;
  bytes_before?: number;
  bytes_each?: number;
  ended?: number;
  least_bytes_each?: number;
  most_bytes_each?: number;
}

/** Facts of ``session-per-call``. Each call begins a session of its own. */
export interface SessionPerCall {
  processes?: number;
  sessions?: number;
  tool_calls?: number;
}

/** Facts of ``slow-dependency``. A tool waits for one dependency most of its time. */
export interface SlowDependency {
  cause_ns?: number;
  dependency?: string;
  gain_ns?: number;
  kind?: "http" | "database" | "other" | "connection" | "program" | "pool-work" | "timer";
  pattern?: string;
  requests?: number;
  server_ns?: number;
  tool?: string;
}

/** Facts of ``slow-reader``. The client does not read what the server sends. */
export interface SlowReader {
  largest?: number;
  longest_ns?: number;
  of_replies?: number;
  replies?: number;
  wait_ns?: number;
}

/** Facts of ``slow-start``. A server process takes long until it first answers. */
export interface SlowStart {
  longest_ns?: number;
  of_starts?: number;
  package_runner?: boolean;
  program?: string;
  starts?: number;
  typical_answer_ns?: number;
}

/** Facts of ``stream-not-drained``. The client drops replies before their end, so that their connections can't be used again. */
export interface StreamNotDrained {
  connections?: number;
  left_early?: number;
  needless?: number;
  requests?: number;
}

/** Facts of ``superlinear-line``. A client's time for a line grows faster than the length of the line. */
export interface SuperlinearLine {
  largest?: number;
  lines?: number;
  longest_ns?: number;
  power?: number;
}

/** Facts of ``task-leak``. The server's memory grows with the number of requests, not with the number of sessions. */
export interface TaskLeak {
  bytes_after?: number;
  bytes_before?: number;
  bytes_each?: number;
  least_bytes_each?: number;
  most_bytes_each?: number;
  requests?: number;
  threads?: number;
}

/** Facts of ``thread-pool-saturation``. Requests of every kind wait until a thread or worker of the server is free. */
export interface ThreadPoolSaturation {
  at_a_time?: number;
  held?: number;
  longest_ns?: number;
}

/** Facts of ``timer-wait``. A tool waits for a timer that its own code, or a library that it calls, has set. */
export interface TimerWait {
  cause_ns?: number;
  file?: string;
  function?: string;
  gain_ns?: number;
  library?: string;
  line?: number;
  server_ns?: number;
  timers?: number;
  tool?: string;
}

/** Facts of ``transport-probing``. The client tries out which transport the server speaks, on every connect. */
export interface TransportProbing {
  probes?: number;
  status?: number;
}

/** Facts of ``validation-cost``. A tool spends its processor time on checks of values. */
export interface ValidationCost {
  built_ns?: number;
  callee?: string;
  cause_ns?: number;
  file?: string;
  function?: string;
  gain_ns?: number;
  library?: string;
  line?: number;
  processor_ns?: number;
  server_ns?: number;
  tool?: string;
}

/** Facts of ``verbose-tool``. One tool takes a good part of a model's context. */
export interface VerboseTool {
  description_tokens?: number;
  input_schema_tokens?: number;
  listing_tokens?: number;
  tokens?: number;
  tool?: string;
  verbose_tools?: number;
}

/** Facts of ``waits-for-get``. No request leaves the client until the head of the standalone GET's reply has arrived. */
export interface WaitsForGet {
  gate?: "authorization-lock" | "stream-first";
  longest_ns?: number;
  occurrences?: number;
}

/** For each code of a finding the contexts that it may have. */
export interface Contexts {
  "import-in-call": ImportInCall;
  "client-built-per-call": ClientBuiltPerCall;
  "gc-pauses": GcPauses;
  "costly-library": CostlyLibrary;
  "validation-cost": ValidationCost;
  "serialization-cost": SerializationCost;
  "repeated-dependency-call": RepeatedDependencyCall;
  "serial-dependencies": SerialDependencies;
  "blocking-call-in-event-loop": BlockingCallInEventLoop;
  "slow-dependency": SlowDependency;
  "dependency-connection-per-call": DependencyConnectionPerCall;
  "pool-wait": PoolWait;
  "lock-wait": LockWait;
  "timer-wait": TimerWait;
  "duplicate-request": DuplicateRequest;
  "retried-execution": RetriedExecution;
  "hidden-listing": HiddenListing;
  "session-per-call": SessionPerCall;
  "repeated-listing": RepeatedListing;
  "amplification": Amplification;
  "serial-fan-out": SerialFanOut;
  "discovery-repeated": DiscoveryRepeated;
  "redirect-per-request": RedirectPerRequest;
  "transport-probing": TransportProbing;
  "auth-deadlock": AuthDeadlock;
  "waits-for-get": WaitsForGet;
  "connection-limit": ConnectionLimit;
  "address-fallback": AddressFallback;
  "stream-not-drained": StreamNotDrained;
  "connection-per-request": ConnectionPerRequest;
  "get-loop": GetLoop;
  "resume-loop": ResumeLoop;
  "retry-storm": RetryStorm;
  "session-leak": SessionLeak;
  "task-leak": TaskLeak;
  "rebuilt-per-request": RebuiltPerRequest;
  "large-listing": LargeListing;
  "superlinear-line": SuperlinearLine;
  "slow-start": SlowStart;
  "delayed-ack": DelayedAck | DelayedAckInLoad;
  "packet-loss": PacketLoss;
  "slow-reader": SlowReader;
  "buffered-stream": BufferedStream;
  "client-time-out": ClientTimeOut;
  "progress-ignored": ProgressIgnored;
  "clustered-stream-lifetime": ClusteredStreamLifetime;
  "thread-pool-saturation": ThreadPoolSaturation;
  "completion-waves": CompletionWaves;
  "serial-session": SerialSession;
  "blocked-event-loop": BlockedEventLoop;
  "head-of-line": HeadOfLine;
  "constant-cost-per-request": ConstantCostPerRequest;
  "distant-server": DistantServer;
  "recorder-limited": RecorderLimited;
  "noisy-run": NoisyRun;
  "late-delivery": LateDelivery;
  "generator-limited": GeneratorLimited;
  "verbose-tool": VerboseTool;
  "huge-result": HugeResult;
  "duplicate-schema": DuplicateSchema;
}

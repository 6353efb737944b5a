// Made by `make docs` from python/mcpace/report/page/model.py: change it there.

/** A call on its time axis. */
export interface Call {
  trial: number;
  total_ms: number;
  exchanges: ExchangeRow[];
  left_out: number;
  lanes: LaneShown[];
  waits: Wait[];
  pins: Pin[];
  pins_of: string;
}

/** One subject × target × operation. */
export interface CaseShown {
  subject: string;
  target: string;
  operation: string;
  tool: string;
  trials_s: number[];
  trials: number;
  summary?: SummaryShown;
  tone: "unknown" | "same" | "slower" | "faster" | "much-slower" | "much-faster";
  change: string;
  note: string;
  state: string;
  reason: string;
  ledger: Share[];
  split: Share[];
  server_notes: string;
  call?: Call;
  better?: number;
  codes: number[];
}

/** One figure of one case, on both sides. */
export interface ComparedShown {
  place: string;
  metric: string;
  first: string;
  second: string;
  ratio?: number;
  low?: number;
  high?: number;
  ratio_words: string;
  sees: string;
  verdict: "worse" | "better" | "same" | "unclear";
  words: string;
  breach: boolean;
  first_s: number[];
  second_s: number[];
  first_median_s?: number;
  second_median_s?: number;
  advice: string;
}

/** A comparison of two sides. */
export interface ComparisonShown {
  first: string;
  second: string;
  warnings: string[];
  rows: ComparedShown[];
  notes: string[];
}

/** Latencies in bins of equal width on a logarithmic scale. */
export interface Distribution {
  per_decade: number;
  first: number;
  counts: number[];
}

/** A file in the folder of runs. */
export interface Entry {
  id: string;
  state: "done" | "live" | "unreadable";
  changed: number;
  head?: Head;
  reason: string;
}

/** One step of a finding's argument. */
export interface EvidenceShown {
  number: number;
  at_s: number;
  words: string;
  event: number;
}

/** A request with its reply. */
export interface ExchangeRow {
  label: string;
  where: string;
  status?: number;
  connection?: number;
  phases: [string, number, number][];
  marks: [string, number][];
  repeats?: number;
}

/** A named fact. */
export interface Fact {
  name: string;
  value: string;
}

/** Experiments on a live target: one thing changed at a time. */
export interface FactorsShown {
  target: string;
  interval: string;
  rows: ComparedShown[];
  notes: string[];
}

/** A place where a cause was seen. */
export interface FindingPlace {
  target: string;
  operations: string;
  subjects: string;
}

/** A cause with all places where it was seen. */
export interface FindingShown {
  code: string;
  title: string;
  severity: "high" | "medium" | "low";
  confidence: string;
  explanation: string;
  cost: string;
  places: FindingPlace[];
  advice: string;
  disproof: string;
  alternatives: string[];
  evidence: EvidenceShown[];
  evidence_of: string;
  case: number;
}

/** The time inside a tool as a tree: the calls of its stacks, its waits for dependencies, and the rest. ``names``, ``places`` and ``kinds`` describe the frames, the other lists the nodes. A node stands before its children. */
export interface FlameShown {
  names: string[];
  places: string[];
  kinds: ("own" | "library" | "interpreter" | "dependency" | "others" | "rest")[];
  parents: number[];
  frames: number[];
  running_s: number[];
  waiting_s: number[];
}

/** Summary of a run, for the list of runs and the top of its page. */
export interface Head {
  kind: string;
  started: string;
  mcpace: string;
  partial: boolean;
  verdict: string[];
  subjects: string;
  targets: string;
  machine: string;
}

/** The time inside a tool: means over its calls. */
export interface InsideShown {
  title: string;
  where: string;
  whole_s: number;
  notes: string[];
  about: string[];
  parts_title: string;
  parts: TimeRowShown[];
  lines: TimeRowShown[];
  flame?: FlameShown;
}

/** The requests of the server to one dependency within a call. */
export interface LaneShown {
  name: string;
  note: string;
  bars: [string, number, number][];
}

/** One layer of a server. */
export interface LayerShown {
  name: string;
  meaning: string;
  batches_s: number[];
  median_s?: number;
  low_s?: number;
  high_s?: number;
  over: string;
  ratio: string;
  adds_s?: number;
  share: string;
  inside: boolean;
  remark: string;
}

/** One server's layers. */
export interface LayersShown {
  title: string;
  layers: LayerShown[];
  conditions: string[];
}

/** A folder of runs: those in progress first, then the newest. */
export interface Listing {
  folder: string;
  entries: Entry[];
  left_out: number;
  flights: Entry[];
}

/** A run in progress. */
export interface Live {
  head: Head;
  step: string;
  done: number;
  steps?: number;
  planned_s?: number;
  notes: string[];
  samples: Sample[];
  series?: Series;
  ended: boolean;
}

/** A load on a target. */
export interface LoadShown {
  target: string;
  model: string;
  rate: number;
  failed: number;
  failed_share: string;
  latency?: Percentiles;
  operations: OperationShown[];
  series?: Series;
  thresholds: Threshold[];
  facts: Fact[];
  limit: string;
}

/** Calls of one tool, or other requests of one kind. */
export interface OperationShown {
  name: string;
  apart: boolean;
  rate: number;
  good: number;
  failed: number;
  errors: string;
  first_error: string;
  latency?: Percentiles;
  sent?: Percentiles;
  failed_latency?: Percentiles;
  distribution?: Distribution;
}

/** Packages and runtime of a subject's environment. */
export interface Packages {
  label: string;
  packages: string[];
}

/** Everything that the page shows of a run. */
export interface Page {
  head: Head;
  subjects: string[];
  targets: string[];
  cases: CaseShown[];
  pairs: number[];
  findings: FindingShown[];
  loads: LoadShown[];
  servers?: ServersShown;
  layers?: LayersShown;
  search?: SearchShown;
  comparison?: ComparisonShown;
  factors?: FactorsShown;
  tables: TableShown[];
  inside: InsideShown[];
  parts: Part[];
  phases: Part[];
  ledger_words: string;
  setup: Fact[];
  packages: Packages[];
  method: Fact[];
}

/** A key of a ledger or a waterfall, with its meaning. */
export interface Part {
  key: string;
  words: string;
}

/** Exact percentiles, in seconds. */
export interface Percentiles {
  count: number;
  mean: number;
  min: number;
  p50: number;
  p90: number;
  p99: number;
  p999: number;
  max: number;
}

/** An event that proves a finding, at its time in a call. */
export interface Pin {
  finding: number;
  number: number;
  at_ms: number;
  words: string;
}

/** A release that a bisection tested. */
export interface ProbeShown {
  version: string;
  verdict: "good" | "bad" | "untestable";
  medians_s: (number | null)[];
  note: string;
}

/** One round of one server. */
export interface RoundShown {
  rate: number;
  p50_s?: number;
  p99_s?: number;
  cpu_s?: number;
}

/** Measured values of one figure. */
export interface Sample {
  group: string;
  row: string;
  values: number[];
  unit: "s" | "per second";
}

/** A bisection. */
export interface SearchShown {
  words: string;
  operations: string[];
  probes: ProbeShown[];
  ordered: number[];
}

/** A load over time, as one list for each figure. A point stands for ``step_s`` seconds. */
export interface Series {
  step_s: number;
  at_s: number[];
  ok: number[];
  errors: number[];
  due: number[];
  p50_s: (number | null)[];
  p90_s: (number | null)[];
  p99_s: (number | null)[];
  max_s: (number | null)[];
  users: number[];
  busy: number[];
  warm_up: number;
}

/** One server under the same load as the others. */
export interface ServerShown {
  name: string;
  rate?: number;
  ratio: string;
  failed: number;
  rounds: RoundShown[];
  latency?: Percentiles;
  cpu_s?: number;
  rss_bytes?: number;
  operations: OperationShown[];
  remarks: string[];
  program: string;
}

/** A comparison of servers. */
export interface ServersShown {
  workload: string;
  open: boolean;
  servers: ServerShown[];
  floor?: ServerShown;
  conditions: string[];
}

/** A part of a stacked bar. */
export interface Share {
  key: string;
  seconds: number;
}

/** Data of the page: a run, or the mark that `mcpace ui` serves the page. */
export interface Shell {
  view: "run" | "served";
  page?: Page;
}

/** Summary of the trials. */
export interface SummaryShown {
  first_s: number;
  median_s: number;
  mean_s: number;
  min_s: number;
  max_s: number;
}

/** A small table in words; the first column names the rows. */
export interface TableShown {
  title: string;
  where: string;
  columns: string[];
  rows: string[][];
  notes: string[];
  has_remarks: boolean;
  bar_column?: number;
  bars: number[];
}

/** A limit that the user set. */
export interface Threshold {
  text: string;
  met: boolean;
  words: string;
}

/** A part of the time inside a tool. */
export interface TimeRowShown {
  kind: "dependency" | "own" | "library" | "waiting" | "others" | "rest";
  time_s: number;
  share: string;
  words: string;
}

/** An interval in which a call only waited: no request, no work of the server, no reply. */
export interface Wait {
  from_ms: number;
  to_ms: number;
  kind: "open" | "nothing";
  words: string;
}

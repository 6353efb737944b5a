//! Instrumented transport: the recorder between any client and server, and our own client. Both turn sockets and pipes
//! into [`mcpace_record::Event`]s on one clock.
//!
//! Design constraint: no reply is held back and nothing is judged here. Stamps are taken where bytes are read from or
//! handed to a socket; parsing, redaction and writing follow after the bytes have been passed on.

pub mod client;
mod clock;
#[cfg(target_os = "linux")]
mod descendants;
mod dial;
mod end_signals;
mod error;
mod event_sink;
mod flight_ring;
mod headers;
mod lock;
mod observe;
mod private;
mod process_watcher;
mod processor_clock;
pub mod recorder;
mod sampling_thread;
mod socket_diagnostics;
mod socket_options;
mod socket_watcher;
mod span_receiver;
mod stack_sampler;
mod stdio_lines;
pub mod stdio_recorder;
mod tap;
mod trace;
mod traffic_metrics;

pub use clock::monotonic_now;
pub(crate) use dial::{Dialer, Origin, Stream};
pub use error::NetError;
pub use event_sink::{Sink, SinkOptions};
pub use flight_ring::RingOptions;
pub(crate) use observe::{ReplyObserver, RequestObserver};
pub use private::create_private;
pub use process_watcher::ProcessWatcher;
pub use socket_watcher::SocketWatcher;
pub use span_receiver::SpanReceiver;
pub use stack_sampler::StackSampler;
pub use traffic_metrics::{DurationSeries, ExchangeCount, Exemplar, TrafficMetrics, TrafficSnapshot};

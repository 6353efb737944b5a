//! Traces that the instruments begin.

use mcpace_record::TraceContext;

/// A trace that no other program knows.
pub(crate) fn begin_trace() -> TraceContext {
    // Zeros are no ids.
    TraceContext { trace: rand::random::<u128>() | 1, span: rand::random::<u64>() | 1 }
}

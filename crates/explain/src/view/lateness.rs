//! When the instrument itself was late.

use mcpace_record::Nanos;

use super::Stamp;

/// A thread of the instrument that came to run later than it was due.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    /// When it came to run.
    pub at: Stamp,
    /// How much later than it was due.
    pub by: Nanos,
    /// Processor time that it used itself meanwhile.
    pub busy: Nanos,
}

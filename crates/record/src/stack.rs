//! Stacks of threads, as a sampler sees them.

use serde::{Deserialize, Serialize};

/// Number of a stack in its recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StackId(pub u64);

/// One function call in a stack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StackFrame {
    /// Name of the function, qualified by its class where the interpreter tells: `AsyncClient.__init__`.
    pub function: String,
    /// Path of the source file, or the name that the interpreter gives to code without one.
    pub file: String,
    /// Line that was being executed; 0 where it is unknown.
    pub line: u32,
}

/// A lock that a thread holds or waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThreadLock {
    /// The thread holds the lock of its interpreter.
    HoldsInterpreter,
    /// The thread waits in the kernel until another thread frees a lock (futex(2)).
    Waits,
    /// The thread waits on a futex with a time limit. CPython waits for the interpreter's lock in this way.
    WaitsLimited,
}

impl StackFrame {
    pub(crate) fn memory_size(&self) -> usize {
        size_of::<Self>() + self.function.len() + self.file.len()
    }
}

//! `lock-wait`: threads of a tool's calls wait for a lock, or for the interpreter, that other threads hold.
//!
//! Seen in sampled stacks with the state of each thread: the interpreter tells which thread holds its lock, and the system
//! tells which threads wait for a lock. The threads take turns, so that more calls at a time make each call longer.

use super::LockWait;
use super::contention_finding::find_contentions;
use crate::SourceLine;
use crate::findings::scene::Scene;
use crate::findings::{Cause, Disproof, Finding};
use crate::inside::{LockKind, lock_wait_of};

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    find_contentions(
        scene,
        lock_wait_of,
        |tool, waits, times| {
            let holder = waits.holder.as_ref().map(SourceLine::of_call);
            Cause::LockWait(LockWait {
                tool: tool.to_owned(),
                interpreter: waits.kind == LockKind::Interpreter,
                threads: waits.threads,
                line: SourceLine::of_call(&waits.line),
                holder_line: holder.as_ref().map(|line| line.line),
                holder_file: holder.map(|line| line.file),
                times,
            })
        },
        Disproof::CallOneAtATime,
    )
}

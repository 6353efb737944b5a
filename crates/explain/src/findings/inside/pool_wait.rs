//! `pool-wait`: threads of a tool's calls wait for a connection of a pool that other threads hold.
//!
//! Seen in sampled stacks: a thread waits within the function of a library that takes a connection from its pool. Tasks of
//! `asyncio` have no thread that waits, so that their waits are not seen here.

use super::PoolWait;
use super::contention_finding::find_contentions;
use crate::SourceLine;
use crate::findings::scene::Scene;
use crate::findings::{Cause, Disproof, Finding};
use crate::inside::pool_wait_of;

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    find_contentions(
        scene,
        |view, thread, _| pool_wait_of(view, thread),
        |tool, waits, times| {
            Cause::PoolWait(PoolWait {
                tool: tool.to_owned(),
                pool: waits.kind.to_owned(),
                line: SourceLine::of_call(&waits.line),
                times,
            })
        },
        Disproof::RaiseConnectionLimit,
    )
}

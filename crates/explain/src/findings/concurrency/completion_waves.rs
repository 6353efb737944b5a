//! `completion-waves`: equal calls end in waves of N, one call's time apart: a cap on workers or threads, and N is its size
//! (mcp-go #529; 40 in the thread pools of Python's frameworks).

use super::CompletionWaves;
use super::charge::charge_episodes;
use crate::findings::scene::Scene;
use crate::findings::{Cause, Code, Disproof, Finding};

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let held = charge_episodes(scene, Code::CompletionWaves);
    held.into_iter()
        .map(|(operation, held)| {
            let context = CompletionWaves { at_a_time: held.at_a_time, held: held.requests, longest: held.longest };
            held.into_finding(scene, Cause::CompletionWaves(context), operation, Disproof::RaiseWorkerLimit)
        })
        .collect()
}

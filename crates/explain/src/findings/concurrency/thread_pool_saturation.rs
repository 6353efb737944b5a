//! `thread-pool-saturation`: the server has N requests in work, and accepts others without beginning a reply until one of
//! the N ends (java-sdk #859). Unlike `completion-waves`, requests that need no tool wait too.

use super::ThreadPoolSaturation;
use super::charge::charge_episodes;
use crate::findings::scene::Scene;
use crate::findings::{Cause, Code, Disproof, Finding};

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let held = charge_episodes(scene, Code::ThreadPoolSaturation);
    held.into_iter()
        .map(|(operation, held)| {
            let context =
                ThreadPoolSaturation { at_a_time: held.at_a_time, held: held.requests, longest: held.longest };
            held.into_finding(scene, Cause::ThreadPoolSaturation(context), operation, Disproof::RaiseWorkerLimit)
        })
        .collect()
}

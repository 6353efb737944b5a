//! `blocked-event-loop`: requests that have nothing to do with a tool, even a ping, wait until it ends (python-sdk #1646).

use super::BlockedEventLoop;
use super::charge::charge_episodes;
use crate::findings::scene::Scene;
use crate::findings::{Cause, Code, Disproof, Finding};

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let held = charge_episodes(scene, Code::BlockedEventLoop);
    held.into_iter()
        .map(|(operation, held)| {
            let context = BlockedEventLoop {
                held: held.requests,
                without_tool: held.without_tool,
                across_sessions: held.is_decided(),
                longest: held.longest,
            };
            held.into_finding(scene, Cause::BlockedEventLoop(context), operation, Disproof::CallToolThatOnlyWaits)
        })
        .collect()
}

//! `serial-session`: requests of one session run one after another though the tools don't block (python-sdk #188: mcp
//! 1.2.0).

use super::SerialSession;
use super::charge::charge_episodes;
use crate::findings::scene::Scene;
use crate::findings::{Cause, Code, Disproof, Finding};

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let held = charge_episodes(scene, Code::SerialSession);
    held.into_iter()
        .map(|(operation, held)| {
            let context = SerialSession { held: held.requests, longest: held.longest };
            held.into_finding(scene, Cause::SerialSession(context), operation, Disproof::CallFromSecondSession)
        })
        .collect()
}

//! Adds up the episodes of one cause by operation.

use mcpace_record::Nanos;

use super::Episode;
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Alternative, Cause, Code, Disproof, Finding, Level, ProofRole, Reason};

/// Time and requests that one operation lost to a cause.
#[derive(Default)]
pub(super) struct OperationLoss {
    pub(super) tally: Tally,
    pub(super) requests: u64,
    /// Requests among these that called no tool.
    pub(super) without_tool: u64,
    /// Tools that ran at a time, in the first episode.
    pub(super) at_a_time: u64,
    pub(super) longest: Nanos,
    sure: Option<(Level, Reason)>,
    other: Option<Alternative>,
    decided: bool,
}

/// Charges all episodes of `code`.
pub(super) fn charge_episodes<'s>(scene: &mut Scene<'s, '_>, code: Code) -> Vec<(Option<&'s str>, OperationLoss)> {
    let episodes: Vec<Episode> = scene.episodes().iter().filter(|episode| episode.code == code).cloned().collect();
    let mut operations: ByOperation<'_, OperationLoss> = ByOperation::new();
    for episode in &episodes {
        for wait in &episode.waits {
            let request = &scene.view.exchanges[wait.request];
            let time = wait.time.min(wait.answered.at.since(wait.asked.at));
            let time = scene.claim_stretch(request.call, wait.asked.at, wait.asked.at + time);
            let held = operations.value_of(scene.operation_of(request));
            held.tally.add_cost(request.call, time, 0, 0);
            held.tally.prove_events(&[
                (ProofRole::RequestReceived, Some(wait.asked)),
                (ProofRole::OtherAnswered, Some(wait.released)),
                (ProofRole::Answered, Some(wait.answered)),
            ]);
            held.requests += 1;
            held.without_tool += u64::from(!request.requests("tools/call"));
            held.longest = held.longest.max(wait.time);
            held.note_episode(episode);
        }
    }
    operations.into_iter().filter(|(_, held)| held.requests > 0).collect()
}

impl OperationLoss {
    /// The surest episode speaks for all: what decides there decides for the others.
    fn note_episode(&mut self, episode: &Episode) {
        if self.at_a_time == 0 {
            self.at_a_time = episode.at_a_time as u64;
        }
        if self.sure.is_none_or(|(level, _)| episode.level > level) {
            self.sure = Some((episode.level, episode.reason));
        }
        match episode.other {
            Some(other) if !self.decided => self.other = Some(other),
            Some(_) => {}
            None => (self.other, self.decided) = (None, true),
        }
    }

    /// Whether nothing else would look the same.
    pub(super) fn is_decided(&self) -> bool {
        self.decided
    }

    pub(super) fn into_finding(
        self,
        scene: &Scene<'_, '_>,
        cause: Cause,
        operation: Option<&str>,
        disproof: Disproof,
    ) -> Finding {
        let (level, reason) = self.sure.unwrap_or((Level::Low, Reason::SeenOnce));
        let severity = self.tally.median_severity();
        let finding =
            self.tally.into_finding(cause, operation, severity, scene.confidence_for(level, reason), disproof);
        match self.other {
            Some(alternative) => finding.or_alternative(alternative),
            None => finding,
        }
    }
}

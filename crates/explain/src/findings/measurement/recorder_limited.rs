//! `recorder-limited`: the recorder's own threads were at work for a good part of what was measured, so that they stamped
//! and passed on late.

use super::RecorderLimited;
use super::lateness::Lateness;
use crate::findings::scene::Scene;
use crate::findings::{Cause, Disproof, Finding, Level, Reason, Severity};

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let Some(late) = Lateness::from_view(scene.view).filter(Lateness::is_own_work) else { return Vec::new() };
    let operations = late.charge_late(scene);
    let found = operations.into_iter().map(|(operation, mut tally)| {
        late.prove_late(&mut tally);
        let context = RecorderLimited { times: late.late_times(), late: late.total, of: late.of };
        let confidence = scene.confidence_for(Level::High, Reason::InstrumentBusy);
        let cause = Cause::RecorderLimited(context);
        // No other time of this recording can be believed.
        tally.into_finding(cause, operation, Severity::High, confidence, Disproof::RepeatWithoutRecorder)
    });
    found.collect()
}

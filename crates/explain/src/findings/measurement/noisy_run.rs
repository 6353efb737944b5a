//! `noisy-run`: the instrument's threads were kept from running for a good part of what was measured: the machine had other
//! things to do, and so, probably, for the client and the server.

use super::NoisyRun;
use super::lateness::Lateness;
use crate::findings::scene::Scene;
use crate::findings::{Cause, Disproof, Finding, Level, Reason, Severity};

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let Some(late) = Lateness::from_view(scene.view).filter(|late| !late.is_own_work()) else { return Vec::new() };
    let operations = late.charge_late(scene);
    let found = operations.into_iter().map(|(operation, mut tally)| {
        late.prove_late(&mut tally);
        let context = NoisyRun { times: late.late_times(), late: late.total, of: late.of };
        let confidence = scene.confidence_for(Level::High, Reason::InstrumentKept);
        let cause = Cause::NoisyRun(context);
        tally.into_finding(cause, operation, Severity::High, confidence, Disproof::RepeatOnQuietMachine)
    });
    found.collect()
}

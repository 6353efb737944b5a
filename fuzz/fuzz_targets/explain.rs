//! The explanation of any recording: no panic, parts that add up to their call, evidence and costs within what was
//! recorded, and the same from memory as from a file that is read event by event.
//!
//! The input is a recording's lines; those that are no event are left out, so that few changes make a file of no use.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpace_explain::{
    Explained, Finding, Ledger, call_ledgers, call_waterfall, explain_recording, explained_file, find_causes,
};
use mcpace_record::{Event, Instrument, Reader, Recording, RecordingHead, Writer};

const INSTRUMENTS: [Instrument; 3] = [Instrument::Recorder, Instrument::StdioRecorder, Instrument::Client];

fuzz_target!(|input: &[u8]| {
    let Some((&instrument, lines)) = input.split_first() else { return };
    let head = RecordingHead::bare(INSTRUMENTS[usize::from(instrument) % INSTRUMENTS.len()]);
    let events = lines.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Event>(line).ok());
    let recording = Recording::new(head, events.collect());

    let told = explain_recording(&recording, None);
    let ledgers = call_ledgers(&recording);
    ledgers.iter().for_each(adds_up);
    agrees(&told, &ledgers);
    points_within(&told.findings, &recording);
    costs_no_more_than_the_calls(&told.findings, &ledgers);
    assert_eq!(find_causes(&recording), told.findings);
    for shown in &told.waterfalls {
        assert_eq!(call_waterfall(&recording, shown.call).as_ref(), Some(shown));
    }
    serde_json::to_string(&told.findings).expect("they are written as JSON");

    let mut writer = Writer::new(Vec::new(), &recording.head).expect("a vector takes all");
    recording.events().iter().for_each(|event| writer.write(event).expect("a vector takes all"));
    let file = writer.finish().expect("a vector takes all");
    let read = explained_file(&mut Reader::events(file.as_slice()).expect("our writer wrote it"), None);
    let read = read.expect("our writer wrote it");
    agrees(&read, &ledgers);
    assert_eq!((read.findings, read.waterfalls, read.events), (told.findings, told.waterfalls, told.events));

    // The recording is used as both the one in front of a gateway and the one behind it.
    points_within(&explain_recording(&recording, Some(&recording)).findings, &recording);
});

fn adds_up(ledger: &Ledger) {
    let parts = ledger.parts;
    let parts = [
        parts.client_send,
        parts.connect,
        parts.request,
        parts.server,
        parts.response,
        parts.client_receive,
        parts.unaccounted,
    ];
    // A wider type than that of times, in which a part that had underflowed would be huge.
    let sum: u128 = parts.iter().map(|part| u128::from(part.0)).sum();
    assert_eq!(sum, took(ledger));
    let mut cursor = ledger.start;
    for segment in ledger.segments.iter() {
        assert_eq!(segment.from, cursor);
        assert!(segment.to > segment.from);
        cursor = segment.to;
    }
    assert_eq!(cursor, ledger.end);
    if let Some(split) = &ledger.split {
        let layers = [split.transport, split.dispatch, split.service, split.rest];
        let sum: u128 = layers.iter().map(|layer| u128::from(layer.0)).sum();
        assert_eq!(sum, u128::from(ledger.parts.server.0));
    }
}

/// Asserts that the short accounts of all calls agree with their ledgers.
fn agrees(told: &Explained, ledgers: &[Ledger]) {
    assert_eq!(told.accounts.len(), ledgers.len());
    for ledger in ledgers {
        let account = told.accounts.get(ledger.call).expect("each call has one");
        assert_eq!((account.start, account.end, account.parts), (ledger.start, ledger.end, ledger.parts));
        assert_eq!(told.accounts.outcome(account), ledger.outcome.as_ref());
    }
}

fn points_within(found: &[Finding], recording: &Recording) {
    for finding in found {
        assert!(finding.evidence.iter().all(|evidence| evidence.event < recording.events().len()), "{finding:?}");
    }
}

/// Asserts that no time of a call is charged twice, so that the costs don't exceed the call's duration.
fn costs_no_more_than_the_calls(found: &[Finding], ledgers: &[Ledger]) {
    for ledger in ledgers {
        let costs = found.iter().flat_map(|finding| &finding.calls).filter(|cost| cost.call == ledger.call);
        let charged: u128 = costs.map(|cost| u128::from(cost.time.0)).sum();
        assert!(charged <= took(ledger), "{:?} of {} is charged with {charged}", ledger.call, took(ledger));
    }
}

fn took(ledger: &Ledger) -> u128 {
    u128::from(ledger.end.0 - ledger.start.0)
}

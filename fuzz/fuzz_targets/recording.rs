//! Recordings: any file, compressed or plain, is read or refused without a panic. Reading it whole and event by event
//! gives the same result. A recording that was read and written again is unchanged. A truncated file is never taken for
//! a complete one.
#![no_main]

use std::io::{self, Read};

use libfuzzer_sys::fuzz_target;
use mcpace_record::{Event, Reader, RecordError, Recording, Writer};

fuzz_target!(|input: &[u8]| {
    let Some((&step, file)) = input.split_first() else { return };
    let in_steps = || InSteps { rest: file, step: usize::from(step) + 1 };
    let whole = Reader::read(in_steps());
    agrees(&one_by_one(in_steps()), &whole);
    // Where a file has several faults, the size of the reads determines which one is found first.
    assert_eq!(Reader::read(file).ok(), whole.as_ref().ok().cloned());
    let Ok(whole) = whole else { return };
    let written = written(&whole);
    let again = Reader::read(written.as_slice()).expect("our writer wrote it");
    assert_eq!((&again.head, again.events()), (&whole.head, whole.events()));
    assert!(!again.partial);
    let cut = written.len() * usize::from(step) / 256;
    match Reader::read(&written[..cut]) {
        Ok(cut) => {
            assert!(cut.partial);
            // The events of the file are in the order of time, so those that were read are the first ones.
            assert_eq!(cut.events(), &whole.events()[..cut.events().len()]);
        }
        Err(error) => assert_eq!(error.code(), "not-a-recording", "{error}"),
    }
});

/// Asserts that reading event by event gives the result of reading the whole file, unless the events are too far from
/// the order of time.
fn agrees(one_by_one: &Result<Recording, RecordError>, whole: &Result<Recording, RecordError>) {
    match (one_by_one, whole) {
        (Err(RecordError::OutOfOrder), _) => {}
        (Ok(events), Ok(whole)) => assert_eq!(events, whole),
        (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string()),
        (one, other) => panic!("event by event: {one:?}; whole: {other:?}"),
    }
}

fn one_by_one(source: InSteps<'_>) -> Result<Recording, RecordError> {
    let mut events = Reader::events(source)?;
    let read = events.by_ref().collect::<Result<Vec<Event>, RecordError>>()?;
    assert!(events.next().is_none(), "they go on after their end");
    assert!(read.is_sorted_by_key(|event| event.at));
    let mut recording = Recording::new(events.head().clone(), read);
    recording.partial = events.partial();
    Ok(recording)
}

fn written(recording: &Recording) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &recording.head).expect("a vector takes all");
    recording.events().iter().for_each(|event| writer.write(event).expect("a vector takes all"));
    writer.finish().expect("a vector takes all")
}

/// A reader that returns at most `step` bytes at once.
struct InSteps<'i> {
    rest: &'i [u8],
    step: usize,
}

impl Read for InSteps<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = self.step.min(buffer.len());
        (&mut self.rest).take(most as u64).read(buffer)
    }
}

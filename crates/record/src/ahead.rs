//! Reading ahead: lines are read on one thread and taken apart on two others, while the events before them are taken. Taking
//! them apart is most of the work.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use crate::lines::{LineBatch, Lines};
use crate::{Event, Events, RecordError};

/// Threads that take lines apart, batch by batch in turns.
const APART: usize = 2;

/// Batches that wait for each thread.
const WAITING: usize = 2;

/// The events of one batch with their sizes, and whether the file ends with half a line after them.
type Parsed = Result<(Vec<(u64, Event)>, bool), RecordError>;

impl Events<'_> {
    /// Hands every event to `take`, in their order, until that fails. Tells the same as iterating, and is sooner done.
    ///
    /// # Errors
    /// Those of reading, and that of `take`.
    pub fn each(&mut self, mut take: impl FnMut(&Event) -> Result<(), RecordError>) -> Result<(), RecordError> {
        let Events { lines, order } = self;
        let reading = &mut *lines;
        let half = thread::scope(|scope| {
            let (emptied, empty) = channel();
            let (mut full, mut parsed, mut taken) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..APART {
                let (to, batches) = sync_channel(WAITING);
                let (apart, from) = sync_channel(WAITING);
                let (back, freed) = channel();
                let emptied = emptied.clone();
                scope.spawn(move || take_apart(&batches, &emptied, &apart, &freed));
                full.push(to);
                parsed.push(from);
                taken.push(back);
            }
            scope.spawn(move || read_batches(reading, &full, &empty));
            let mut half = false;
            let mut done = Vec::new();
            // In the turns in which they were read, until one has no more: then no other has.
            for (parsed, taken) in parsed.iter().zip(&taken).cycle() {
                let Ok(part) = parsed.recv() else { break };
                let (mut events, cut) = part?;
                half |= cut;
                for (size, event) in events.drain(..) {
                    order.put_event(size, event)?;
                    while let Some(event) = order.next_of_many() {
                        take(&event)?;
                        done.push(event);
                    }
                }
                // Back to where its memory came from; at the end nobody waits for it.
                drop(taken.send(std::mem::take(&mut done)));
            }
            while let Some(event) = order.next_event() {
                take(&event)?;
            }
            Ok::<bool, RecordError>(half)
        })?;
        lines.partial |= half;
        Ok(())
    }
}

/// Ends with the lines, with the first error, or when nobody takes them any more.
fn read_batches(
    lines: &mut Lines<'_>,
    full: &[SyncSender<Result<LineBatch, RecordError>>],
    empty: &Receiver<LineBatch>,
) {
    for full in full.iter().cycle() {
        let mut batch = empty.try_recv().unwrap_or_default();
        let read = lines.fill_batch(&mut batch).map(|()| batch);
        let ended = read.as_ref().map_or(true, LineBatch::is_empty);
        if full.send(read).is_err() || ended {
            return;
        }
    }
}

/// Ends as [`read_batches`] does, whose batches it takes apart and hands back by `emptied`.
fn take_apart(
    batches: &Receiver<Result<LineBatch, RecordError>>,
    emptied: &Sender<LineBatch>,
    apart: &SyncSender<Parsed>,
    freed: &Receiver<Vec<Event>>,
) {
    for batch in batches {
        freed.try_iter().for_each(drop);
        let parsed = batch.and_then(|batch| {
            let mut events = Vec::new();
            let half = batch.parse_events(&mut events)?;
            // At the end nobody waits for it.
            drop(emptied.send(batch));
            Ok((events, half))
        });
        let failed = parsed.is_err();
        if apart.send(parsed).is_err() || failed {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{CallId, CallOutcome, Event, EventKind, Instrument, Nanos, Reader, RecordError, RecordingHead, Writer};

    /// More than a window and several batches, some out of their order.
    fn file() -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), &RecordingHead::bare(Instrument::Recorder)).unwrap();
        for call in 0..12_000_u64 {
            let at = Nanos(1_000 + call - call % 7);
            let kind = EventKind::CallEnd { call: CallId(call), outcome: CallOutcome::Ok };
            writer.write(&Event { at, kind }).unwrap();
        }
        writer.finish().unwrap()
    }

    fn plain(file: &[u8]) -> Vec<u8> {
        zstd::decode_all(file).unwrap()
    }

    /// Results of reading one by one and of reading ahead: events, the final error, whether the end is missing.
    fn both(file: &[u8]) -> [(Vec<Event>, Option<String>, bool); 2] {
        let mut events = Reader::events(file).unwrap();
        let (mut read, mut error) = (Vec::new(), None);
        for event in events.by_ref() {
            match event {
                Ok(event) => read.push(event),
                Err(failed) => error = Some(failed.to_string()),
            }
        }
        let one_by_one = (read, error, events.partial());
        let (mut events, mut read) = (Reader::events(file).unwrap(), Vec::new());
        let ended = events.each(|event| {
            read.push(event.clone());
            Ok(())
        });
        [one_by_one, (read, ended.err().map(|error| error.to_string()), events.partial())]
    }

    #[test]
    fn what_is_read_ahead_is_what_is_read_one_by_one() {
        let file = file();
        let [one_by_one, ahead] = both(&file);
        assert_eq!((ahead.0.len(), &ahead.1, ahead.2), (12_000, &None, false));
        assert_eq!(one_by_one, ahead);
        let text = plain(&file);
        for cut in [file.len() - 1, file.len() / 2] {
            let [one_by_one, ahead] = both(&file[..cut]);
            assert!(ahead.2);
            assert_eq!(one_by_one, ahead);
        }
        for cut in [text.len() - 1, text.len() - 9, text.len() / 2] {
            let [one_by_one, ahead] = both(&text[..cut]);
            assert_eq!(one_by_one, ahead, "cut at {cut}");
        }
    }

    #[test]
    fn what_can_not_be_read_ends_it_with_the_same_words() {
        let text = String::from_utf8(plain(&file())).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines[9_000] = "{}";
        let [one_by_one, ahead] = both((lines.join("\n") + "\n").as_bytes());
        assert!(ahead.1.as_ref().is_some_and(|words| words.contains("9001")), "{:?}", ahead.1);
        assert_eq!(one_by_one.1, ahead.1);
        let late = r#"{"at":0,"event":{"call-end":{"call":0,"outcome":"ok"}}}"#;
        lines[9_000] = late;
        let [one_by_one, ahead] = both((lines.join("\n") + "\n").as_bytes());
        assert!(ahead.1.is_some() && one_by_one.1 == ahead.1);
    }

    #[test]
    fn who_takes_no_more_ends_it() {
        let file = file();
        let mut left = 5;
        let ended = Reader::events(file.as_slice()).unwrap().each(|_| {
            left -= 1;
            if left == 0 { Err(RecordError::OutOfOrder) } else { Ok(()) }
        });
        assert!(matches!(ended, Err(RecordError::OutOfOrder)) && left == 0);
    }
}

//! Reading ahead: the text of events is taken apart on a thread of its own while those before them are joined. Both take
//! about as long.

use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

use mcpace_record::{Event, Events, RecordError};

/// Events that pass at a time.
const BATCH: usize = 1024;

/// Batches that wait.
const WAITING: usize = 4;

/// Hands every event to `join`, in their order, until that fails.
pub(super) fn read_ahead(
    events: &mut Events<'_>,
    mut join: impl FnMut(&Event) -> Result<(), RecordError>,
) -> Result<(), RecordError> {
    thread::scope(|scope| {
        let (full, batches) = sync_channel(WAITING);
        let (joined, empty) = channel();
        scope.spawn(move || read(events, &full, &empty));
        for batch in batches {
            let batch: Vec<Event> = batch?;
            batch.iter().try_for_each(&mut join)?;
            // Back to where its memory came from; at the end nobody waits for it.
            let _ = joined.send(batch);
        }
        Ok(())
    })
}

/// Ends with the events, with the first error, or when nobody takes them any more.
fn read(events: &mut Events<'_>, full: &SyncSender<Result<Vec<Event>, RecordError>>, empty: &Receiver<Vec<Event>>) {
    loop {
        let mut batch = empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
        batch.clear();
        let mut failed = None;
        for event in events.by_ref().take(BATCH) {
            match event {
                Ok(event) => batch.push(event),
                Err(error) => failed = Some(error),
            }
        }
        let ended = batch.len() < BATCH;
        if full.send(failed.map_or(Ok(batch), Err)).is_err() || ended {
            return;
        }
    }
}

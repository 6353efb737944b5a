//! A flight recorder's files: a folder of recordings of bounded size, in which the oldest make room for the newest.
//!
//! Design constraints. Several recorders may share a folder, because a host may start a server twice: each writes files
//! of its own, holds a lock on the file that it writes, and removes no locked file. Events never wait for the
//! disk: where a file can't be written, events are dropped and counted, the loss is reported once, and writing is tried
//! again after a while.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use mcpace_record::{Event, EventKind, RecordError, RecordingHead, Writer};

use crate::monotonic_now;
use crate::private::{create_new_private, create_private_folder};

/// How the names of the files end.
const ENDING: &str = ".jsonl.zst";

/// Files of a folder. A host that starts a server each minute would else leave files without end.
const MOST_FILES: usize = 1_000;

/// Parts of the limit that one file may have at the most.
const FILE_PARTS: u64 = 32;

/// Parts of the limit after which the room of the folder is looked at again.
const CHECK_PARTS: u64 = 64;

/// From a failure to write until writing is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// Where a flight recorder keeps its recordings.
#[derive(Clone, Debug)]
pub struct RingOptions {
    /// Its folder, one for each server. It is made where it is missing, for its owner alone.
    pub folder: PathBuf,
    /// Bytes of all files of the folder together.
    pub limit: u64,
    /// How long events may wait in memory. A failed call is written at once.
    pub period: Duration,
    /// Reports a sentence to the user.
    pub report: fn(&str),
}

impl RingOptions {
    /// The usual period: rare writes compress well and cost little.
    #[must_use]
    pub fn new(folder: PathBuf, limit: u64, report: fn(&str)) -> Self {
        Self { folder, limit, period: Duration::from_secs(1), report }
    }
}

/// Writes events to the newest file of a folder.
pub(crate) struct FlightRing {
    options: RingOptions,
    head: RecordingHead,
    file: Option<Writer<CountedFile>>,
    /// Bytes of the file at which the room of the folder is looked at again.
    check_at: u64,
    /// Events that were dropped since the last one that was written.
    lost: u64,
    retry_at: Option<Instant>,
}

impl FlightRing {
    /// Opens the first file. A failure is reported, and is no error.
    pub(crate) fn open(options: RingOptions, head: RecordingHead) -> Self {
        let mut ring = Self { options, head, file: None, check_at: 0, lost: 0, retry_at: None };
        if let Err(error) = ring.start_file() {
            ring.suspend(&error);
        }
        ring
    }

    /// Appends events and makes them readable.
    pub(crate) fn write_batch(&mut self, batch: &[Event]) {
        if batch.is_empty() {
            return;
        }
        for (index, event) in batch.iter().enumerate() {
            if let Err(error) = self.write_event(event) {
                self.lost += (batch.len() - index) as u64;
                self.suspend(&error);
                return;
            }
        }
        if let Some(Err(error)) = self.file.as_mut().map(Writer::flush) {
            self.lost += batch.len() as u64;
            self.suspend(&error);
        }
    }

    /// Completes the newest file.
    pub(crate) fn finish(mut self) {
        self.retry_at = None;
        let end = if self.lost > 0 { self.start_file() } else { Ok(()) };
        let completed = end.and_then(|()| self.file.take().map_or(Ok(()), |file| file.finish().map(drop)));
        if let Err(error) = completed {
            (self.options.report)(&format!("the flight recorder's newest recording is incomplete: {error}"));
        }
    }

    fn write_event(&mut self, event: &Event) -> Result<(), RecordError> {
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            self.lost += 1;
            return Ok(());
        }
        let written = self.file.as_ref().map(|file| file.get_ref().written);
        match written {
            Some(written) if written < self.check_at => {}
            Some(written) if written < self.make_room()? => self.check_at = written + self.check_step(),
            Some(_) => {
                if let Some(file) = self.file.take() {
                    file.finish()?;
                }
                self.start_file()?;
            }
            None => self.start_file()?,
        }
        self.file.as_mut().map_or(Ok(()), |file| file.write(event))
    }

    /// Begins a file, whose first event tells how many were lost before it.
    fn start_file(&mut self) -> Result<(), RecordError> {
        create_private_folder(&self.options.folder)?;
        self.make_room()?;
        let mut file = Writer::new(CountedFile { file: create_locked(&self.options.folder)?, written: 0 }, &self.head)?;
        if self.lost > 0 {
            file.write(&Event { at: monotonic_now(), kind: EventKind::EventsLost { count: self.lost } })?;
            file.flush()?;
        }
        self.check_at = self.check_step();
        (self.file, self.lost, self.retry_at) = (Some(file), 0, None);
        Ok(())
    }

    /// Gives up the file after a failure. The part that was written stays readable.
    fn suspend(&mut self, error: &RecordError) {
        self.file = None;
        if self.retry_at.is_none() {
            let folder = self.options.folder.display();
            (self.options.report)(&format!(
                "the flight recorder can't write to {folder} ({error}): the server goes on, and its calls are not recorded"
            ));
        }
        self.retry_at = Some(Instant::now() + RETRY_AFTER);
    }

    fn check_step(&self) -> u64 {
        self.options.limit / CHECK_PARTS
    }

    /// Removes the oldest files that nobody writes, so that each file in use may grow to the returned size.
    fn make_room(&self) -> io::Result<u64> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.options.folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().ends_with(ENDING) && entry.file_type()?.is_file() {
                files.push((entry.path(), entry.metadata().map_or(0, |data| data.len())));
            }
        }
        files.sort();
        // The file of this recorder is in use, too.
        let (in_use, mut free): (Vec<_>, Vec<_>) = files.into_iter().partition(|(path, _)| is_in_use(path));
        let writers = in_use.len() as u64 + u64::from(self.file.is_none());
        let largest = (self.options.limit / FILE_PARTS).min(self.options.limit / (2 * writers.max(1)));
        // A file is seen to be too large after a part of its growth only.
        let mut size = writers * (largest + self.check_step()) + free.iter().map(|(_, size)| size).sum::<u64>();
        let mut count = free.len() + in_use.len();
        free.reverse();
        while let Some((path, freed)) = free.pop_if(|_| size > self.options.limit || count >= MOST_FILES) {
            // Another recorder may have removed it already.
            let _ = std::fs::remove_file(path);
            size -= freed;
            count -= 1;
        }
        Ok(largest)
    }
}

/// A file that counts its bytes.
struct CountedFile {
    file: File,
    written: u64,
}

impl Write for CountedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let size = self.file.write(bytes)?;
        self.written += size as u64;
        Ok(size)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Creates a file whose name tells its time, so that names sort by age. Follows no link and replaces no file.
fn create_locked(folder: &Path) -> io::Result<File> {
    let time = humantime::format_rfc3339_micros(SystemTime::now()).to_string().replace(['-', ':'], "");
    let path = folder.join(format!("{time}-{}{ENDING}", std::process::id()));
    let file = create_new_private(&path)?;
    file.try_lock()?;
    Ok(file)
}

/// Whether a recorder writes the file.
fn is_in_use(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Mutex;

    use mcpace_record::{Body, Digest, ExchangeId, Instrument, Reader, Recording, Side};

    use super::*;

    const LIMIT: u64 = 1_000_000;

    static REPORTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

    fn report(sentence: &str) {
        REPORTED.lock().unwrap().push(sentence.to_owned());
    }

    fn reported(folder: &Path) -> usize {
        let place = folder.display().to_string();
        REPORTED.lock().unwrap().iter().filter(|sentence| sentence.contains(&place)).count()
    }

    fn ring(folder: &Path) -> FlightRing {
        FlightRing::open(
            RingOptions::new(folder.to_owned(), LIMIT, report),
            RecordingHead::bare(Instrument::StdioRecorder),
        )
    }

    /// Events whose bodies can't be compressed much.
    fn events(count: u64) -> Vec<Event> {
        let event = |ex: u64| {
            let text = (0..200).map(|_| format!("{:016x}", rand::random::<u64>())).collect();
            let (side, digest, body) = (Side::Front, Digest::new(0), Some(Body { text, cut: false }));
            let kind = EventKind::RequestEnd { side, ex: ExchangeId(ex), bytes: 0, digest, messages: Vec::new(), body };
            Event { at: monotonic_now(), kind }
        };
        (0..count).map(event).collect()
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    fn size(folder: &Path) -> u64 {
        files(folder).iter().map(|file| file.metadata().unwrap().len()).sum()
    }

    fn read(path: &Path) -> Recording {
        Reader::read(File::open(path).unwrap()).unwrap()
    }

    #[test]
    fn the_folder_stays_below_its_limit_and_keeps_the_newest() {
        let folder = tempfile::tempdir().unwrap();
        let mut ring = ring(folder.path());
        let all = events(2_000);
        for batch in all.chunks(5) {
            ring.write_batch(batch);
            assert!(size(folder.path()) <= LIMIT, "{}", size(folder.path()));
        }
        ring.finish();
        assert!(size(folder.path()) > LIMIT / 2, "{}", size(folder.path()));
        let kept: Vec<Event> = files(folder.path()).iter().flat_map(|file| read(file).events().to_vec()).collect();
        assert_eq!(kept, all[all.len() - kept.len()..]);
        let modes: Vec<u32> =
            files(folder.path()).iter().map(|file| file.metadata().unwrap().permissions().mode() & 0o777).collect();
        assert!(modes.iter().all(|mode| *mode == 0o600), "{modes:?}");
    }

    #[test]
    fn recorders_of_one_folder_share_its_limit_and_remove_no_file_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let mut rings: Vec<FlightRing> = (0..6).map(|_| ring(folder.path())).collect();
        let first = files(folder.path())[0].clone();
        assert_eq!(files(folder.path()).len(), 6);
        for _ in 0..100 {
            for ring in rings.iter_mut().skip(1) {
                ring.write_batch(&events(2));
            }
            assert!(size(folder.path()) <= LIMIT, "{}", size(folder.path()));
        }
        assert!(first.exists());
        assert_eq!(read(&first).events(), &[]);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_reported_once_and_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("ring");
        std::fs::write(&place, "no folder").unwrap();
        let mut ring = ring(&place);
        ring.write_batch(&events(3));
        ring.write_batch(&events(4));
        assert_eq!(reported(&place), 1);
        std::fs::remove_file(&place).unwrap();
        ring.retry_at = Some(Instant::now());
        ring.write_batch(&events(5));
        ring.finish();
        let recording = read(&files(&place)[0]);
        assert_eq!((recording.events().len(), recording.lost()), (6, 7));
        assert_eq!(reported(&place), 1);
    }
}

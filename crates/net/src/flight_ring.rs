//! A flight recorder's files: a folder of recordings of bounded size, in which the oldest make room for the newest.
//!
//! Design constraints. Several recorders may share a folder, because a host may start a server twice: each writes files
//! of its own, and removes no file that another one writes. A recorder locks an empty file beside its recording, because
//! Windows lets nobody read a locked file. Events never wait for the disk: where a file can't be written, events are dropped
//! and counted, the loss is reported once, and writing is tried again after a while.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use mcpace_record::{Event, EventKind, RecordError, RecordingHead, Writer};

use crate::monotonic_now;
use crate::private::{create_new_private, create_private_folder};

/// How the names of the recordings end, and what the name of a recording's lock file has after it.
const ENDING: &str = ".jsonl.zst";
const LOCK_ENDING: &str = ".lock";

/// The least limit of a folder: a smaller one would begin a file for each event.
const LEAST_LIMIT: u64 = 64 * 1024;

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
    /// Bytes of all files of the folder together. Fewer than 64 KiB are taken for 64 KiB.
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
    file: Option<Writer<LockedFile>>,
    /// Bytes of the file at which the room of the folder is looked at again.
    check_at: u64,
    /// Events that were written to the file and may not be readable yet.
    unflushed: u64,
    /// Events that were dropped since the last one that was written.
    lost: u64,
    retry_at: Option<Instant>,
}

impl FlightRing {
    /// Opens the first file. A failure is reported, and is no error.
    pub(crate) fn open(mut options: RingOptions, head: RecordingHead) -> Self {
        options.limit = options.limit.max(LEAST_LIMIT);
        let mut ring = Self { options, head, file: None, check_at: 0, unflushed: 0, lost: 0, retry_at: None };
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
                self.lost += count_events(&batch[index..]);
                self.suspend(&error);
                return;
            }
        }
        match self.file.as_mut().map(Writer::flush) {
            Some(Err(error)) => self.suspend(&error),
            _ => self.unflushed = 0,
        }
    }

    /// Completes the newest file.
    pub(crate) fn finish(mut self) {
        self.retry_at = None;
        let end = if self.lost > 0 { self.start_file() } else { Ok(()) };
        let completed = end.and_then(|()| self.file.take().map_or(Ok(()), |file| file.finish().map(drop)));
        if let Err(error) = completed {
            let lost = match self.lost {
                0 => String::new(),
                lost => format!(" ({lost} events are missing)"),
            };
            (self.options.report)(&format!("the flight recorder's newest recording is incomplete{lost}: {error}"));
        }
    }

    fn write_event(&mut self, event: &Event) -> Result<(), RecordError> {
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            self.lost += count_events(std::slice::from_ref(event));
            return Ok(());
        }
        let written = self.file.as_ref().map(|file| file.get_ref().written);
        match written {
            Some(written) if written < self.check_at => {}
            Some(written) if written < self.make_room()? => self.check_at = written + self.check_step(),
            Some(_) => {
                if let Some(file) = self.file.take() {
                    file.finish()?;
                    self.unflushed = 0;
                }
                self.start_file()?;
            }
            None => self.start_file()?,
        }
        self.file.as_mut().map_or(Ok(()), |file| file.write(event))?;
        self.unflushed += count_events(std::slice::from_ref(event));
        Ok(())
    }

    /// Begins a file, whose first event tells how many were lost before it. Where that fails, no file is left.
    fn start_file(&mut self) -> Result<(), RecordError> {
        create_private_folder(&self.options.folder)?;
        self.make_room()?;
        let file = LockedFile::create(&self.options.folder)?;
        let path = file.path.clone();
        let writer = self.write_start(file).inspect_err(|_| {
            // The failure to write is what is reported.
            let _ = std::fs::remove_file(path);
        })?;
        self.check_at = self.check_step();
        (self.file, self.lost, self.retry_at) = (Some(writer), 0, None);
        Ok(())
    }

    fn write_start(&self, file: LockedFile) -> Result<Writer<LockedFile>, RecordError> {
        let mut writer = Writer::new(file, &self.head)?;
        if self.lost > 0 {
            writer.write(&Event { at: monotonic_now(), kind: EventKind::EventsLost { count: self.lost } })?;
            writer.flush()?;
        }
        Ok(writer)
    }

    /// Gives up the file after a failure. The part that was written stays readable.
    fn suspend(&mut self, error: &RecordError) {
        self.file = None;
        self.lost += std::mem::take(&mut self.unflushed);
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
            // Another recorder may have removed them already. A recorder that was killed left its lock file.
            let _ = std::fs::remove_file(lock_path(&path));
            let _ = std::fs::remove_file(path);
            size -= freed;
            count -= 1;
        }
        Ok(largest)
    }
}

/// A new recording, whose lock file is locked and goes with this value. It counts its bytes.
struct LockedFile {
    file: File,
    path: PathBuf,
    written: u64,
    /// Unlocked when it is closed.
    _lock: File,
}

impl LockedFile {
    /// Creates a file whose name tells its time, so that names sort by age. Follows no link and replaces no file.
    fn create(folder: &Path) -> io::Result<Self> {
        let time = humantime::format_rfc3339_micros(SystemTime::now()).to_string().replace(['-', ':'], "");
        let path = folder.join(format!("{time}-{}{ENDING}", std::process::id()));
        // The lock file comes first: no recorder sees a recording that is not locked yet.
        let lock = create_new_private(&lock_path(&path))?;
        let created = lock.lock().and_then(|()| create_new_private(&path));
        match created {
            Ok(file) => Ok(Self { file, path, written: 0, _lock: lock }),
            Err(error) => {
                let _ = std::fs::remove_file(lock_path(&path));
                Err(error)
            }
        }
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // A lock file that stays is removed with its recording.
        let _ = std::fs::remove_file(lock_path(&self.path));
    }
}

impl Write for LockedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let size = self.file.write(bytes)?;
        self.written += size as u64;
        Ok(size)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Number of recorded events that these stand for: an event about lost ones stands for those.
pub(crate) fn count_events(events: &[Event]) -> u64 {
    let counts = events.iter().map(|event| match event.kind {
        EventKind::EventsLost { count } => count,
        _ => 1,
    });
    counts.sum()
}

fn lock_path(recording: &Path) -> PathBuf {
    let mut path = recording.as_os_str().to_owned();
    path.push(LOCK_ENDING);
    path.into()
}

/// Whether a recorder writes the recording.
fn is_in_use(recording: &Path) -> bool {
    File::open(lock_path(recording)).is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
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
        files.retain(|file| file.to_string_lossy().ends_with(ENDING));
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
        // No lock file stays.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), files(folder.path()).len());
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
        // Events that the queue lost are lost, too, when the event that counts them is dropped.
        ring.write_batch(&[Event { at: monotonic_now(), kind: EventKind::EventsLost { count: 20 } }]);
        assert_eq!(reported(&place), 1);
        std::fs::remove_file(&place).unwrap();
        ring.retry_at = Some(Instant::now());
        ring.write_batch(&events(5));
        ring.finish();
        let recording = read(&files(&place)[0]);
        assert_eq!((recording.events().len(), recording.lost()), (6, 27));
        assert_eq!(reported(&place), 1);
    }

    #[test]
    fn the_least_limit_has_room_for_many_events_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let options = RingOptions::new(folder.path().to_owned(), 10, report);
        let mut ring = FlightRing::open(options, RecordingHead::bare(Instrument::StdioRecorder));
        let lost = Event { at: monotonic_now(), kind: EventKind::EventsLost { count: 1 } };
        (0..20).for_each(|_| ring.write_batch(std::slice::from_ref(&lost)));
        ring.finish();
        let kept: Vec<usize> = files(folder.path()).iter().map(|file| read(file).events().len()).collect();
        assert_eq!(kept, [20]);
    }

    #[test]
    fn the_lock_file_of_a_killed_recorder_goes_with_its_recording() {
        let folder = tempfile::tempdir().unwrap();
        let old = folder.path().join(format!("20200101T000000.000000Z-1{ENDING}"));
        std::fs::write(&old, vec![0; LIMIT as usize]).unwrap();
        std::fs::write(lock_path(&old), "").unwrap();
        ring(folder.path()).finish();
        assert!(!old.exists() && !lock_path(&old).exists());
    }

    /// Sets the largest size of a file of this process; `None`: as large as it may be.
    fn limit_files(size: Option<u64>) {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let maximum = getrlimit(Resource::Fsize).maximum;
        setrlimit(Resource::Fsize, Rlimit { current: size.or(maximum), maximum }).unwrap();
    }

    /// The limit of a process would disturb other tests, so this test runs again in a process of its own, which ignores the
    /// signal of the limit.
    #[test]
    fn a_disk_without_room_leaves_no_empty_file_and_each_loss_is_counted() {
        const FOLDER: &str = "MCPACE_TEST_FLIGHT_RING";
        let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
            let folder = tempfile::tempdir().unwrap();
            let name = "flight_ring::tests::a_disk_without_room_leaves_no_empty_file_and_each_loss_is_counted";
            let mut again = std::process::Command::new("sh");
            again.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]).arg(std::env::current_exe().unwrap());
            let output = again.args(["--exact", name]).env(FOLDER, folder.path()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("1 passed"), "{said}");
            return;
        };
        limit_files(Some(0));
        let mut ring = ring(&folder);
        ring.write_batch(&events(3));
        assert_eq!((std::fs::read_dir(&folder).unwrap().count(), ring.lost), (0, 3));
        // Room for some events, and not for a whole batch.
        limit_files(Some(10_000));
        ring.retry_at = Some(Instant::now());
        ring.write_batch(&events(200));
        assert!(ring.file.is_none());
        limit_files(None);
        ring.retry_at = Some(Instant::now());
        ring.write_batch(&events(7));
        ring.finish();
        let recordings: Vec<Recording> = files(&folder).iter().map(|file| read(file)).collect();
        let lost: u64 = recordings.iter().map(Recording::lost).sum();
        assert_eq!((recordings.len(), lost), (2, 203), "3 before the first file, and the batch that was not flushed");
        assert_eq!(recordings[1].events().len(), 1 + 7);
    }
}

//! Access log: one line on stderr for each request, written without the interpreter.
//!
//! Constraint: serving never waits for the reader of stderr. Lines pass through a bounded queue to their own thread. Lines without
//! room are counted, and a later line reports their number.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use mcpace_serve::http::{Access, AccessLog};

/// Characters of a client's text that are shown.
const SHOWN: usize = 200;
/// Lines that wait to be written.
const MOST: usize = 1024;
/// Time limit for the unwritten lines at the end.
const PATIENCE: Duration = Duration::from_secs(1);

/// A log that writes to stderr.
pub(crate) fn stderr_log() -> AccessLog {
    let lines = LogLines::default();
    AccessLog::new(move |access| lines.write_line(access_line(access)))
}

/// Formats one line. Control characters of a client's text are escaped, so that they do not reach the terminal.
fn access_line(access: &Access<'_>) -> String {
    let Access { method, path, status, elapsed, call, target } = access;
    let now = humantime::format_rfc3339_millis(SystemTime::now());
    let mut line = format!("{now} {method} {} {status} {:.3} ms", printable_text(path), elapsed.as_secs_f64() * 1e3);
    for text in [call, target].into_iter().flatten() {
        // Writing to a string can't fail.
        let _ = write!(line, " {}", printable_text(text));
    }
    line.push('\n');
    line
}

fn printable_text(text: &str) -> String {
    let shown = text.chars().take(SHOWN).flat_map(char::escape_debug);
    shown.collect()
}

/// Lines on their way to stderr. The first line starts the thread, so that a forked process has its own.
#[derive(Default)]
struct LogLines {
    queue: OnceLock<Option<LineQueue>>,
    dropped: Arc<AtomicU64>,
}

struct LineQueue {
    lines: Option<SyncSender<String>>,
    /// Closed when all is written.
    written: Mutex<Receiver<()>>,
}

impl LogLines {
    fn write_line(&self, line: String) {
        let queue = self.queue.get_or_init(|| LineQueue::start_thread(Arc::clone(&self.dropped)));
        let taken = queue.as_ref().and_then(|queue| queue.lines.as_ref()).map(|lines| lines.try_send(line));
        if !matches!(taken, Some(Ok(()))) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl LineQueue {
    /// `None` where no thread can be had.
    fn start_thread(dropped: Arc<AtomicU64>) -> Option<Self> {
        let (lines, waiting) = sync_channel::<String>(MOST);
        let (writing, written) = sync_channel::<()>(0);
        let work = move || {
            for line in waiting {
                write_stderr(&line);
                say_dropped(&dropped);
            }
            drop(writing);
        };
        std::thread::Builder::new().name("mcpace-access".to_owned()).spawn(work).ok()?;
        Some(Self { lines: Some(lines), written: Mutex::new(written) })
    }
}

impl Drop for LineQueue {
    fn drop(&mut self) {
        self.lines = None;
        let written = self.written.get_mut().unwrap_or_else(PoisonError::into_inner);
        // A reader that does not read stderr cannot delay the end.
        let _: Result<(), RecvTimeoutError> = written.recv_timeout(PATIENCE);
    }
}

fn say_dropped(dropped: &AtomicU64) {
    let lines = dropped.swap(0, Ordering::Relaxed);
    if lines > 0 {
        let now = humantime::format_rfc3339_millis(SystemTime::now());
        write_stderr(&format!("{now} the access log left out {lines} lines: stderr is read too slowly\n"));
    }
}

/// Writes a line in one system call, so that the lines of several processes do not mix.
fn write_stderr(line: &str) {
    // A closed stderr has no reader.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

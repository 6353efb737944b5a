//! The access log: a line on stderr for each request, in one write, without the interpreter.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::SystemTime;

use mcpace_serve::http::Access;

/// Characters of a client's text that are shown.
const SHOWN: usize = 200;

/// Writes one. What a client could do to a terminal is made visible in the place of done.
pub(super) fn write(access: &Access<'_>) {
    let Access { method, path, status, elapsed, call, target } = access;
    let now = humantime::format_rfc3339_millis(SystemTime::now());
    let mut line = format!("{now} {method} {} {status} {:.3} ms", harmless(path), elapsed.as_secs_f64() * 1e3);
    for text in [call, target].into_iter().flatten() {
        // Writing to a string can't fail.
        let _ = write!(line, " {}", harmless(text));
    }
    line.push('\n');
    // Whoever closed stderr doesn't want to know.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

fn harmless(text: &str) -> String {
    let shown = text.chars().take(SHOWN).flat_map(char::escape_debug);
    shown.collect()
}

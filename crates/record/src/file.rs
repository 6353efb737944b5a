//! The file format `mcpace.recording/2`: a zstd stream of JSON lines, the head first, then an event a line.
//!
//! The writer flushes whole zstd blocks on demand, so a file cut off anywhere (kill, full disk) reads up to the last
//! flush and says that it is partial. Events of kinds that this release doesn't know are an error: a format with new
//! kinds has a new number. Version 2 added `process-sample`; version 1 is read as ever.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::{Event, RecordError, RecordingHead};

/// Name and version of the format, the first member of the first line.
pub const FORMAT: &str = "mcpace.recording/2";

const NAME: &str = "mcpace.recording/";
const VERSION: u32 = 2;

/// Quick rather than small: recording must not compete with what is recorded.
const LEVEL: i32 = 1;

#[derive(Serialize)]
struct HeadLine<'a> {
    format: &'static str,
    #[serde(flatten)]
    head: &'a RecordingHead,
}

/// Appends events to a recording.
pub struct Writer<W: Write> {
    stream: zstd::Encoder<'static, W>,
    line: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Starts a recording: writes its head at once, so that an unwritable place is found out before anything is measured.
    ///
    /// # Errors
    /// [`RecordError::Io`] from `sink`.
    pub fn new(sink: W, head: &RecordingHead) -> Result<Self, RecordError> {
        let mut writer = Self { stream: zstd::Encoder::new(sink, LEVEL)?, line: Vec::with_capacity(1024) };
        writer.json_line(&HeadLine { format: FORMAT, head })?;
        writer.flush()?;
        Ok(writer)
    }

    /// Appends one event.
    ///
    /// # Errors
    /// [`RecordError::Io`] from the sink.
    pub fn write(&mut self, event: &Event) -> Result<(), RecordError> {
        self.json_line(event)
    }

    /// Makes everything written so far readable.
    ///
    /// # Errors
    /// [`RecordError::Io`] from the sink.
    pub fn flush(&mut self) -> Result<(), RecordError> {
        Ok(self.stream.flush()?)
    }

    /// The sink.
    #[must_use]
    pub fn get_ref(&self) -> &W {
        self.stream.get_ref()
    }

    /// Ends the stream; a file without this end reads as partial.
    ///
    /// # Errors
    /// [`RecordError::Io`] from the sink.
    pub fn finish(self) -> Result<W, RecordError> {
        let mut sink = self.stream.finish()?;
        sink.flush()?;
        Ok(sink)
    }

    fn json_line<T: Serialize>(&mut self, value: &T) -> Result<(), RecordError> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, value).map_err(io::Error::from)?;
        self.line.push(b'\n');
        Ok(self.stream.write_all(&self.line)?)
    }
}

/// Reads the first line of a recording.
pub(crate) fn parse_head(line: &str) -> Result<RecordingHead, RecordError> {
    #[derive(Deserialize)]
    struct Format {
        format: String,
    }
    let stranger = |error: serde_json::Error| {
        RecordError::NotARecording(format!("its first line is not the header of a recording ({error})"))
    };
    let found = serde_json::from_str::<Format>(line).map_err(stranger)?.format;
    match found.strip_prefix(NAME).and_then(|version| version.parse::<u32>().ok()) {
        Some(version) if version <= VERSION && version > 0 => serde_json::from_str(line).map_err(stranger),
        Some(_) => Err(RecordError::NewerFormat { found, supported: FORMAT }),
        None => Err(RecordError::NotARecording(format!("its format is {found:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallId, CallOutcome, EventKind, Instrument, Nanos, Reader, Recording};

    fn head() -> RecordingHead {
        RecordingHead {
            instrument: Instrument::Recorder,
            started: "2026-11-20T00:00:00Z".to_owned(),
            started_at: None,
            mcpace: "0.1.0".to_owned(),
            upstream: "http://127.0.0.1:1/mcp".to_owned(),
        }
    }

    fn events(count: u64) -> Vec<Event> {
        let event =
            |at| Event { at: Nanos(at), kind: EventKind::CallEnd { call: CallId(at), outcome: CallOutcome::Ok } };
        (0..count).map(event).collect()
    }

    fn written(count: u64) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), &head()).unwrap();
        for event in events(count) {
            writer.write(&event).unwrap();
            writer.flush().unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn what_was_written_is_read() {
        let recording = Reader::read(written(3).as_slice()).unwrap();
        assert_eq!(recording, Recording::new(head(), events(3)));
    }

    #[test]
    fn a_file_cut_anywhere_reads_as_partial_or_as_no_recording_but_never_as_whole() {
        let whole = written(5);
        for end in 0..whole.len() {
            match Reader::read(&whole[..end]) {
                Ok(recording) => {
                    // The frame's last block is empty: cut inside it, every event is there, yet the end is missing.
                    assert!(recording.partial, "cut at {end} of {}", whole.len());
                    assert_eq!(recording.events(), &events(5)[..recording.events().len()]);
                }
                Err(error) => assert_eq!(error.code(), "not-a-recording", "cut at {end}"),
            }
        }
    }

    #[test]
    fn a_newer_format_and_a_stranger_are_told_apart() {
        let newer = Reader::read(br#"{"format":"mcpace.recording/3"}"#.as_slice()).unwrap_err();
        assert_eq!(newer.code(), "newer-format");
        for stranger in [b"hello".as_slice(), b"", b"{}", br#"{"format":"x/1"}"#, &[0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3]] {
            assert_eq!(Reader::read(stranger).unwrap_err().code(), "not-a-recording", "{stranger:?}");
        }
    }

    /// As the first releases wrote it.
    #[test]
    fn a_recording_of_version_1_is_read() {
        let text = concat!(
            r#"{"format":"mcpace.recording/1","instrument":"recorder","started":"2026-11-20T00:00:00Z","#,
            r#""mcpace":"0.1.0","upstream":"http://127.0.0.1:1/mcp"}"#,
            "\n",
            r#"{"at":0,"event":{"call-end":{"call":0,"outcome":"ok"}}}"#,
            "\n",
        );
        assert_eq!(Reader::read(text.as_bytes()).unwrap(), Recording::new(head(), events(1)));
    }

    #[test]
    fn a_bad_line_in_the_middle_is_named() {
        let text = format!(
            "{}\nnonsense\n",
            String::from_utf8(serde_json::to_vec(&HeadLine { format: FORMAT, head: &head() }).unwrap()).unwrap()
        );
        let error = Reader::read(text.as_bytes()).unwrap_err();
        assert!(matches!(error, RecordError::BadLine { line: 2, .. }), "{error}");
    }
}

//! JSON documents of spans, read span by span: OTLP's `resourceSpans` and Jaeger's `data`, one document or many in a row.
//!
//! A document is never held whole, so that its size bounds no memory.

use std::fmt;
use std::io::{self, Read};

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::bounded::Meter;
use crate::jaeger::JaegerTrace;
use crate::json_parts::{ListOf, ReadState, Take};
use crate::otlp_json::ResourceSpans;

/// How the reading of documents ended.
#[derive(Debug)]
pub(crate) enum DocumentsEnd {
    /// At the end.
    Complete,
    /// At the end, within a document.
    CutOff,
    /// By the taker.
    Stopped,
}

/// Documents that were read.
#[derive(Debug)]
pub(crate) struct DocumentsRead {
    pub(crate) end: DocumentsEnd,
    /// Whether one of them has the members of a format that is known.
    pub(crate) has_format: bool,
}

/// Reads all documents. At most `most_held` spans are held until the end of their trace.
///
/// # Errors
/// Text that is no JSON, or whose members are of other types, and errors of the source.
pub(crate) fn read_documents(
    source: impl Read,
    most_held: u64,
    meter: &Meter,
    take: &mut Take<'_>,
) -> serde_json::Result<DocumentsRead> {
    let mut json = serde_json::Deserializer::from_reader(source);
    let mut state = ReadState::new(take, meter, most_held);
    let mut documents = 0_u64;
    let end = loop {
        // Only whitespace is left.
        if json.end().is_ok() {
            break DocumentsEnd::Complete;
        }
        match DocumentSeed(&mut state).deserialize(&mut json) {
            Ok(()) => documents += 1,
            Err(_) if state.stopped => break DocumentsEnd::Stopped,
            Err(error) if is_cut(&error) && (documents > 0 || state.has_format) => break DocumentsEnd::CutOff,
            Err(error) => return Err(error),
        }
    };
    Ok(DocumentsRead { end, has_format: state.has_format })
}

/// Whether the text ends within a document, or the compressed file within itself.
fn is_cut(error: &serde_json::Error) -> bool {
    error.is_eof() || error.io_error_kind() == Some(io::ErrorKind::UnexpectedEof)
}

struct DocumentSeed<'s, 'r, 't>(&'s mut ReadState<'r, 't>);

impl<'de> DeserializeSeed<'de> for DocumentSeed<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum DocumentMember {
    ResourceSpans,
    Data,
    #[serde(other)]
    Other,
}

impl<'de> Visitor<'de> for DocumentSeed<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with \"resourceSpans\" or \"data\"")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let state = self.0;
        while let Some(member) = map.next_key()? {
            match member {
                DocumentMember::ResourceSpans => {
                    state.has_format = true;
                    map.next_value_seed(ListOf::<ResourceSpans>::new(state))?;
                }
                DocumentMember::Data => {
                    state.has_format = true;
                    map.next_value_seed(ListOf::<JaegerTrace>::new(state))?;
                }
                DocumentMember::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

//! JSON documents of spans, read span by span: OTLP's `resourceSpans` and Jaeger's `data`, one document or many in a row.
//!
//! A document is never held whole, so that its size bounds no memory.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read};
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::bounded::Meter;
use crate::jaeger::JaegerTrace;
use crate::otlp_json::ResourceSpans;
use crate::reported::ReportedSpan;

/// Takes the spans as they are read. `false` ends the reading.
pub(crate) type Take<'t> = dyn FnMut(ReportedSpan) -> bool + 't;

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
    let mut state = ReadState {
        take,
        meter,
        service: String::new(),
        library: String::new(),
        held: Vec::new(),
        most_held,
        stopped: false,
        has_format: false,
    };
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

/// State that all parts of the documents share.
pub(crate) struct ReadState<'r, 't> {
    take: &'r mut Take<'t>,
    meter: &'r Meter,
    /// The program whose spans are read, and the library.
    pub(crate) service: String,
    pub(crate) library: String,
    /// Spans of a trace, each with the key of its program.
    held: Vec<(String, ReportedSpan)>,
    most_held: u64,
    stopped: bool,
    has_format: bool,
}

impl ReadState<'_, '_> {
    /// Hands a span over.
    pub(crate) fn take_span<E: serde::de::Error>(&mut self, span: ReportedSpan) -> Result<(), E> {
        self.meter.begin_part();
        if (self.take)(span) {
            return Ok(());
        }
        self.stopped = true;
        Err(E::custom("stopped"))
    }

    /// Holds a span until the end of its trace.
    pub(crate) fn hold_span<E: serde::de::Error>(&mut self, process: String, span: ReportedSpan) -> Result<(), E> {
        if self.held.len() as u64 >= self.most_held {
            // The taker says that it has enough.
            self.end_trace(&HashMap::new())?;
        }
        self.meter.begin_part();
        self.held.push((process, span));
        Ok(())
    }

    /// Hands the spans of a trace over, with the names of their programs.
    pub(crate) fn end_trace<E: serde::de::Error>(&mut self, names: &HashMap<String, String>) -> Result<(), E> {
        for (process, mut span) in std::mem::take(&mut self.held) {
            if let Some(name) = names.get(&process) {
                span.service.clone_from(name);
            }
            self.take_span(span)?;
        }
        Ok(())
    }
}

/// Reads a value with the state of the reading.
pub(crate) trait ReadPart<'de> {
    fn read_part<D: Deserializer<'de>>(deserializer: D, state: &mut ReadState<'_, '_>) -> Result<(), D::Error>;
}

/// A list whose elements are read one by one; `null` is an empty one.
pub(crate) struct ListOf<'s, 'r, 't, P>(&'s mut ReadState<'r, 't>, PhantomData<P>);

impl<'s, 'r, 't, P> ListOf<'s, 'r, 't, P> {
    pub(crate) fn new(state: &'s mut ReadState<'r, 't>) -> Self {
        Self(state, PhantomData)
    }
}

impl<'de, P: ReadPart<'de>> DeserializeSeed<'de> for ListOf<'_, '_, '_, P> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, P: ReadPart<'de>> Visitor<'de> for ListOf<'_, '_, '_, P> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(PartSeed::<P>(self.0, PhantomData))?.is_some() {}
        Ok(())
    }
}

struct PartSeed<'s, 'r, 't, P>(&'s mut ReadState<'r, 't>, PhantomData<P>);

impl<'de, P: ReadPart<'de>> DeserializeSeed<'de> for PartSeed<'_, '_, '_, P> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        P::read_part(deserializer, self.0)
    }
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

/// Turns `null` into the default value.
pub(crate) fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

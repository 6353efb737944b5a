//! Parts of the JSON documents of spans, read one by one with the state of the whole reading.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};

use crate::bounded::Meter;
use crate::reported::ReportedSpan;

/// Takes the spans as they are read. `false` ends the reading.
pub(crate) type Take<'t> = dyn FnMut(ReportedSpan) -> bool + 't;

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
    /// Whether the taker ended the reading.
    pub(crate) stopped: bool,
    /// Whether a member of a format that is known was read.
    pub(crate) has_format: bool,
}

impl<'r, 't> ReadState<'r, 't> {
    /// At most `most_held` spans are held until the end of their trace.
    pub(crate) fn new(take: &'r mut Take<'t>, meter: &'r Meter, most_held: u64) -> Self {
        let (service, library, held) = (String::new(), String::new(), Vec::new());
        Self { take, meter, service, library, held, most_held, stopped: false, has_format: false }
    }

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

/// Turns `null` into the default value.
pub(crate) fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

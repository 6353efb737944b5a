//! The texts of a view, each kept once.
//!
//! Events are dropped as they are read; their texts have to stay. Among a million requests most texts are equal, so a
//! text, a head or an outline of a message is kept once and shared by all equal ones.

use std::collections::HashSet;
use std::hash::Hash;

use bumpalo::Bump;
use mcpace_record::{MessageNote, RecordError};

use super::note::{Note, NoteOutline};

/// All that is kept of one recording: ten times what ten million exchanges need. A file of nothing but texts that differ is
/// no recording of ours.
const MOST_BYTES: usize = 4 << 30;

/// Memory that a [`View`](super::View) borrows its texts from.
pub struct Texts {
    bump: Bump,
    most: usize,
}

impl Default for Texts {
    fn default() -> Self {
        Self::at_most(MOST_BYTES)
    }
}

impl Texts {
    pub(super) fn at_most(bytes: usize) -> Self {
        Self { bump: Bump::new(), most: bytes }
    }

    /// Whether more may be kept.
    ///
    /// # Errors
    /// [`RecordError::TooLarge`].
    pub(super) fn check_size(&self) -> Result<(), RecordError> {
        if self.bump.allocated_bytes() > self.most {
            let what = format!("{} MiB of what has to be kept while it is explained", self.most >> 20);
            return Err(RecordError::TooLarge { what });
        }
        Ok(())
    }
}

/// Fills [`Texts`] while events are read.
pub(super) struct Keeper<'a> {
    texts: &'a Bump,
    known: HashSet<&'a str>,
    outlines: Alike<'a, NoteOutline<'a>>,
}

impl<'a> Keeper<'a> {
    pub(super) fn new(texts: &'a Texts) -> Self {
        Self { texts: &texts.bump, known: HashSet::new(), outlines: Alike::default() }
    }

    /// A text that may well come again.
    pub(super) fn keep_text(&mut self, text: &str) -> &'a str {
        match self.known.get(text) {
            Some(known) => known,
            None => {
                let kept = self.texts.alloc_str(text);
                self.known.insert(kept);
                kept
            }
        }
    }

    pub(super) fn some_text(&mut self, text: Option<&str>) -> Option<&'a str> {
        text.map(|text| self.keep_text(text))
    }

    /// A value that comes once.
    pub(super) fn keep_value<T: Copy>(&self, value: T) -> &'a T {
        self.texts.alloc(value)
    }

    /// A list that comes once.
    pub(super) fn keep_list<T: Copy>(&self, list: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>) -> &'a [T] {
        self.texts.alloc_slice_fill_iter(list)
    }

    pub(super) fn keep_notes(&mut self, messages: &[MessageNote]) -> &'a [Note<'a>] {
        match messages {
            [] => &[],
            [one] => {
                let note = self.keep_note(one);
                std::slice::from_ref(self.keep_value(note))
            }
            many => {
                let notes: Vec<Note<'_>> = many.iter().map(|message| self.keep_note(message)).collect();
                self.keep_list(notes)
            }
        }
    }

    pub(super) fn keep_note(&mut self, message: &MessageNote) -> Note<'a> {
        let outline = NoteOutline {
            kind: message.kind,
            method: message.method.as_deref(),
            name: message.name.as_deref(),
            tools: message.tools,
            code: message.code,
            is_error: message.is_error,
        };
        let outline = match self.outlines.find_recent(|latest| *latest == outline) {
            Some(known) => known,
            None => {
                let outline = NoteOutline {
                    method: self.some_text(outline.method),
                    name: self.some_text(outline.name),
                    ..outline
                };
                self.outlines.keep_value(self.texts, outline)
            }
        };
        Note {
            outline,
            // Ids hardly come again.
            id: message.id.as_deref().map(|id| &*self.texts.alloc_str(id)),
            content: message.content,
            arguments: message.arguments,
            timing: message.timing.map(|timing| self.keep_value(timing)),
        }
    }

    pub(super) fn text_arena(&self) -> &'a Bump {
        self.texts
    }
}

/// Values of which many are alike.
pub(super) struct Alike<'a, T> {
    known: HashSet<&'a T>,
    latest: [Option<&'a T>; 4],
    next: usize,
}

impl<T> Default for Alike<'_, T> {
    fn default() -> Self {
        Self { known: HashSet::new(), latest: [None; 4], next: 0 }
    }
}

impl<'a, T: Eq + Hash> Alike<'a, T> {
    /// One of the values that were kept last: what comes in turns needs no search.
    pub(super) fn find_recent(&self, is_it: impl Fn(&T) -> bool) -> Option<&'a T> {
        self.latest.iter().flatten().find(|latest| is_it(latest)).copied()
    }

    pub(super) fn keep_value(&mut self, texts: &'a Bump, value: T) -> &'a T {
        let kept = match self.known.get(&value) {
            Some(known) => *known,
            None => {
                let kept = &*texts.alloc(value);
                self.known.insert(kept);
                kept
            }
        };
        self.latest[self.next] = Some(kept);
        self.next = (self.next + 1) % self.latest.len();
        kept
    }
}

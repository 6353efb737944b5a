//! A list as bytes, by revision and page.

use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpace_wire::Revision;
use serde::Serialize;

use super::{ByRevision, Tell};
use crate::builder::BuildError;

/// Something that a list tells of.
pub(crate) trait Listed {
    /// What the list says.
    type Shape: Serialize;

    /// What it is looked up by.
    fn key(&self) -> &str;

    /// What a list of this revision says of it.
    fn shape(&self, revision: Revision) -> Self::Shape;

    /// Where that is kept as text.
    fn texts(&self) -> &Texts;
}

/// What lists say of an entry, as JSON. Made once for each entry: a change of one entry among many is then a copy of bytes.
/// Revisions that say the same share it.
pub(crate) type Texts = OnceLock<ByRevision<Arc<str>>>;

fn text<'e, T: Listed>(key: &'static str, entry: &'e T, revision: Revision) -> Result<&'e str, BuildError> {
    if let Some(texts) = entry.texts().get() {
        return Ok(texts.of(revision));
    }
    let mut failure = None;
    let mut last: Arc<str> = Arc::from("");
    let texts = ByRevision::build(|revision| match serde_json::to_string(&entry.shape(revision)) {
        Ok(text) if *text == *last => Arc::clone(&last),
        Ok(text) => {
            last = text.into();
            Arc::clone(&last)
        }
        Err(error) => {
            failure = Some(error);
            Arc::clone(&last)
        }
    });
    match failure {
        Some(error) => Err(BuildError::Unwritable { kind: key, name: entry.key().to_owned(), error }),
        None => Ok(entry.texts().get_or_init(|| texts).of(revision)),
    }
}

/// A list. Each page is the members of its result, without braces.
pub(crate) struct Pages {
    pages: ByRevision<Vec<Box<[u8]>>>,
    generation: u64,
}

/// A cursor that this list did not give, or not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnknownCursor;

impl Pages {
    pub(crate) fn build<T: Listed>(
        key: &'static str,
        entries: &[Arc<T>],
        tell: &Tell,
        generation: u64,
    ) -> Result<Self, BuildError> {
        let mut failure = None;
        let pages = ByRevision::build(|revision| {
            pages(key, entries, tell, generation, revision).unwrap_or_else(|error| {
                failure = Some(error);
                Vec::new()
            })
        });
        match failure {
            Some(error) => Err(error),
            None => Ok(Self { pages, generation }),
        }
    }

    /// The page that `cursor` points to; the first where there is none.
    pub(crate) fn page(&self, revision: Revision, cursor: Option<&str>) -> Result<&[u8], UnknownCursor> {
        let number = match cursor {
            None => 0,
            Some(cursor) => {
                decode(cursor).filter(|(generation, _)| *generation == self.generation).ok_or(UnknownCursor)?.1
            }
        };
        self.pages.of(revision).get(number).map(|page| &**page).ok_or(UnknownCursor)
    }
}

fn pages<T: Listed>(
    key: &'static str,
    entries: &[Arc<T>],
    tell: &Tell,
    generation: u64,
    revision: Revision,
) -> Result<Vec<Box<[u8]>>, BuildError> {
    let count = entries.len().div_ceil(tell.page_size).max(1);
    let mut pages = Vec::with_capacity(count);
    for number in 0..count {
        let entries = entries.iter().skip(number * tell.page_size).take(tell.page_size);
        let mut page = Vec::new();
        page.extend_from_slice(format!("\"{key}\":[").as_bytes());
        for (index, entry) in entries.enumerate() {
            if index > 0 {
                page.push(b',');
            }
            page.extend_from_slice(text(key, &**entry, revision)?.as_bytes());
        }
        page.push(b']');
        if number + 1 < count {
            page.extend_from_slice(format!(",\"nextCursor\":\"{}\"", encode(generation, number + 1)).as_bytes());
        }
        if revision.is_modern() {
            page.extend_from_slice(cache_hints(tell).as_bytes());
        }
        pages.push(page.into_boxed_slice());
    }
    Ok(pages)
}

/// `ttlMs` and `cacheScope`, with a comma before.
pub(crate) fn cache_hints(tell: &Tell) -> String {
    let scope = match tell.scope {
        mcpace_wire::mcp::CacheScope::Public => "public",
        mcpace_wire::mcp::CacheScope::Private => "private",
    };
    format!(",\"ttlMs\":{},\"cacheScope\":\"{scope}\"", tell.ttl_ms)
}

/// Opaque to clients. A cursor of an older generation is refused, since entries may have moved past the reader.
fn encode(generation: u64, page: usize) -> String {
    URL_SAFE_NO_PAD.encode(format!("{generation}.{page}"))
}

fn decode(cursor: &str) -> Option<(u64, usize)> {
    // Longer than two numbers can be.
    if cursor.len() > 64 {
        return None;
    }
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    let (generation, page) = text.split_once('.')?;
    Some((generation.parse().ok()?, page.parse().ok()?))
}

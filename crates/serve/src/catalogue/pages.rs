//! A list as bytes, by revision and page.

use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpace_wire::Revision;
use mcpace_wire::mcp::CacheScope;
use serde::Serialize;

use super::{ByRevision, Catalogue, Tell};
use crate::build_error::BuildError;
use crate::guard::{Compiled, ComponentKind};

/// A component that appears in a list.
pub(crate) trait Listed: Send + Sync + 'static {
    /// Kind of the component.
    const KIND: ComponentKind;

    /// Name of the list in a result.
    const LIST: &'static str;

    /// Entry of the list.
    type Shape: Serialize;

    /// Key for look-up.
    fn lookup_key(&self) -> &str;

    /// Returns the entry of the list in this revision.
    fn shape_for(&self, revision: Revision) -> Self::Shape;

    /// Cache of the entry as text.
    fn text_cache(&self) -> &Texts;

    /// Guard of the component.
    fn guard(&self) -> Option<&Arc<Compiled>>;

    /// List that holds the component.
    fn pages_of(catalogue: &Catalogue) -> &Pages;
}

/// Entry of a list as JSON. The text is made once for each component, so a change of one component copies the bytes of all
/// others. Revisions with equal texts share one.
pub(crate) type Texts = OnceLock<ByRevision<Arc<str>>>;

fn entry_text<T: Listed>(entry: &T, revision: Revision) -> Result<&str, BuildError> {
    if let Some(texts) = entry.text_cache().get() {
        return Ok(texts.for_revision(revision));
    }
    let mut failure = None;
    let mut last: Arc<str> = Arc::from("");
    let texts = ByRevision::build(|revision| match serde_json::to_string(&entry.shape_for(revision)) {
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
        Some(error) => Err(BuildError::Unwritable { kind: T::LIST, name: entry.lookup_key().to_owned(), error }),
        None => Ok(entry.text_cache().get_or_init(|| texts).for_revision(revision)),
    }
}

/// A list. Each page is the members of its result, without braces.
pub(crate) struct Pages {
    /// None where not everybody may see all: such pages are written for each who asks.
    pages: ByRevision<Vec<Box<[u8]>>>,
    generation: u64,
    is_selective: bool,
}

/// A cursor that this list did not give, or not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnknownCursor;

impl Pages {
    pub(crate) fn build<T: Listed>(entries: &[Arc<T>], tell: &Tell, generation: u64) -> Result<Self, BuildError> {
        let is_selective = entries.iter().any(|entry| entry.guard().is_some_and(|guard| guard.is_selective()));
        let mut failure = None;
        let pages = ByRevision::build(|revision| {
            let pages = match is_selective {
                // Their text is made all the same, so that nothing can fail later.
                true => {
                    entries.iter().try_for_each(|entry| entry_text(&**entry, revision).map(drop)).map(|()| Vec::new())
                }
                false => build_pages(entries, tell, generation, revision),
            };
            pages.unwrap_or_else(|error| {
                failure = Some(error);
                Vec::new()
            })
        });
        match failure {
            Some(error) => Err(error),
            None => Ok(Self { pages, generation, is_selective }),
        }
    }

    /// Whether there is anybody who may not see all of it.
    pub(crate) fn is_selective(&self) -> bool {
        self.is_selective
    }

    /// How many changes there were before.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Appends a page of these entries, which nobody else is to be shown; `next` is the next page's cursor.
    pub(crate) fn write_page<'e, T: Listed>(
        entries: impl Iterator<Item = &'e Arc<T>>,
        next: Option<String>,
        tell: &Tell,
        revision: Revision,
        out: &mut Vec<u8>,
    ) -> Result<(), BuildError> {
        write_page(entries, next, (tell, CacheScope::Private), revision, out)
    }

    /// The page that `cursor` points to; the first where there is none.
    pub(crate) fn find_page(&self, revision: Revision, cursor: Option<&str>) -> Result<&[u8], UnknownCursor> {
        let number = match cursor {
            None => 0,
            Some(cursor) => {
                decode_cursor(cursor).filter(|(generation, _)| *generation == self.generation).ok_or(UnknownCursor)?.1
            }
        };
        self.pages.for_revision(revision).get(number).map(|page| &**page).ok_or(UnknownCursor)
    }
}

fn build_pages<T: Listed>(
    entries: &[Arc<T>],
    tell: &Tell,
    generation: u64,
    revision: Revision,
) -> Result<Vec<Box<[u8]>>, BuildError> {
    let count = entries.len().div_ceil(tell.page_size).max(1);
    let mut pages = Vec::with_capacity(count);
    for number in 0..count {
        let entries = entries.iter().skip(number * tell.page_size).take(tell.page_size);
        let next = (number + 1 < count).then(|| encode_cursor(generation, number + 1));
        let mut page = Vec::new();
        write_page(entries, next, (tell, tell.scope), revision, &mut page)?;
        pages.push(page.into_boxed_slice());
    }
    Ok(pages)
}

fn write_page<'e, T: Listed>(
    entries: impl Iterator<Item = &'e Arc<T>>,
    next: Option<String>,
    (tell, scope): (&Tell, CacheScope),
    revision: Revision,
    out: &mut Vec<u8>,
) -> Result<(), BuildError> {
    out.extend_from_slice(format!("\"{}\":[", T::LIST).as_bytes());
    for (index, entry) in entries.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(entry_text(&**entry, revision)?.as_bytes());
    }
    out.push(b']');
    if let Some(next) = next {
        out.extend_from_slice(format!(",\"nextCursor\":\"{next}\"").as_bytes());
    }
    if revision.is_modern() {
        out.extend_from_slice(cache_hints(tell.ttl_ms, scope).as_bytes());
    }
    Ok(())
}

/// `ttlMs` and `cacheScope`, with a comma before.
pub(crate) fn cache_hints(ttl_ms: u64, scope: CacheScope) -> String {
    let scope = match scope {
        CacheScope::Public => "public",
        CacheScope::Private => "private",
    };
    format!(",\"ttlMs\":{ttl_ms},\"cacheScope\":\"{scope}\"")
}

/// Opaque to clients. A cursor of an older generation is refused, since entries may have moved past the reader.
fn encode_cursor(generation: u64, page: usize) -> String {
    URL_SAFE_NO_PAD.encode(format!("{generation}.{page}"))
}

fn decode_cursor(cursor: &str) -> Option<(u64, usize)> {
    // Longer than two numbers can be.
    if cursor.len() > 64 {
        return None;
    }
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    let (generation, page) = text.split_once('.')?;
    Some((generation.parse().ok()?, page.parse().ok()?))
}

//! Handlers that take a call's bytes and give a result's bytes: for tools whose types this crate doesn't know, because
//! another language has them.
//!
//! Constraint: what a handler doesn't ask for isn't made. One that answers at once pays for its reply and nothing else; a
//! context, a place among the requests under way, a future come with the call that wants them.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcpace_wire::Revision;
use mcpace_wire::mcp::Extra;

use super::indent;
use super::tool::Written;
use super::{CallFailure, Context, HandlerError, ToolWriter};
use crate::principal::Principal;

/// Runs a tool that was made by [`crate::Tool::raw`]. It decides for each call whether it answers at once, on the thread that
/// read the request, or later.
pub trait RawHandler: Send + Sync + 'static {
    /// Takes one call.
    fn call(&self, call: RawCall<'_>) -> RawAnswer;
}

impl<F: Fn(RawCall<'_>) -> RawAnswer + Send + Sync + 'static> RawHandler for F {
    fn call(&self, call: RawCall<'_>) -> RawAnswer {
        self(call)
    }
}

/// When a raw handler answers.
pub enum RawAnswer {
    /// It has answered.
    Now(RawDone),
    /// It will have. Dropped when the client no longer wants the result.
    Later(Pin<Box<dyn Future<Output = RawDone> + Send>>),
}

/// One call of a raw handler.
pub struct RawCall<'a> {
    pub(crate) arguments: &'a str,
    pub(crate) out: Vec<u8>,
    pub(crate) revision: Revision,
    pub(crate) timed: bool,
    pub(crate) backing: &'a dyn Backing,
}

/// Parts of a call that dispatch makes when a raw handler asks for them.
pub(crate) trait Backing {
    fn context(&self) -> Result<Context, HandlerError>;
    fn principal(&self) -> Option<&Principal>;
    fn client_key(&self) -> u64;
    fn keep(&self, part: &str) -> Bytes;
    fn is_task(&self) -> bool;
}

impl<'a> RawCall<'a> {
    /// The arguments, a JSON object; `{}` where the client sent none.
    #[must_use]
    pub fn arguments(&self) -> &'a str {
        self.arguments
    }

    /// The arguments as owned bytes, without a copy where possible.
    #[must_use]
    pub fn keep_arguments(&self) -> Bytes {
        self.backing.keep(self.arguments)
    }

    /// The revision that the client reads.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Authenticated principal, if the request was authenticated.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.backing.principal()
    }

    /// Whether the call runs as a task, so that its client does not wait. An answer at once is the call's own.
    #[must_use]
    pub fn is_task(&self) -> bool {
        self.backing.is_task()
    }

    /// A number that all calls of one client have in common, for whoever shares something between clients: by their session, else by
    /// their principal, else by their connection. 0 where there is no other client, or it isn't known whose the call is.
    #[must_use]
    pub fn client_key(&self) -> u64 {
        self.backing.client_key()
    }

    /// The context that other handlers get. Each call returns a clone of one context.
    ///
    /// # Errors
    /// The request can't be under way beside others; hand it to [`RawReply::done`].
    pub fn context(&self) -> Result<Context, HandlerError> {
        self.backing.context()
    }

    /// Where the result goes; here, or on another thread.
    #[must_use]
    pub fn reply(self) -> RawReply {
        RawReply {
            out: self.out,
            revision: self.revision,
            written: Written::default(),
            started: self.timed.then(Instant::now),
        }
    }
}

/// Takes the result of a raw handler's call.
pub struct RawReply {
    out: Vec<u8>,
    revision: Revision,
    written: Written,
    /// When the handler began, where anybody wants to know how long it takes.
    started: Option<Instant>,
}

impl RawReply {
    /// Writes the result, by exactly one call to a method of the writer.
    ///
    /// # Errors
    /// When the result can't be written as JSON.
    pub fn write(
        &mut self,
        write: impl FnOnce(&mut ToolWriter<'_>) -> serde_json::Result<()>,
    ) -> serde_json::Result<()> {
        let mut writer = ToolWriter::new(&mut self.out, self.revision);
        write(&mut writer)?;
        self.written = Written { meta: writer.meta, is_error: writer.is_error };
        Ok(())
    }

    /// Ends the call with its outcome. After a failure, the written result is discarded.
    #[must_use]
    pub fn done(self, outcome: Result<(), HandlerError>) -> RawDone {
        let service = self.started.map_or(Duration::ZERO, |started| started.elapsed());
        RawDone { out: self.out, outcome: outcome.map(|()| self.written).map_err(CallFailure::Failed), service }
    }
}

/// A raw handler's call that is over.
pub struct RawDone {
    pub(crate) out: Vec<u8>,
    pub(crate) outcome: Result<Written, CallFailure>,
    pub(crate) service: Duration,
}

impl RawDone {
    /// A call that failed and whose reply is lost.
    #[must_use]
    pub fn failed(error: HandlerError) -> Self {
        Self { out: Vec::new(), outcome: Err(CallFailure::Failed(error)), service: Duration::ZERO }
    }
}

impl ToolWriter<'_> {
    /// Text for models, and a value for programs that is JSON already; the caller vouches for that.
    ///
    /// # Errors
    /// None in practice: text can be written as JSON.
    pub fn structured_json(&mut self, text: &str, json: &str) -> serde_json::Result<()> {
        self.text(text)?;
        self.structured_content(json);
        Ok(())
    }

    /// A value for programs that is JSON already, the caller vouches for that, and the same for models, indented by two
    /// spaces.
    ///
    /// # Errors
    /// None.
    pub fn indented_json(&mut self, json: &str) -> serde_json::Result<()> {
        self.out.extend_from_slice(b"\"content\":[{\"type\":\"text\",\"text\":");
        indent::append_indented(self.out, json);
        self.out.extend_from_slice(b"}]");
        self.structured_content(json);
        Ok(())
    }

    fn structured_content(&mut self, json: &str) {
        if self.revision.is_modern() || (self.revision.has_structured_output() && json.starts_with('{')) {
            self.out.extend_from_slice(b",\"structuredContent\":");
            self.out.extend_from_slice(json.as_bytes());
        }
    }

    /// Text for models, and the same as `{"result": …}` for programs.
    ///
    /// # Errors
    /// None in practice: text can be written as JSON.
    pub fn wrapped_text(&mut self, text: &str) -> serde_json::Result<()> {
        self.out.extend_from_slice(b"\"content\":[{\"type\":\"text\",\"text\":");
        let from = self.out.len();
        serde_json::to_writer(&mut *self.out, text)?;
        let to = self.out.len();
        self.out.extend_from_slice(b"}]");
        if self.revision.has_structured_output() {
            self.out.extend_from_slice(b",\"structuredContent\":{\"result\":");
            // Escaped once.
            self.out.extend_from_within(from..to);
            self.out.push(b'}');
        }
        Ok(())
    }

    /// A whole `CallToolResult` as JSON text. Its `resultType` is dispatch's business and passed over.
    ///
    /// # Errors
    /// When it isn't a JSON object, or `isError` or `_meta` in it are of another type than they must be.
    pub fn result_json(&mut self, json: &str) -> serde_json::Result<()> {
        let members: ObjectMembers<'_> = serde_json::from_str(json)?;
        let mut has_content = false;
        for (name, value) in members.0 {
            match &*name {
                "resultType" => continue,
                "isError" => {
                    self.is_error = serde_json::from_str::<Option<bool>>(value)? == Some(true);
                    continue;
                }
                "_meta" => {
                    self.meta = serde_json::from_str::<Option<Extra>>(value)?;
                    continue;
                }
                "structuredContent" if !self.revision.has_structured_output() || value == "null" => continue,
                "content" => has_content = true,
                _ => {}
            }
            self.write_member(&name, value)?;
        }
        if !has_content {
            self.write_member("content", "[]")?;
        }
        Ok(())
    }

    fn write_member(&mut self, name: &str, value: &str) -> serde_json::Result<()> {
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        }
        serde_json::to_writer(&mut *self.out, name)?;
        self.out.push(b':');
        self.out.extend_from_slice(value.as_bytes());
        Ok(())
    }
}

/// An object's members in their order, values as text.
struct ObjectMembers<'a>(Vec<(std::borrow::Cow<'a, str>, &'a str)>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for ObjectMembers<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<'a>(std::marker::PhantomData<&'a ()>);

        impl<'de: 'a, 'a> serde::de::Visitor<'de> for Visitor<'a> {
            type Value = ObjectMembers<'a>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: serde::de::MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut members = Vec::with_capacity(4);
                while let Some((MemberKey(name), value)) =
                    map.next_entry::<MemberKey<'_>, &serde_json::value::RawValue>()?
                {
                    members.push((name, value.get()));
                }
                Ok(ObjectMembers(members))
            }
        }

        deserializer.deserialize_map(Visitor(std::marker::PhantomData))
    }
}

/// Borrowed unless it has escapes.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct MemberKey<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);

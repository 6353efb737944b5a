//! Mistakes of an author that keep a server from being built.

use mcpace_wire::http::AnnotationError;

/// Reason for which a server can't be built. Always the registering program's mistake.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Two tools, resources, templates, prompts or completions of one name.
    #[error("{kind} {name:?} is there twice")]
    Duplicate {
        /// Kind of the component.
        kind: &'static str,
        /// Name of the component.
        name: String,
    },
    /// A name that is none: empty, longer than 128 characters, or (tools) with characters that tool names can't have.
    #[error("{kind} {name:?}: not a name")]
    Name {
        /// Kind of the component.
        kind: &'static str,
        /// Name of the component.
        name: String,
    },
    /// Something was registered without a handler.
    #[error("{kind} {name:?} has no handler")]
    NoHandler {
        /// Kind of the component.
        kind: &'static str,
        /// Name of the component.
        name: String,
    },
    /// A schema that the protocol can't take: one that is no object's.
    #[error("{kind} {name:?}: the schema of {what} is not an object's")]
    Schema {
        /// Kind of the component.
        kind: &'static str,
        /// Name of the component.
        name: String,
        /// Part of the component that the schema describes.
        what: &'static str,
    },
    /// A tool's `x-mcp-header` annotations are wrong.
    #[error("tool {name:?}: {error}")]
    Header {
        /// Name of the component.
        name: String,
        /// Reason for the rejection.
        error: AnnotationError,
    },
    /// A URI template that is none, or that can't be read backwards.
    #[error("resource template {template:?}: {reason}")]
    Template {
        /// Rejected URI template.
        template: String,
        /// Reason for the rejection.
        reason: &'static str,
    },
    /// A completion of an argument that no prompt or template registered has.
    #[error("completion of {argument:?}: there is no such prompt, or no such template with this variable")]
    Orphan {
        /// Name of the argument.
        argument: String,
    },
    /// A guard that can't be meant so.
    #[error("{kind} {name:?}: {reason}")]
    Guard {
        /// Kind of the component.
        kind: &'static str,
        /// Name of the component.
        name: String,
        /// Reason for the rejection.
        reason: &'static str,
    },
    /// No revision is left to speak.
    #[error("a server speaks at least one revision")]
    NoRevision,
    /// A description can't be written as JSON.
    #[error("{kind} {name:?} can't be written as JSON: {error}")]
    Unwritable {
        /// Kind of the component.
        kind: &'static str,
        /// Name of the component.
        name: String,
        /// Why.
        error: serde_json::Error,
    },
    /// The system gives no random bytes for the server's key.
    #[error("the system gives no random bytes")]
    Random,
}

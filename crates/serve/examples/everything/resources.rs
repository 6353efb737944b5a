//! Resources: text, bytes, a family, and one that can be watched.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcpace_serve::{Builder, Completion, HandlerError, Resource, ResourceRequest, ResourceTemplate};
use serde_json::json;

use crate::content::PIXEL_PNG;

const TEMPLATE: &str = "test://template/{id}/data";

pub(crate) fn register(builder: Builder) -> Builder {
    builder
        .resource(
            Resource::new("test://static-text", "static-text")
                .title("Static Text Resource")
                .description("A static text resource for testing")
                .mime_type("text/plain")
                .text("This is the content of the static text resource."),
        )
        .resource(
            Resource::new("test://static-binary", "static-binary")
                .title("Static Binary Resource")
                .description("A static binary resource (image) for testing")
                .mime_type("image/png")
                .handler(|_| STANDARD.decode(PIXEL_PNG).map_err(HandlerError::internal)),
        )
        .resource(
            Resource::new("test://watched-resource", "watched-resource")
                .title("Watched Resource")
                .description("A resource to subscribe to")
                .mime_type("text/plain")
                .text("Watched resource content"),
        )
        .resource_template(
            ResourceTemplate::new(TEMPLATE, "template")
                .title("Resource Template")
                .description("A resource template with parameter substitution")
                .mime_type("application/json")
                .handler(|request: ResourceRequest| {
                    let id = request.variable("id");
                    Ok(json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")}).to_string())
                }),
        )
        .completion(
            Completion::resource_template(TEMPLATE, "id").handler(|typed| {
                Ok((1..=3).map(|n| n.to_string()).filter(|id| id.starts_with(&typed.value)).collect())
            }),
        )
}

//! Prompts: without and with arguments, with a resource, with a picture.

use mcpace_serve::{Builder, Completion, NoArguments, Prompt};
use mcpace_wire::mcp::{ContentBlock, Extra, PromptMessage, Role};
use serde::Deserialize;

use crate::content::{embedded, pixel};

#[derive(Deserialize, schemars::JsonSchema)]
struct TwoArguments {
    /// First test argument
    arg1: String,
    /// Second test argument
    arg2: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ResourceArgument {
    /// URI of the resource to embed
    resource_uri: String,
}

pub(crate) fn register(builder: Builder) -> Builder {
    builder
        .prompt(
            Prompt::new("test_simple_prompt")
                .title("Simple Test Prompt")
                .description("A simple prompt without arguments")
                .handler(|_: NoArguments| Ok("This is a simple prompt for testing.")),
        )
        .prompt(
            Prompt::new("test_prompt_with_arguments")
                .title("Prompt With Arguments")
                .description("A prompt with required arguments")
                .handler(|given: TwoArguments| {
                    Ok(format!("Prompt with arguments: arg1='{}', arg2='{}'", given.arg1, given.arg2))
                }),
        )
        .completion(Completion::prompt("test_prompt_with_arguments", "arg1").handler(|typed| {
            let words = ["paris", "park", "party", "test"].map(str::to_owned);
            Ok(words.into_iter().filter(|word| word.starts_with(&typed.value)).collect())
        }))
        .prompt(
            Prompt::new("test_prompt_with_embedded_resource")
                .title("Prompt With Embedded Resource")
                .description("A prompt that includes an embedded resource")
                .handler(|given: ResourceArgument| {
                    let resource =
                        embedded(&given.resource_uri, "text/plain", "Embedded resource content for testing.");
                    Ok(vec![user(resource), user(ContentBlock::text("Please process the embedded resource above."))])
                }),
        )
        .prompt(
            Prompt::new("test_prompt_with_image")
                .title("Prompt With Image")
                .description("A prompt that includes image content")
                .handler(|_: NoArguments| {
                    Ok(vec![user(pixel()), user(ContentBlock::text("Please analyze the image above."))])
                }),
        )
}

fn user(content: ContentBlock) -> PromptMessage {
    PromptMessage { role: Role::User, content, extra: Extra::new() }
}

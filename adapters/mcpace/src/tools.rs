//! The tools that every adapter's server has.

use std::sync::Arc;
use std::time::Duration;

use mcpace_serve::{Builder, Context, Tool, ToolError};
use rustix::time::{ClockId, clock_gettime};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::shop::{Order, Shop};

const LARGEST_PAYLOAD: usize = 10_000_000;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Double {
    n: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Wait {
    ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Work {
    us: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Payload {
    bytes: usize,
}

#[derive(Deserialize, JsonSchema)]
struct SearchProducts {
    query: String,
    #[serde(default = "ten")]
    limit: u32,
}

fn ten() -> u32 {
    10
}

#[derive(Deserialize, JsonSchema)]
struct GetUserCart {
    user_id: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Checkout {
    user_id: u64,
    items: Vec<Order>,
}

/// All tools. The tools of the shop are left out where there is no shop.
pub fn register(builder: Builder, shop: Option<Shop>) -> Builder {
    let builder = common(builder);
    match shop {
        Some(shop) => of_shop(builder, &Arc::new(shop)),
        None => builder,
    }
}

fn common(builder: Builder) -> Builder {
    builder
        .tool(
            Tool::new("echo")
                .description("Says the text again")
                .handler(|Echo { text }: Echo| Ok::<_, ToolError>(text)),
        )
        .tool(
            Tool::new("greet")
                .description("Greets")
                .handler(|Greet { name }: Greet| Ok::<_, ToolError>(format!("Hello, {name}!"))),
        )
        .tool(
            Tool::new("double")
                .description("Doubles a number")
                .handler(|Double { n }: Double| Ok::<_, ToolError>((i128::from(n) * 2).to_string())),
        )
        .tool(Tool::new("wait").description("Waits, and lets others work meanwhile").handler_async(
            |Wait { ms }: Wait, _: Context| async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Ok::<_, ToolError>("waited")
            },
        ))
        .tool(Tool::new("work").description("Burns processor time").handler(|Work { us }: Work| {
            let end = burnt() + Duration::from_micros(us);
            while burnt() < end {}
            Ok::<_, ToolError>("worked")
        }))
        .tool(Tool::new("payload").description("Answers with so many bytes").handler(|Payload { bytes }: Payload| {
            if bytes > LARGEST_PAYLOAD {
                return Err(ToolError::new(format!("at most {LARGEST_PAYLOAD} bytes")));
            }
            Ok("x".repeat(bytes))
        }))
}

/// Processor time of this thread, which excludes the work of other threads.
fn burnt() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

fn of_shop(builder: Builder, shop: &Arc<Shop>) -> Builder {
    let (search, cart, checkout) = (Arc::clone(shop), Arc::clone(shop), Arc::clone(shop));
    builder
        .tool(Tool::new("search_products").description("Searches the shop's products").handler_async(
            move |given: SearchProducts, _: Context| {
                let shop = Arc::clone(&search);
                async move { shop.search(&given.query, given.limit).await }
            },
        ))
        .tool(Tool::new("get_user_cart").description("Tells a user and what lies in the cart").handler_async(
            move |given: GetUserCart, _: Context| {
                let shop = Arc::clone(&cart);
                async move { shop.cart(given.user_id).await }
            },
        ))
        .tool(Tool::new("checkout").description("Orders items").handler_async(move |given: Checkout, _: Context| {
            let shop = Arc::clone(&checkout);
            async move { shop.checkout(given.user_id, &given.items).await }
        }))
}

//! The tools that every adapter's server has.

use std::sync::Arc;
use std::time::Duration;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use rustix::time::{ClockId, clock_gettime};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::shop::{Order, Shop};

const LARGEST_PAYLOAD: usize = 10_000_000;

#[derive(Clone)]
pub struct Tools {
    tool_router: ToolRouter<Self>,
    shop: Option<Arc<Shop>>,
}

impl Tools {
    /// Without a shop its tools aren't there.
    pub fn new(shop: Option<Shop>) -> Self {
        let common = Self::common_tools();
        let tool_router = if shop.is_some() { common + Self::shop_tools() } else { common };
        Self { tool_router, shop: shop.map(Arc::new) }
    }

    fn shop(&self) -> Result<&Shop, String> {
        self.shop.as_deref().ok_or_else(|| "there is no shop".to_owned())
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Tools {}

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

#[tool_router(router = common_tools)]
impl Tools {
    #[tool(description = "Says the text again")]
    fn echo(&self, Parameters(Echo { text }): Parameters<Echo>) -> String {
        text
    }

    #[tool(description = "Greets")]
    fn greet(&self, Parameters(Greet { name }): Parameters<Greet>) -> String {
        format!("Hello, {name}!")
    }

    #[tool(description = "Doubles a number")]
    fn double(&self, Parameters(Double { n }): Parameters<Double>) -> String {
        (i128::from(n) * 2).to_string()
    }

    #[tool(description = "Waits, and lets others work meanwhile")]
    async fn wait(&self, Parameters(Wait { ms }): Parameters<Wait>) -> String {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        "waited".to_owned()
    }

    #[tool(description = "Burns processor time")]
    fn work(&self, Parameters(Work { us }): Parameters<Work>) -> String {
        let end = burnt() + Duration::from_micros(us);
        while burnt() < end {}
        "worked".to_owned()
    }

    #[tool(description = "Answers with so many bytes")]
    fn payload(&self, Parameters(Payload { bytes }): Parameters<Payload>) -> Result<String, String> {
        if bytes > LARGEST_PAYLOAD {
            return Err(format!("at most {LARGEST_PAYLOAD} bytes"));
        }
        Ok("x".repeat(bytes))
    }
}

/// This thread's processor time: what others do meanwhile doesn't count as work.
fn burnt() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
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

#[tool_router(router = shop_tools)]
impl Tools {
    #[tool(description = "Searches the shop's products")]
    async fn search_products(
        &self,
        Parameters(SearchProducts { query, limit }): Parameters<SearchProducts>,
    ) -> Result<String, String> {
        self.shop()?.search(&query, limit).await
    }

    #[tool(description = "Tells a user and what lies in the cart")]
    async fn get_user_cart(
        &self,
        Parameters(GetUserCart { user_id }): Parameters<GetUserCart>,
    ) -> Result<String, String> {
        self.shop()?.cart(user_id).await
    }

    #[tool(description = "Orders items")]
    async fn checkout(&self, Parameters(Checkout { user_id, items }): Parameters<Checkout>) -> Result<String, String> {
        self.shop()?.checkout(user_id, &items).await
    }
}

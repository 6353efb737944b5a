//! The shop behind three of the tools: a product API over HTTP, and Redis. One pooled client for each.

use std::collections::HashMap;
use std::time::Duration;

use mcpace_serve::ToolError;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::pipe;
use reqwest::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::program::Failure;

/// Timeout, which is longer than the longest reply time in any load. It turns an unreachable shop into an error.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Shop {
    api: String,
    http: reqwest::Client,
    redis: ConnectionManager,
}

#[derive(Deserialize, JsonSchema, Serialize)]
pub struct Order {
    product_id: u64,
    quantity: u64,
}

#[derive(Serialize)]
struct Cart<'a> {
    user: User<'a>,
    items: Vec<Order>,
    count: usize,
}

#[derive(Serialize)]
struct User<'a> {
    id: u64,
    name: &'a str,
    tier: &'a str,
}

#[derive(Deserialize)]
struct Price {
    total_cents: u64,
}

#[derive(Serialize)]
struct Receipt {
    order: u64,
    total_cents: u64,
    items: usize,
}

impl Shop {
    /// The shop, which connects at the first call and after a loss; `None` where the environment names none.
    pub fn from_environment() -> Result<Option<Self>, Failure> {
        let (Ok(api), Ok(address)) = (std::env::var("SHOP_API"), std::env::var("SHOP_REDIS")) else { return Ok(None) };
        let wrong = |error: redis::RedisError| Failure::Other(format!("SHOP_REDIS {address}: {error}"));
        let client = redis::Client::open(address.as_str()).map_err(wrong)?;
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(1)
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let redis = ConnectionManager::new_lazy_with_config(client, config).map_err(wrong)?;
        let http = reqwest::Client::builder()
            .timeout(PATIENCE)
            .no_proxy()
            .build()
            .map_err(|error| Failure::Other(error.to_string()))?;
        Ok(Some(Self { api: api.trim_end_matches('/').to_owned(), http, redis }))
    }

    pub async fn search(&self, query: &str, limit: u32) -> Result<String, ToolError> {
        let request = self.http.get(format!("{}/products", self.api)).query(&[("q", query)]).query(&[("limit", limit)]);
        answered(request.send().await)?.text().await.map_err(unreachable_api)
    }

    pub async fn cart(&self, user: u64) -> Result<String, ToolError> {
        let (about, cart): (HashMap<String, String>, Vec<String>) = pipe()
            .hgetall(format!("user:{user}"))
            .lrange(format!("cart:{user}"), 0, -1)
            .query_async(&mut self.redis.clone())
            .await
            .map_err(unreachable_redis)?;
        let (Some(name), Some(tier)) = (about.get("name"), about.get("tier")) else {
            return Err(ToolError::new(format!("no user {user}")));
        };
        let items: Vec<Order> = cart.iter().filter_map(|element| order(element)).collect();
        json(&Cart { user: User { id: user, name, tier }, count: items.len(), items })
    }

    pub async fn checkout(&self, user: u64, items: &[Order]) -> Result<String, ToolError> {
        let request = self.http.post(format!("{}/price", self.api)).json(&serde_json::json!({ "items": items }));
        let Price { total_cents } = answered(request.send().await)?.json().await.map_err(unreachable_api)?;
        let history = format!("history:{user}");
        let (order, _spent): (u64, u64) = pipe()
            .incr(format!("orders:{user}"), 1)
            .hincr(format!("user:{user}"), "spent", total_cents)
            .lpush(&history, total_cents)
            .ignore()
            .ltrim(&history, 0, 9)
            .ignore()
            .query_async(&mut self.redis.clone())
            .await
            .map_err(unreachable_redis)?;
        json(&Receipt { order, total_cents, items: items.len() })
    }
}

/// An element of a cart: `PRODUCT:QUANTITY`.
fn order(element: &str) -> Option<Order> {
    let (product, quantity) = element.split_once(':')?;
    Some(Order { product_id: product.parse().ok()?, quantity: quantity.parse().ok()? })
}

fn answered(response: reqwest::Result<Response>) -> Result<Response, ToolError> {
    let response = response.map_err(unreachable_api)?;
    if response.status().is_success() {
        return Ok(response);
    }
    Err(ToolError::new(format!("the product API answered {}", response.status().as_u16())))
}

fn unreachable_api(error: reqwest::Error) -> ToolError {
    ToolError::new(format!("the product API: {error}"))
}

fn unreachable_redis(error: redis::RedisError) -> ToolError {
    ToolError::new(format!("Redis: {error}"))
}

fn json(answer: &impl Serialize) -> Result<String, ToolError> {
    serde_json::to_string(answer).map_err(|error| ToolError::new(error.to_string()))
}

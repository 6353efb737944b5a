//! The shop's two requests, bytes in and bytes out.
//!
//! Limits: bodies of [`LARGEST_BODY`], [`MOST_SHOWN`] products a search, [`MOST_ITEMS`] items a price. The results of
//! [`MOST_REMEMBERED`] searches are cached; any further search pays its full cost.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;

use http::{Method, StatusCode};
use serde::Deserialize;

use super::catalogue::{ProductCatalogue, SearchResult};

pub(super) const LARGEST_BODY: usize = 64 * 1024;
const LONGEST_SEARCH: usize = 200;
const MOST_SHOWN: usize = 100;
const MOST_ITEMS: usize = 1_000;
const MOST_OF_ONE: u32 = 1_000_000;
const MOST_REMEMBERED: usize = 10_000;
const SHOWN: usize = 10;

/// A status and a JSON body.
pub(super) type ApiAnswer = (StatusCode, String);

/// Answers requests; one thread's own.
pub(super) struct Api {
    catalogue: ProductCatalogue,
    /// By what was searched.
    remembered: RefCell<HashMap<String, SearchResult>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OrderBody {
    items: Vec<Item>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    product_id: u32,
    quantity: u32,
}

impl Api {
    pub(super) fn new(products: u32) -> Self {
        Self { catalogue: ProductCatalogue::new(products), remembered: RefCell::default() }
    }

    /// The answer to any request.
    pub(super) fn answer_request(&self, method: &Method, path: &str, query: &str, body: &[u8]) -> ApiAnswer {
        match (path, method) {
            ("/products", &Method::GET) => self.search_products(query),
            ("/price", &Method::POST) => self.price_order(body),
            ("/products" | "/price", _) => {
                refused_answer(StatusCode::METHOD_NOT_ALLOWED, "GET /products or POST /price")
            }
            _ => refused_answer(StatusCode::NOT_FOUND, "there are /products and /price only"),
        }
    }

    fn search_products(&self, query: &str) -> ApiAnswer {
        let (mut part, mut limit) = (None, SHOWN);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "q" => part = Some(value),
                "limit" => match value.parse() {
                    Ok(number @ 1..=MOST_SHOWN) => limit = number,
                    _ => return refused_answer(StatusCode::BAD_REQUEST, "limit is a number from 1 to 100"),
                },
                _ => return refused_answer(StatusCode::BAD_REQUEST, "only q and limit can be asked for"),
            }
        }
        match part {
            Some(part) if !part.is_empty() && part.len() <= LONGEST_SEARCH => {
                (StatusCode::OK, self.matching_json(&part, limit))
            }
            _ => refused_answer(StatusCode::BAD_REQUEST, "q is what names have in them, 1 to 200 bytes"),
        }
    }

    fn matching_json(&self, part: &str, limit: usize) -> String {
        let mut remembered = self.remembered.borrow_mut();
        let searched;
        let found = match remembered.get(part) {
            Some(found) => found,
            None => {
                searched = self.catalogue.search_names(part, MOST_SHOWN);
                if remembered.len() < MOST_REMEMBERED {
                    remembered.entry(part.to_owned()).or_insert(searched)
                } else {
                    &searched
                }
            }
        };
        let mut text = format!(r#"{{"total":{},"products":["#, found.total);
        for (number, place) in found.first.iter().take(limit).enumerate() {
            if number > 0 {
                text.push(',');
            }
            text.push_str(self.catalogue.product_json(*place));
        }
        text.push_str("]}");
        text
    }

    fn price_order(&self, body: &[u8]) -> ApiAnswer {
        let Ok(order) = serde_json::from_slice::<OrderBody>(body) else {
            return refused_answer(StatusCode::BAD_REQUEST, "the body is {items: [{product_id, quantity}]}");
        };
        if order.items.len() > MOST_ITEMS {
            return refused_answer(StatusCode::BAD_REQUEST, "at most 1000 items at a time");
        }
        let mut total = 0u64;
        for Item { product_id, quantity } in order.items {
            let Some(price) = self.catalogue.product_price(product_id) else {
                return refused_answer(StatusCode::NOT_FOUND, &format!("no product {product_id}"));
            };
            if !(1..=MOST_OF_ONE).contains(&quantity) {
                return refused_answer(StatusCode::BAD_REQUEST, "quantity is a number from 1 to 1000000");
            }
            total += u64::from(price) * u64::from(quantity);
        }
        (StatusCode::OK, format!(r#"{{"total_cents":{total}}}"#))
    }
}

/// An error's answer; `reason` has nothing to escape.
pub(super) fn refused_answer(status: StatusCode, reason: &str) -> ApiAnswer {
    let mut text = String::new();
    // Writing to a string never fails.
    let _ = write!(text, r#"{{"error":"{reason}"}}"#);
    (status, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(api: &Api, query: &str) -> ApiAnswer {
        api.answer_request(&Method::GET, "/products", query, b"")
    }

    fn priced(api: &Api, body: &str) -> ApiAnswer {
        api.answer_request(&Method::POST, "/price", "", body.as_bytes())
    }

    #[test]
    fn a_search_is_answered_alike_the_second_time() {
        let api = Api::new(500);
        let (status, first) = get(&api, "q=lamp&limit=3");
        assert_eq!(status, StatusCode::OK);
        let value: serde_json::Value = serde_json::from_str(&first).unwrap();
        assert_eq!(value["products"].as_array().unwrap().len(), 3);
        assert!(value["total"].as_u64().unwrap() > 3);
        assert_eq!(get(&api, "q=lamp&limit=3").1, first);
        let ten: serde_json::Value = serde_json::from_str(&get(&api, "q=lamp").1).unwrap();
        assert_eq!(ten["products"].as_array().unwrap().len(), 10.min(ten["total"].as_u64().unwrap() as usize));
        assert_eq!(ten["products"][2], value["products"][2]);
    }

    #[test]
    fn what_cannot_be_searched_is_refused() {
        let api = Api::new(10);
        let long = format!("q={}", "a".repeat(201));
        for query in ["", "q=", "q=a&limit=0", "q=a&limit=101", "q=a&limit=x", "q=a&page=2", &long] {
            assert_eq!(get(&api, query).0, StatusCode::BAD_REQUEST, "{query}");
        }
        assert_eq!(api.answer_request(&Method::GET, "/", "", b"").0, StatusCode::NOT_FOUND);
        assert_eq!(api.answer_request(&Method::GET, "/price", "", b"").0, StatusCode::METHOD_NOT_ALLOWED);
    }

    #[test]
    fn memory_of_searches_is_bounded() {
        let api = Api::new(1);
        for number in 0..MOST_REMEMBERED + 5 {
            assert_eq!(get(&api, &format!("q=none{number}")).1, r#"{"total":0,"products":[]}"#);
        }
        assert_eq!(api.remembered.borrow().len(), MOST_REMEMBERED);
    }

    #[test]
    fn prices_add_up_and_what_is_no_order_is_refused() {
        let api = Api::new(10);
        let (one, two) = (api.catalogue.product_price(1).unwrap(), api.catalogue.product_price(2).unwrap());
        let body = r#"{"items":[{"product_id":1,"quantity":3},{"product_id":2,"quantity":1}]}"#;
        assert_eq!(priced(&api, body), (StatusCode::OK, format!(r#"{{"total_cents":{}}}"#, 3 * one + two)));
        assert_eq!(priced(&api, r#"{"items":[]}"#).1, r#"{"total_cents":0}"#);
        let unknown = priced(&api, r#"{"items":[{"product_id":11,"quantity":1}]}"#);
        assert_eq!(unknown, (StatusCode::NOT_FOUND, r#"{"error":"no product 11"}"#.to_owned()));
        for body in
            ["", "[]", r#"{"items":[{"product_id":-1,"quantity":1}]}"#, r#"{"items":[{"product_id":1,"quantity":0}]}"#]
        {
            assert_eq!(priced(&api, body).0, StatusCode::BAD_REQUEST, "{body}");
        }
    }
}

//! The shop's API and the null server over real sockets.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpStream};

use mcpace_target::{Blame, Null, RunningShop};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Sends one request on a connection that the server closes, and returns the status line and the body.
fn ask(base: &str, method: &str, path: &str, body: &str) -> (String, String) {
    let authority = base.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let mut stream = TcpStream::connect(authority).unwrap();
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: shop\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut reply = String::new();
    // A server that refuses a body may close before it has read all of it.
    let _ = stream.read_to_string(&mut reply);
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

#[test]
fn a_shop_searches_prices_counts_and_ends() {
    let shop = RunningShop::start(0, 1_000).unwrap();
    let url = shop.url();
    let (status, body) = ask(&url, "GET", "/products?q=kestrel%20silent&limit=1", "");
    assert_eq!(status, "HTTP/1.1 200 OK");
    let found: serde_json::Value = serde_json::from_str(&body).unwrap();
    let product = &found["products"][0];
    assert!(product["name"].as_str().unwrap().starts_with("Kestrel Silent "), "{body}");
    let order = format!(r#"{{"items":[{{"product_id":{},"quantity":2}}]}}"#, product["id"]);
    let (_, priced) = ask(&url, "POST", "/price", &order);
    let cents = product["price_cents"].as_u64().unwrap();
    assert_eq!(priced, format!(r#"{{"total_cents":{}}}"#, 2 * cents));
    assert_eq!(ask(&url, "PUT", "/price", "").0, "HTTP/1.1 405 Method Not Allowed");
    assert_eq!(ask(&url, "POST", "/price", &"x".repeat(70_000)).0, "HTTP/1.1 413 Payload Too Large");
    assert_eq!(shop.requests(), 4);
    drop(shop);
    assert!(TcpStream::connect(url.strip_prefix("http://").unwrap()).is_err());
}

#[test]
fn a_shops_port_that_is_taken_is_named() {
    let first = RunningShop::start(0, 1).unwrap();
    let port = first.url().rsplit_once(':').unwrap().1.parse().unwrap();
    let error = RunningShop::start(port, 1).unwrap_err();
    assert_eq!(error.blame(), Blame::Environment);
    assert_eq!(
        error.to_string(),
        format!("127.0.0.1:{port} is already in use; choose another port, or 0 for any free one")
    );
}

#[test]
fn the_null_server_answers_from_all_its_threads_and_ends() {
    let null = Null::start(LOOPBACK, 0, 2).unwrap();
    assert_eq!(null.workers(), 2);
    let url = null.url();
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}"#;
    // Which thread takes a connection is the kernel's choice.
    for _ in 0..16 {
        let (status, body) = ask(&url, "POST", "/mcp", call);
        assert_eq!(status, "HTTP/1.1 200 OK");
        let reply: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!((&reply["id"], &reply["result"]["content"][0]["text"]), (&7.into(), &"hi".into()));
    }
    assert_eq!(ask(&url, "GET", "/mcp", "").0, "HTTP/1.1 405 Method Not Allowed");
    let authority = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
    drop(null);
    assert!(TcpStream::connect(authority).is_err());
}

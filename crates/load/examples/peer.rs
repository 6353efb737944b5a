//! A target of the tests' own, in a process of its own: it can be stopped and killed.
//!
//! ```text
//! peer http    prints its port, then answers every POST
//! peer stdio   answers every line
//! ```

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    match std::env::args().nth(1).as_deref() {
        Some("http") => http(),
        Some("stdio") => stdio(),
        _ => Err("usage: peer http|stdio".into()),
    }
}

fn http() -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    loop {
        let stream = listener.accept()?.0;
        // A connection that fails is its client's end.
        thread::spawn(move || serve(&stream).ok());
    }
}

fn serve(stream: &TcpStream) -> Result<(), Failure> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let reply = answer(&serde_json::from_slice(&body)?).to_string();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", reply.len());
        (&*stream).write_all(format!("{head}{reply}").as_bytes())?;
    }
}

fn stdio() -> Result<(), Failure> {
    for line in std::io::stdin().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        if message["params"]["name"] == "exit" {
            return Ok(());
        }
        if message["id"].is_number() {
            println!("{}", json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}));
            println!("{}", answer(&message));
        }
    }
    Ok(())
}

fn answer(message: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": "2025-06-18"}})
}

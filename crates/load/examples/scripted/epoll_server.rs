//! The target over epoll. It never sleeps, so that a reply goes out when it is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use memchr::memmem::find;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::time::{ClockId, Timespec, clock_gettime};

const LISTENER: u64 = u64::MAX;
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Delay of a call. In each 200 calls, 140 take 1 ms, 50 take 2 ms, 9 take 5 ms and one takes 20 ms, in a fixed mixed
/// order.
fn delay_ns(number: u64) -> u64 {
    1_000_000
        * match number * 77 % 200 {
            0..140 => 1,
            140..190 => 2,
            190..199 => 5,
            _ => 20,
        }
}

struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

/// Serves `address` until the standard input ends, then prints the times of the replies.
pub(crate) fn serve_until_input_ends(address: &str) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    std::thread::spawn(move || {
        // An error is an end, too.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        over.store(true, Ordering::Relaxed);
    });
    let (mut connections, mut due, mut written) = (Vec::new(), BinaryHeap::new(), Vec::with_capacity(1 << 20));
    let mut events: Vec<epoll::Event> = Vec::with_capacity(512);
    while !is_over.load(Ordering::Relaxed) {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), Some(&NOW))?;
        for event in &events {
            if event.data.u64() == LISTENER {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    let number = epoll::EventData::new_u64(connections.len() as u64);
                    epoll::add(&epoll, &stream, number, epoll::EventFlags::IN | epoll::EventFlags::ET)?;
                    connections.push(Connection { stream, read: Vec::new() });
                }
            } else if let Some(call) = connections[event.data.u64() as usize].call()? {
                due.push(Reverse((now_ns() + delay_ns(call.number), call.number, call.id, event.data.u64())));
            }
            answer(&mut due, &mut connections, &mut written)?;
        }
        answer(&mut due, &mut connections, &mut written)?;
    }
    println!("{}", serde_json::to_string(&written)?);
    Ok(())
}

type Due = BinaryHeap<Reverse<(u64, u64, u64, u64)>>;

/// Sends the replies that are due.
fn answer(due: &mut Due, connections: &mut [Connection], written: &mut Vec<(u64, u64, u64)>) -> std::io::Result<()> {
    while due.peek().is_some_and(|Reverse((at, ..))| *at <= now_ns()) {
        let Some(Reverse((_, number, id, connection))) = due.pop() else { break };
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
        let length = body.len();
        let reply =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}");
        // Over loopback the kernel puts the bytes into the other side's socket within the write.
        let before = now_ns();
        connections[connection as usize].stream.write_all(reply.as_bytes())?;
        written.push((number, before, now_ns()));
    }
    Ok(())
}

struct Call {
    id: u64,
    number: u64,
}

impl Connection {
    /// Reads; the call once it is whole. A client has one at a time.
    fn call(&mut self) -> Result<Option<Call>, Box<dyn Error>> {
        let mut bytes = [0; 4096];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(None),
                Ok(length) => self.read.extend_from_slice(&bytes[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        // The arguments come last.
        let (Some(id), Some(number)) = (self.number(b"\"id\":"), self.number(b"\"n\":")) else { return Ok(None) };
        if !self.read.ends_with(b"}}}") {
            return Ok(None);
        }
        self.read.clear();
        Ok(Some(Call { id, number }))
    }

    fn number(&self, name: &[u8]) -> Option<u64> {
        let rest = &self.read[find(&self.read, name)? + name.len()..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
    }
}

fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

//! The programs on both sides of the recorder: the null server, the closed loop and the holder of streams.

use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::Outcome;

const BODY: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}"#;
const REPLY_BODY: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}]}}"#;
const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n3a\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n\r\n";

/// A `tools/call` as small clients send it.
pub(crate) fn request(url: &url::Url) -> Vec<u8> {
    let (host, path) = (url.authority(), url.path());
    let accept = "application/json, text/event-stream";
    let head = format!("POST {path} HTTP/1.1\r\nhost: {host}\r\naccept: {accept}\r\ncontent-type: application/json");
    format!("{head}\r\nmcp-protocol-version: 2025-06-18\r\ncontent-length: {}\r\n\r\n{BODY}", BODY.len()).into_bytes()
}

pub(crate) fn reply() -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json";
    format!("{head}\r\ncontent-length: {}\r\n\r\n{REPLY_BODY}", REPLY_BODY.len()).into_bytes()
}

/// Answers every request with fixed bytes, on a separate thread. It detects only the end of the request.
pub(crate) fn null_server() -> Outcome<String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            let Ok(listener) = TcpListener::from_std(listener) else {
                return;
            };
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream));
            }
        });
    });
    Ok(url)
}

async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (reply, mut buffer, mut filled) = (reply(), vec![0; 16 * 1024], 0);
    loop {
        let size = stream.read(&mut buffer[filled..]).await?;
        if size == 0 {
            return Ok(());
        }
        filled += size;
        if buffer[..filled].ends_with(BODY.as_bytes()) {
            filled = 0;
            stream.write_all(&reply).await?;
        }
    }
}

/// Exchanges a second of `connections` callers, each of which waits for its reply before the next request.
pub(crate) fn closed_loop(url: &str, connections: usize, time: Duration) -> Outcome<f64> {
    let url: url::Url = url.parse()?;
    let address = *url.socket_addrs(|| None)?.first().ok_or("no address")?;
    let request: Arc<[u8]> = request(&url).into();
    let done = Arc::new(AtomicU64::new(0));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let start = Instant::now();
    runtime.block_on(async {
        for _ in 0..connections {
            tokio::spawn(call_again_and_again(address, Arc::clone(&request), Arc::clone(&done)));
        }
        tokio::time::sleep(time).await;
    });
    Ok(done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64())
}

async fn call_again_and_again(address: SocketAddr, request: Arc<[u8]>, done: Arc<AtomicU64>) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut reply = reply();
    loop {
        stream.write_all(&request).await?;
        stream.read_exact(&mut reply).await?;
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Serves streams and holds `count` of them open through the recorder whose URL comes on stdin, until stdin ends.
pub(crate) fn hold_streams(count: usize) -> Outcome<()> {
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}/mcp", listener.local_addr()?);
        std::io::stdout().flush()?;
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)?;
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(stream_on(stream));
            }
        });
        let mut open = Vec::new();
        let url: url::Url = line.trim().parse()?;
        for _ in 0..count {
            open.push(open_stream(&url).await?);
        }
        println!("{}", open.len());
        std::io::stdout().flush()?;
        std::io::stdin().lock().read_line(&mut line)?;
        Ok(())
    })
}

async fn open_stream(url: &url::Url) -> Outcome<TcpStream> {
    let address = *url.socket_addrs(|| None)?.first().ok_or("no address")?;
    let mut stream = TcpStream::connect(address).await?;
    let head = format!("GET {} HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\n\r\n", url.path(), url.authority());
    stream.write_all(head.as_bytes()).await?;
    stream.read_exact(&mut vec![0; STREAM.len()]).await?;
    Ok(stream)
}

async fn stream_on(mut stream: TcpStream) -> std::io::Result<()> {
    let mut buffer = vec![0; 4096];
    if stream.read(&mut buffer).await? > 0 {
        stream.write_all(STREAM.as_bytes()).await?;
    }
    // Open until the recorder leaves.
    stream.read(&mut buffer).await.map(drop)
}

/// Raises the limit of open files as far as the system lets us, and returns it. Windows has no such limit.
pub(crate) fn raise_file_limit() -> u64 {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        const WANTED: u64 = 65_536;
        let maximum = getrlimit(Resource::Nofile).maximum;
        // Only a privileged process may raise the maximum; any may use all of it.
        for limit in [maximum.map(|maximum| maximum.max(WANTED)), maximum] {
            let _ = setrlimit(Resource::Nofile, Rlimit { current: limit, maximum: limit });
        }
        getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
    }
    #[cfg(not(unix))]
    u64::MAX
}

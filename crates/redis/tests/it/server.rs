//! A private redis-server, and servers of ours over it.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcpace_redis::{ConnectionEvent, Options, Redis};
use mcpace_serve::http::{self, ServerHandle};
use mcpace_serve::store::OnDown;
use mcpace_serve::{Context, NoArguments, Server, Tool, ToolError};
use redis::{FromRedisValue, Value};
use tempfile::TempDir;
use tokio::sync::watch;

use crate::fixture;

/// The limit of every wait.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// A Redis of this test's own. Acknowledged writes are on disk, so they survive a restart.
pub(crate) struct RedisServer {
    folder: TempDir,
    port: u16,
    child: Option<Child>,
}

impl RedisServer {
    pub(crate) fn start() -> Self {
        // Another may take the port between our finding it free and Redis's taking it.
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut server = Self { folder: tempfile::tempdir().unwrap(), port, child: None };
            if server.run() {
                return server;
            }
        }
        panic!("redis-server doesn't start");
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(crate) fn restart(&mut self) {
        assert!(self.run(), "redis-server doesn't start again");
    }

    /// Starts again with nothing in it.
    pub(crate) fn restart_empty(&mut self) {
        self.folder = tempfile::tempdir().unwrap();
        self.restart();
    }

    pub(crate) fn ask<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        words[1..].iter().for_each(|word| {
            command.arg(*word);
        });
        let client = redis::Client::open(self.url()).unwrap();
        command.query(&mut client.get_connection_with_timeout(LIMIT).unwrap()).unwrap()
    }

    fn run(&mut self) -> bool {
        let mut command = Command::new(program());
        command.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let port = self.port.to_string();
        command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]);
        command.args(["--appendfsync", "always", "--daemonize", "no"]);
        let mut child = command.spawn().unwrap();
        let end = Instant::now() + LIMIT;
        while Instant::now() < end && child.try_wait().unwrap().is_none() {
            let client = redis::Client::open(self.url()).unwrap();
            let answer = client.get_connection_with_timeout(LIMIT).and_then(|mut connection| {
                // An error for as long as it reads its file.
                redis::cmd("PING").query::<Value>(&mut connection)?;
                redis::cmd("INFO").arg("server").query::<String>(&mut connection)
            });
            // The answering process must be the one started here.
            if answer.is_ok_and(|info| info.contains(&format!("process_id:{}\r\n", child.id()))) {
                self.child = Some(child);
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = child.kill();
        let _ = child.wait();
        false
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A way to a Redis that can be cut for one process alone.
pub(crate) struct Proxy {
    address: SocketAddr,
    is_cut: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    pub(crate) fn before(redis: &RedisServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self { address: listener.local_addr().unwrap(), is_cut: Arc::default(), open: Arc::default() };
        let (port, is_cut, open) = (redis.port, Arc::clone(&proxy.is_cut), Arc::clone(&proxy.open));
        // Ends with the test's process.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten().filter(|_| !is_cut.load(SeqCst)) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                open.lock().unwrap().extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
                for (mut from, mut to) in [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)]
                {
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        proxy
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    pub(crate) fn cut(&self) {
        self.is_cut.store(true, SeqCst);
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn mend(&self) {
        self.is_cut.store(false, SeqCst);
    }
}

fn program() -> PathBuf {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path.split(':').chain(["/usr/sbin", "/usr/local/sbin", "/usr/local/bin"]).map(PathBuf::from);
    let mut found = folders.map(|folder| folder.join("redis-server"));
    found.find(|program| program.is_file()).expect("redis-server is not installed: apt-get install redis-server")
}

/// A server of ours, as in a process of its own: nothing is shared but Redis.
pub(crate) struct Member {
    pub(crate) running: ServerHandle,
    pub(crate) server: Server,
    /// Events of the connection so far.
    pub(crate) events: watch::Receiver<Vec<ConnectionEvent>>,
}

impl Member {
    pub(crate) fn address(&self) -> std::net::SocketAddr {
        self.running.address()
    }

    /// Waits for what is said of the connection.
    pub(crate) async fn told(&mut self, wanted: impl FnMut(&Vec<ConnectionEvent>) -> bool) {
        crate::peer::limited("word of the connection", self.events.wait_for(wanted)).await.unwrap().unwrap();
    }
}

/// Looks again and again whether something holds in Redis, for so long only.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let looking = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    crate::peer::limited(what, looking).await.unwrap();
}

pub(crate) fn options(on_down: OnDown) -> (Options, watch::Receiver<Vec<ConnectionEvent>>) {
    let (sender, events) = watch::channel(Vec::new());
    let sender = Mutex::new(sender);
    let tell = Arc::new(move |event: &ConnectionEvent| {
        sender.lock().unwrap().send_modify(|events| events.push(event.clone()))
    });
    // Longer than by default: machines that test are busy.
    let limit = Duration::from_secs(5);
    (Options { prefix: "test:".to_owned(), on_down, limit, tell, ..Options::default() }, events)
}

pub(crate) fn member(redis: &RedisServer, on_down: OnDown, change: impl FnOnce(&mut http::Options)) -> Member {
    member_at(&redis.url(), fixture::server(""), on_down, change)
}

/// One with a server of the test's own, and a way to Redis of its own.
pub(crate) fn member_at(url: &str, server: Server, on_down: OnDown, change: impl FnOnce(&mut http::Options)) -> Member {
    let (options, events) = options(on_down);
    let redis = Redis::open(url, options).unwrap();
    let mut options = http::Options { address: ([127, 0, 0, 1], 0).into(), ..http::Options::default() };
    options.store = Some(redis.stores());
    change(&mut options);
    let running = http::serve(server.clone(), options).unwrap();
    Member { running, server, events }
}

/// A server whose tool `steps` says something, waits for the gate, says more and is done.
pub(crate) fn gated() -> (Server, watch::Sender<bool>) {
    let gate = watch::Sender::new(false);
    let waiting = gate.clone();
    let steps = Tool::new("steps").handler_async(move |_: NoArguments, context: Context| {
        let mut gate = waiting.subscribe();
        async move {
            context.progress(1.0, Some(2.0), None);
            let _ = gate.wait_for(|open| *open).await;
            context.progress(2.0, Some(2.0), None);
            Ok::<_, ToolError>("stepped")
        }
    });
    (Server::builder("gated", "1").tool(steps).build().unwrap(), gate)
}

/// A session whose client takes questions; its id.
pub(crate) async fn eliciting(address: SocketAddr, revision: &str) -> String {
    let mut initialize = crate::http_harness::initialize(revision);
    initialize["params"]["capabilities"] = serde_json::json!({"elicitation": {}});
    let begun = crate::http_harness::ask(address, &crate::http_harness::Request::post(&initialize)).await;
    begun.head.header("mcp-session-id").unwrap().to_owned()
}

/// Two of them.
pub(crate) fn pair(redis: &RedisServer, change: fn(&mut http::Options)) -> [Member; 2] {
    [(); 2].map(|()| member(redis, OnDown::Refuse, change))
}

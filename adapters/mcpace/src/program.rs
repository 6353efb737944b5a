//! The program's side of the process contract: its options, its output, its end. Knows nothing of MCP.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// Why the program ends early.
pub enum Failure {
    /// This release doesn't support the request.
    Unsupported(String),
    /// Any other failure, such as a wrong option or a port in use.
    Other(String),
}

impl Failure {
    /// Prints one line on stderr and returns the exit code.
    pub fn tell(&self) -> ExitCode {
        let (Self::Unsupported(why) | Self::Other(why)) = self;
        eprintln!("{why}");
        match self {
            Self::Unsupported(_) => ExitCode::from(127),
            Self::Other(_) => ExitCode::FAILURE,
        }
    }
}

/// The options of the command line.
pub struct Given {
    pub host: String,
    pub port: u16,
    pub mode: String,
    pub stateful: bool,
}

impl Given {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut given = Self { host: "127.0.0.1".into(), port: 0, mode: "auto".into(), stateful: false };
        while let Some(option) = words.next() {
            let value = words.next().ok_or_else(|| Failure::Other(format!("{option} needs a value")))?;
            match option.as_str() {
                "--host" => given.host = value,
                "--port" => {
                    given.port = value.parse().map_err(|_| Failure::Other(format!("--port {value} is no port")))?;
                }
                "--mode" => given.mode = value,
                "--state" => given.stateful = stateful(&value)?,
                _ => return Err(Failure::Other(format!("{option} is no option of this program"))),
            }
        }
        Ok(given)
    }

    /// The first address of the host.
    pub async fn address(&self) -> Result<SocketAddr, Failure> {
        let no_such = |why: String| Failure::Other(format!("can't listen on {}: {why}", self.host));
        let mut found = tokio::net::lookup_host((self.host.as_str(), self.port))
            .await
            .map_err(|error| no_such(error.to_string()))?;
        found.next().ok_or_else(|| no_such("it has no address".into()))
    }
}

fn stateful(value: &str) -> Result<bool, Failure> {
    match value {
        "stateless" => Ok(false),
        "stateful" => Ok(true),
        _ => Err(Failure::Other(format!("--state is stateless or stateful, not {value}"))),
    }
}

/// Resolves when stdin ends, also because the parent process has ended, or at SIGTERM.
pub fn told_to_end() -> Result<impl Future<Output = ()>, Failure> {
    let mut terminated =
        signal(SignalKind::terminate()).map_err(|error| Failure::Other(format!("no SIGTERM: {error}")))?;
    let (ended, end) = oneshot::channel();
    // A separate thread, because a read of stdin can't be cancelled, and the runtime would wait for it at its end.
    std::thread::spawn(move || {
        let mut scrap = [0; 256];
        while matches!(std::io::stdin().read(&mut scrap), Ok(read) if read > 0) {}
        let _ = ended.send(());
    });
    Ok(async move {
        tokio::select! {
            _ = terminated.recv() => (),
            _ = end => (),
        }
    })
}

/// Prints the only line on stdout.
pub fn say_ready(address: SocketAddr) -> Result<(), Failure> {
    let mut notes = Vec::new();
    if cfg!(debug_assertions) {
        notes.push("a debug build: its figures mean nothing");
    }
    let ready = serde_json::json!({
        "ready": true, "sdk": "mcpace", "version": env!("MCPACE_VERSION"), "pid": std::process::id(),
        "url": format!("http://{address}/mcp"), "workers": 1, "notes": notes,
    });
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{ready}").and_then(|()| stdout.flush()).map_err(|error| Failure::Other(error.to_string()))
}

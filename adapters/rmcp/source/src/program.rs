//! The program's side of the contract: what it is told, what it says, when it ends. Nothing of MCP.

use std::fmt::Display;
use std::io::{Read, Write};
use std::process::ExitCode;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// Why the program ends early.
pub enum Failure {
    /// This release can't do that.
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
        let mut given = Self { host: "127.0.0.1".into(), port: 0, mode: "sse".into(), stateful: false };
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

    pub fn no_listener(&self, error: &dyn Display) -> Failure {
        Failure::Other(format!("can't listen on {}:{}: {error}", self.host, self.port))
    }
}

fn stateful(value: &str) -> Result<bool, Failure> {
    match value {
        "stateless" => Ok(false),
        "stateful" => Ok(true),
        _ => Err(Failure::Other(format!("--state is stateless or stateful, not {value}"))),
    }
}

/// Resolves when stdin ends, which it does with whoever started this program, or at SIGTERM.
pub fn told_to_end() -> Result<impl Future<Output = ()>, Failure> {
    let mut terminated =
        signal(SignalKind::terminate()).map_err(|error| Failure::Other(format!("no SIGTERM: {error}")))?;
    let (ended, end) = oneshot::channel();
    // A thread of its own: a read of stdin can't be given up, and the runtime would wait for it at its end.
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

/// The one line on stdout.
pub fn say_ready(listener: &TcpListener, nodelay: bool) -> Result<(), Failure> {
    let gone = |error: std::io::Error| Failure::Other(error.to_string());
    let address = listener.local_addr().map_err(gone)?;
    let threads = tokio::runtime::Handle::current().metrics().num_workers();
    let mut notes = vec![format!("tokio: {threads} threads")];
    if nodelay {
        notes.push("TCP_NODELAY on accepted connections".into());
    }
    let ready = serde_json::json!({
        "ready": true, "sdk": "rmcp", "version": env!("RMCP_VERSION"), "pid": std::process::id(),
        "url": format!("http://{address}/mcp"), "workers": 1, "notes": notes,
    });
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{ready}").and_then(|()| stdout.flush()).map_err(gone)
}

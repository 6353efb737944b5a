//! For `--soak`: what the server knows of itself, tools that leak on purpose, and limits short enough that what is abandoned
//! ends while somebody looks. `examples/soak` asks; nobody else has to know.

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use mcpace_serve::http::{Options, ServerHandle};
use mcpace_serve::{Builder, Limits, NoArguments, Tool, ToolError};
use serde::Deserialize;
use serde_json::json;
use tokio::runtime::Handle;

/// How long anything may be left alone.
const PATIENCE: Duration = Duration::from_secs(3);

/// Answer of the tool `figures`.
#[derive(Default)]
pub(crate) struct Watched {
    running: OnceLock<ServerHandle>,
    /// The runtimes of the workers that were asked so far: each tells its own.
    runtimes: Mutex<HashMap<ThreadId, Handle>>,
}

#[derive(Clone, Copy, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Memory,
    Tasks,
    Descriptors,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Leak {
    /// Memory that is never given back.
    what: Kind,
}

impl Watched {
    pub(crate) fn register(self: &Arc<Self>, builder: Builder) -> Builder {
        let watched = Arc::clone(self);
        builder
            .limits(Limits { task_time: PATIENCE, answer_time: PATIENCE, ..Limits::default() })
            .tool(
                Tool::new("figures")
                    .description("Workers asked so far, their tasks, legacy sessions")
                    .handler(move |_: NoArguments| Ok::<_, ToolError>(watched.figures())),
            )
            .tool(Tool::new("leak").description("Leaks on purpose").handler_async(|leak: Leak, _| async move {
                leak_some(leak.what).map_err(ToolError::new)?;
                Ok::<_, ToolError>("leaked")
            }))
    }

    /// Serves until the process is killed, or the one that started it has ended.
    pub(crate) fn serve(&self, running: ServerHandle) -> ! {
        // Where that can't be had, a killed soak leaves its server behind.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        let kept = self.running.set(running).is_ok();
        debug_assert!(kept, "one server a process");
        loop {
            thread::park();
        }
    }

    fn figures(&self) -> String {
        // Nothing under the lock can panic half way.
        let mut runtimes = self.runtimes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(handle) = Handle::try_current() {
            runtimes.insert(thread::current().id(), handle);
        }
        let tasks: usize = runtimes.values().map(|handle| handle.metrics().num_alive_tasks()).sum();
        let sessions = self.running.get().map_or(0, ServerHandle::sessions);
        json!({"workers": runtimes.len(), "tasks": tasks, "sessions": sessions}).to_string()
    }
}

/// Ends soon whatever is left alone.
pub(crate) fn make_impatient(options: &mut Options) {
    options.legacy_sse = true;
    options.retry = Duration::from_millis(10);
    let limits = &mut options.limits;
    limits.session_idle = PATIENCE;
    limits.connection_idle = PATIENCE;
    limits.head_time = PATIENCE;
    limits.body_time = PATIENCE;
    limits.write_stall = PATIENCE;
}

fn leak_some(what: Kind) -> Result<(), String> {
    match what {
        Kind::Memory => std::mem::forget(vec![1_u8; 64 << 10]),
        Kind::Tasks => drop(tokio::spawn(std::future::pending::<()>())),
        Kind::Descriptors => std::mem::forget(File::open("/dev/null").map_err(|error| error.to_string())?),
    }
    Ok(())
}

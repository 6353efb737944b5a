//! Processes of our own: how they start, end, and never outlive us.

use std::time::Duration;

use mcpace_client::{Client, Limits, Options, Program, Target};
use serde_json::json;

use crate::support::limited;

/// A legacy server in a shell's words: it answers `initialize` and reads on.
const ANSWERS: &str = r#"
read -r discover
echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}'
read -r initialize
echo '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}}'
read -r initialized
"#;

fn shell(script: &str) -> Target {
    let mut program = Program::new("sh", ["-c", script]);
    program.forward_stderr = false;
    Target::program(program)
}

async fn is_alive(pid: &str) -> bool {
    // A zombie that nobody has waited for yet counts as gone.
    let status = tokio::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).await;
    status.is_ok_and(|status| !status.contains(") Z "))
}

async fn gone(pid: &str) {
    limited(async {
        while is_alive(pid).await {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_there_or_ends_is_told_with_its_last_words() {
    let failed =
        limited(Client::connect(Target::program(Program::new("no-such-program", [""; 0])), Options::default()));
    assert_eq!(failed.await.unwrap_err().code(), "start");
    let failed = limited(Client::connect(shell("echo first >&2; echo last >&2; exit 3"), Options::default())).await;
    let failed = failed.unwrap_err();
    assert_eq!(failed.code(), "process-ended");
    assert!(failed.to_string().contains("exit code 3") && failed.to_string().contains("first | last"), "{failed}");
    let client =
        limited(Client::connect(shell(&format!("{ANSWERS} read -r call; kill -9 $$")), Options::default())).await;
    let failed = limited(client.unwrap().call_tool("x", &json!({}))).await.unwrap_err();
    assert!(failed.to_string().contains("signal 9"), "{failed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_process_started_ends_with_it_and_all_end_with_the_client() {
    let folder = Folder::new();
    let pids = folder.path.join("pids");
    // Deaf to everything but SIGKILL, with a child that is as deaf.
    let script = format!(
        "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & {ANSWERS} echo $$ $! > '{}'; while :; do sleep 1; done",
        pids.display()
    );
    for closes in [true, false] {
        drop(std::fs::remove_file(&pids));
        let limits = Limits { close_time: Duration::from_millis(50), ..Limits::default() };
        let client = Client::connect(shell(&script), Options { limits, ..Options::default() });
        let client = limited(client).await.unwrap();
        let written = limited(async {
            loop {
                match std::fs::read_to_string(&pids) {
                    Ok(text) if text.ends_with('\n') => break text,
                    _ => tokio::task::yield_now().await,
                }
            }
        });
        let written = written.await;
        let (parent, child) = written.trim().split_once(' ').unwrap();
        assert!(is_alive(parent).await && is_alive(child).await);
        if closes {
            limited(client.close()).await;
        }
        drop(client);
        gone(parent).await;
        gone(child).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_gets_the_environment_and_folder_that_it_was_given() {
    let folder = Folder::new();
    let mut program = Program::new("sh", ["-c", "echo $MARK-$HOME- >&2; pwd >&2; exit 1"]);
    program.environment = vec![("MARK".into(), "here".into())];
    program.only_environment = true;
    program.folder = Some(folder.path.clone());
    program.forward_stderr = false;
    let failed = limited(Client::connect(Target::program(program), Options::default())).await.unwrap_err().to_string();
    assert!(failed.contains("here--") && failed.contains(&*folder.path.to_string_lossy()), "{failed}");
}

/// A folder of the test's own, which goes with it however it ends.
struct Folder {
    path: std::path::PathBuf,
}

impl Folder {
    fn new() -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("mcpace-client-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self { path: path.canonicalize().unwrap() }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.path));
    }
}

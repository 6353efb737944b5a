//! Tells the program which release of rmcp it was built with, as the lock has it: the crate itself doesn't say.

use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    println!("cargo::rustc-check-cfg=cfg(json_response)");
    let folder = env::var("CARGO_MANIFEST_DIR").expect("cargo says where the package is");
    let lock = fs::read_to_string(format!("{folder}/Cargo.lock")).expect("cargo has written a lock before it builds");
    let version = release(&lock).expect("the lock names rmcp");
    println!("cargo::rustc-env=RMCP_VERSION={version}");
    // 0.16 knows sessions and streams only; the choice of plain JSON came before 3.
    let generation: u32 = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
    if generation >= 3 {
        println!("cargo::rustc-cfg=json_response");
    }
}

fn release(lock: &str) -> Option<&str> {
    let (_, entry) = lock.split_once("name = \"rmcp\"\nversion = \"")?;
    entry.split_once('"').map(|(version, _)| version)
}

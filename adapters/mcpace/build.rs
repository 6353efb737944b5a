//! Passes the version of mcpace from the lock to the program.

use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let folder = env::var("CARGO_MANIFEST_DIR").expect("cargo says where the package is");
    let lock = fs::read_to_string(format!("{folder}/Cargo.lock")).expect("cargo has written a lock before it builds");
    let version = release(&lock).expect("the lock names mcpace-serve");
    println!("cargo::rustc-env=MCPACE_VERSION={version}");
}

fn release(lock: &str) -> Option<&str> {
    let (_, entry) = lock.split_once("name = \"mcpace-serve\"\nversion = \"")?;
    entry.split_once('"').map(|(version, _)| version)
}

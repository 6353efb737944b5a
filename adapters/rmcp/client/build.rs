//! Passes the release of rmcp from the lock to the program, because the crate itself doesn't expose it.

use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let folder = env::var("CARGO_MANIFEST_DIR").expect("cargo says where the package is");
    let lock = fs::read_to_string(format!("{folder}/Cargo.lock")).expect("cargo has written a lock before it builds");
    let (_, entry) = lock.split_once("name = \"rmcp\"\nversion = \"").expect("the lock names rmcp");
    let (version, _) = entry.split_once('"').expect("a version ends");
    println!("cargo::rustc-env=RMCP_VERSION={version}");
}

//! Child processes of a process, as the kernel of Linux lists them.

use std::fs;
use std::io::Read;

/// Threads of a process whose children are read, and bytes of the list of one thread's children, at most.
const MOST_THREADS: usize = 64;
const LONGEST_LIST: u64 = 4096;

/// The process and its descendants, at most `most`, parents first; of this process, the descendants only.
pub(crate) fn watched_pids(root: u32, most: usize) -> Vec<u32> {
    let descendants = descendants(root, most).into_iter().map(|one| one.pid);
    let own = (root != std::process::id()).then_some(root);
    own.into_iter().chain(descendants).take(most).collect()
}

/// A descendant of a process.
pub(crate) struct Descendant {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
}

/// The descendants of a process, at most `most`, parents first.
pub(crate) fn descendants(root: u32, most: usize) -> Vec<Descendant> {
    let mut found: Vec<Descendant> = Vec::new();
    let (mut parent, mut next) = (root, 0);
    loop {
        for pid in child_pids(parent) {
            if pid != root && found.iter().all(|known| known.pid != pid) {
                found.push(Descendant { pid, parent });
            }
        }
        match found.get(next) {
            Some(descendant) if found.len() < most => parent = descendant.pid,
            _ => break,
        }
        next += 1;
    }
    found.truncate(most);
    found
}

/// Children of all threads of the process; empty where the kernel doesn't list them.
pub(crate) fn child_pids(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = threads.flatten().take(MOST_THREADS).filter_map(|thread| {
        let file = fs::File::open(thread.path().join("children")).ok()?;
        let mut list = String::new();
        file.take(LONGEST_LIST).read_to_string(&mut list).ok()?;
        Some(list)
    });
    let pids = |list: String| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>();
    lists.flat_map(pids).collect()
}

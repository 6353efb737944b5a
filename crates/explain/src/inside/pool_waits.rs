//! Threads that wait for a connection of a pool, by the functions of libraries.

use super::frames::{Origin, called_name, origin_of, serves_instrumentation, waits_for_work};
use crate::view::StackCall;

/// Whether a thread with this stack works for the program, or waits within a tool.
pub(crate) fn is_at_work(stack: &[StackCall<'_>]) -> bool {
    (pool_wait(stack).is_some() || !waits_for_work(stack)) && !serves_instrumentation(stack)
}

/// Functions in which a thread waits until a pool has a free connection: package, end of the file's name, and function.
const POOL_WAITS: [(&str, &str, &str); 8] = [
    ("sqlalchemy", "pool/impl.py", "_do_get"),
    ("psycopg_pool", "pool.py", "wait"),
    ("psycopg_pool", "pool.py", "getconn"),
    ("redis", "connection.py", "get_connection"),
    ("httpcore", "connection_pool.py", "wait_for_connection"),
    ("urllib3", "connectionpool.py", "_get_conn"),
    ("pymongo", "pool.py", "_get_conn"),
    ("dbutils", "pooled_db.py", "_wait_lock"),
];

/// The package whose pool a thread waits for: it waits for another thread, within the function that takes a connection.
pub(crate) fn pool_wait<'a>(stack: &[StackCall<'a>]) -> Option<&'a str> {
    let mut calls =
        stack.iter().skip_while(|call| matches!(origin_of(call.file), Origin::Standard("threading" | "queue")));
    let is_lock =
        matches!(stack.first().map(|call| origin_of(call.file)), Some(Origin::Standard("threading" | "queue")));
    if !is_lock {
        return None;
    }
    // The pool's own queue and conditions lie between the lock and the function that takes a connection.
    let (package, _) = calls.clone().find_map(library_of)?;
    calls.by_ref().take_while(|call| library_of(call).is_none_or(|(own, _)| own == package)).find_map(|call| {
        let function = called_name(call);
        let is_wait =
            |&(own, file, name): &(&str, &str, &str)| own == package && call.file.ends_with(file) && name == function;
        POOL_WAITS.iter().any(is_wait).then_some(package)
    })
}

fn library_of<'a>(call: &StackCall<'a>) -> Option<(&'a str, &'a str)> {
    match origin_of(call.file) {
        Origin::Library(package) => Some((package, call.file)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(function: &'static str, file: &'static str) -> StackCall<'static> {
        StackCall { function, file, line: 1 }
    }

    #[test]
    fn a_wait_for_a_pool_is_told_from_other_waits_of_its_library() {
        let wait = call("Condition.wait", "/usr/lib/python3.11/threading.py");
        let get = call("Queue.get", "/usr/lib/python3.11/queue.py");
        let own = call("lookup", "/srv/orders.py");
        let redis = call("BlockingConnectionPool.get_connection", "/l/site-packages/redis/connection.py");
        let event = call("Event.wait", "/l/site-packages/httpcore/_synchronization.py");
        let httpcore = call("PoolRequest.wait_for_connection", "/l/site-packages/httpcore/_sync/connection_pool.py");
        let pubsub = call("PubSub.get_message", "/l/site-packages/redis/client.py");
        assert_eq!(pool_wait(&[wait, get, redis, own]), Some("redis"));
        assert_eq!(pool_wait(&[wait, event, httpcore, own]), Some("httpcore"));
        // A wait for a message, and one that another library makes above the pool of a third.
        assert_eq!(pool_wait(&[wait, get, pubsub, own]), None);
        assert_eq!(pool_wait(&[wait, get, pubsub, httpcore, own]), None);
        // The pool opens a connection itself.
        assert_eq!(pool_wait(&[call("connect", "/usr/lib/python3.11/socket.py"), redis, own]), None);
        assert_eq!(pool_wait(&[wait, get, own]), None);
        assert_eq!(pool_wait(&[]), None);
    }
}

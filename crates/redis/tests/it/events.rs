//! The store of streams by itself: what is sent twice, bounds, and writers that are gone.

use std::time::Duration;

use bytes::Bytes;
use mcpace_redis::Redis;
use mcpace_serve::store::{
    Bounds, Cursor, EntryContent, LogId, OnDown, Opened, Page, SessionName, Stores, StreamEntry, WriterState,
};

use crate::server::{RedisServer, options};

const BOUNDS: Bounds = Bounds {
    events: 4,
    bytes: 100,
    ended_bytes: 50,
    ended: 3,
    idle: Duration::from_secs(600),
    after_end: Duration::from_secs(60),
};

fn stores(redis: &RedisServer) -> Stores {
    Redis::open(&redis.url(), options(OnDown::Refuse).0).unwrap().stores()
}

fn log(number: u64) -> LogId {
    LogId { session: SessionName::of("a session"), number }
}

fn event(log: LogId, sequence: u64, position: Option<u64>, text: &str) -> StreamEntry {
    StreamEntry { log, sequence, what: EntryContent::Event(position, Bytes::copy_from_slice(text.as_bytes())) }
}

/// From the beginning.
async fn read(stores: &Stores, log: LogId) -> Page {
    stores.events.read(log, &name(stores), None, &BOUNDS).await.unwrap()
}

/// Name of a process's reader.
fn name(stores: &Stores) -> String {
    format!("{}.1", stores.broker.number())
}

fn texts(page: &Page) -> Vec<&str> {
    page.events.iter().map(|(_, message)| std::str::from_utf8(message).unwrap()).collect()
}

#[tokio::test]
async fn what_is_sent_twice_is_there_once() {
    let redis = RedisServer::start();
    let stores = stores(&redis);
    for log in [log(0), log(7)] {
        let position = |number| (!log.is_standalone()).then_some(number);
        let first = event(log, 1, position(0), "first");
        let again = [first.clone(), event(log, 2, position(1), "second")];
        stores.events.add(&[first], &BOUNDS).await.unwrap();
        stores.events.add(&again, &BOUNDS).await.unwrap();
        // One that nobody can tell from another is not looked at in this way.
        stores.events.add(&[event(log, 0, position(2), "third")], &BOUNDS).await.unwrap();
        let page = read(&stores, log).await;
        assert_eq!(texts(&page), ["first", "second", "third"]);
        let positions: Vec<_> = page.events.iter().map(|(position, _)| *position).collect();
        assert!(positions.is_sorted_by(|one, other| one < other), "{positions:?}");
    }
}

#[tokio::test]
async fn events_and_bytes_are_bounded_and_what_goes_unread_is_counted() {
    let redis = RedisServer::start();
    let stores = stores(&redis);
    let entries: Vec<_> = (1..=6).map(|number| event(log(0), number, None, &number.to_string())).collect();
    let added = stores.events.add(&entries, &BOUNDS).await.unwrap();
    assert_eq!(added.iter().map(|added| added.dropped).collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1]);
    let page = read(&stores, log(0)).await;
    assert_eq!(texts(&page), ["3", "4", "5", "6"]);
    // Delivered now: what goes of it is no loss.
    let added = stores.events.add(&[event(log(0), 7, None, &"x".repeat(99))], &BOUNDS).await.unwrap();
    assert_eq!(added[0].dropped, 0);
    assert_eq!(texts(&read(&stores, log(0)).await).len(), 2);
    // The last stays however large it is.
    stores.events.add(&[event(log(0), 8, None, &"y".repeat(1000))], &BOUNDS).await.unwrap();
    assert_eq!(texts(&read(&stores, log(0)).await), ["y".repeat(1000)]);
}

#[tokio::test]
async fn ended_streams_are_bounded_together_and_take_no_more() {
    let redis = RedisServer::start();
    let stores = stores(&redis);
    let ended = async |number: u64, sequence: u64, size: usize| {
        let begin = StreamEntry { log: log(number), sequence, what: EntryContent::Begin("[1]".into()) };
        let end = StreamEntry { log: log(number), sequence: sequence + 2, what: EntryContent::End };
        let said = event(log(number), sequence + 1, Some(1), &"x".repeat(size));
        stores.events.add(&[begin, said, end], &BOUNDS).await.unwrap();
    };
    let is_there = async |number| read(&stores, log(number)).await.writer != WriterState::Unknown;
    for number in 1..=4 {
        ended(number, number * 10, 10).await;
    }
    assert!(!is_there(1).await && is_there(2).await && is_there(4).await, "three at most");
    ended(5, 50, 45).await;
    assert!(!is_there(4).await && is_there(5).await, "fifty bytes at most");
    stores.events.add(&[event(log(5), 60, Some(2), "late")], &BOUNDS).await.unwrap();
    let page = read(&stores, log(5)).await;
    assert_eq!((page.events.len(), page.ended, page.asked.as_deref()), (1, true, Some("[1]")));
}

#[tokio::test]
async fn a_writer_that_is_gone_is_known_as_such() {
    let redis = RedisServer::start();
    let writer = stores(&redis);
    let reader = stores(&redis);
    let begin = StreamEntry { log: log(1), sequence: 1, what: EntryContent::Begin("[7]".into()) };
    writer.events.add(&[begin], &BOUNDS).await.unwrap();
    assert_eq!(read(&reader, log(1)).await.writer, WriterState::Alive);
    drop(writer);
    // It says so itself as it goes; one that is killed says nothing for a while.
    crate::peer::limited("its end", async { while read(&reader, log(1)).await.writer != WriterState::Gone {} })
        .await
        .unwrap();
}

#[tokio::test]
async fn who_reads_is_one_and_the_dead_are_passed_over() {
    let redis = RedisServer::start();
    let [one, other] = [stores(&redis), stores(&redis)];
    let open = async |stores: &Stores, from| stores.events.open(log(0), &name(stores), from, &BOUNDS).await.unwrap();
    assert_eq!(open(&one, Cursor::Undelivered).await, Opened::After(0));
    assert!(other.events.is_read(log(0)).await.unwrap());
    assert_eq!(open(&other, Cursor::Undelivered).await, Opened::Taken);
    assert_eq!(open(&other, Cursor::After(5)).await, Opened::After(5));
    // Closing what is no longer its own changes nothing.
    one.events.close(log(0), &name(&one)).await.unwrap();
    assert_eq!(open(&one, Cursor::Undelivered).await, Opened::Taken);
    drop(other);
    crate::peer::limited("its end", async { while one.events.is_read(log(0)).await.unwrap() {} }).await.unwrap();
    assert_eq!(open(&one, Cursor::Undelivered).await, Opened::After(0));
    let unknown = one.events.open(log(9), &name(&one), Cursor::After(0), &BOUNDS).await.unwrap();
    assert_eq!(unknown, Opened::Unknown);
}

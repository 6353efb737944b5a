//! Streams: a Redis stream each, with what is known of it in a hash.

use std::time::Duration;

use bytes::Bytes;
use mcpace_serve::store::{
    Added, Bounds, Cursor, Down, EntryContent, EventStore, Later, LogId, Opened, Page, StreamEntry, WriterState,
};
use redis::{Cmd, RedisResult, Value};

use crate::RedisInner;
use crate::scripts::script_call;
use crate::sessions::expiry_millis;

/// Events of one page.
const PAGE: usize = 64;

impl EventStore for RedisInner {
    fn add<'a>(&'a self, entries: &'a [StreamEntry], bounds: &'a Bounds) -> Later<'a, Vec<Added>> {
        Box::pin(async move {
            let mut pipe = redis::Pipeline::with_capacity(entries.len());
            pipe.ignore_errors();
            for entry in entries {
                pipe.add_command(self.add_command(entry, bounds));
            }
            let adding =
                |mut connection| async move { pipe.query_async::<Vec<RedisResult<(i64, u64)>>>(&mut connection).await };
            let epoch = self.link.connection_epoch();
            let bytes = entries.iter().map(StreamEntry::size).sum::<usize>();
            let limit = self.link.options.limit + Duration::from_micros(bytes as u64);
            let results = self.link.run_within(limit, adding).await?;
            let mut added = Vec::with_capacity(results.len());
            for result in results {
                match result {
                    Ok((is_read, dropped)) => added.push(Added { is_read: is_read == 1, dropped, refused: false }),
                    Err(error) if self.link.report_failure(&error, epoch) => return Err(Down),
                    // Redis will never take it.
                    Err(_) => added.push(Added { refused: true, ..Added::default() }),
                }
            }
            Ok(added)
        })
    }

    fn open<'a>(&'a self, log: LogId, reader: &'a str, from: Cursor, bounds: &'a Bounds) -> Later<'a, Opened> {
        Box::pin(async move {
            let mut open = script_call(&self.link.scripts.log_open, self.prefix());
            let (after, yields) = match from {
                Cursor::Undelivered => (String::new(), true),
                Cursor::After(position) => (position.to_string(), false),
                Cursor::Again(position) => (position.to_string(), true),
            };
            open.arg(log.to_string()).arg(self.link.number).arg(reader).arg(after).arg(expiry_millis(bounds.idle));
            open.arg(i32::from(log.is_standalone())).arg(i32::from(yields));
            let opened: Vec<Value> = self.run_query(open).await?;
            Ok(match opened.as_slice() {
                [Value::Int(0), after] => Opened::After(as_number(after).unwrap_or_default()),
                [Value::Int(1), ..] => Opened::Taken,
                _ => Opened::Unknown,
            })
        })
    }

    fn is_read(&self, log: LogId) -> Later<'_, bool> {
        Box::pin(async move {
            let mut asked = script_call(&self.link.scripts.log_is_read, self.prefix());
            asked.arg(log.to_string());
            self.run_query(asked).await.map(|read: i64| read == 1)
        })
    }

    fn read<'a>(&'a self, log: LogId, reader: &'a str, after: Option<u64>, bounds: &'a Bounds) -> Later<'a, Page> {
        Box::pin(async move {
            let mut read = script_call(&self.link.scripts.log_read, self.prefix());
            // An entry's id is one more than its position: Redis has no id 0.
            let from = after.map_or_else(|| "-".to_owned(), |after| format!("({}-0", after.saturating_add(1)));
            read.arg(log.to_string()).arg(from).arg(PAGE).arg(expiry_millis(bounds.idle)).arg(reader);
            let page: Vec<Value> = self.run_query(read).await?;
            Ok(page_of(page))
        })
    }

    fn close<'a>(&'a self, log: LogId, reader: &'a str) -> Later<'a, ()> {
        Box::pin(async move {
            let mut close = script_call(&self.link.scripts.log_close, self.prefix());
            close.arg(log.to_string()).arg(reader);
            self.run_query(close).await.map(|_: i64| ())
        })
    }
}

impl RedisInner {
    fn add_command(&self, entry: &StreamEntry, bounds: &Bounds) -> Cmd {
        let mut add = script_call(&self.link.scripts.log_add, self.prefix());
        add.arg(entry.log.to_string()).arg(self.link.number).arg(entry.sequence);
        match &entry.what {
            EntryContent::Begin(asked) => add.arg("begin").arg("").arg(&**asked),
            EntryContent::Event(position, message) => {
                let position = position.map(|position| position.to_string()).unwrap_or_default();
                add.arg("event").arg(position).arg(&message[..])
            }
            EntryContent::End => add.arg("end").arg("").arg(""),
        };
        add.arg(bounds.events).arg(bounds.bytes).arg(expiry_millis(bounds.idle)).arg(expiry_millis(bounds.after_end));
        add.arg(bounds.ended).arg(bounds.ended_bytes);
        add
    }
}

fn page_of(page: Vec<Value>) -> Page {
    let mut values = page.into_iter();
    let mut flag = || values.next().and_then(|value| as_number(&value)).unwrap_or_default();
    let writer = match flag() {
        0 => WriterState::Anybody,
        1 => WriterState::Alive,
        2 => WriterState::Gone,
        4 => return Page { taken: true, ..Page::default() },
        _ => WriterState::Unknown,
    };
    let (ended, has_more) = (flag() == 1, flag() == 1);
    let asked = match values.next() {
        Some(Value::BulkString(asked)) if !asked.is_empty() => String::from_utf8(asked).ok(),
        _ => None,
    };
    let mut events = Vec::new();
    while let (Some(Value::BulkString(id)), Some(Value::BulkString(message))) = (values.next(), values.next()) {
        let id = std::str::from_utf8(&id).ok().and_then(|id| id.split_once('-')?.0.parse::<u64>().ok());
        if let Some(position) = id.and_then(|id| id.checked_sub(1)) {
            events.push((position, Bytes::from(message)));
        }
    }
    Page { events, has_more, ended, writer, asked, taken: false }
}

fn as_number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::BulkString(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

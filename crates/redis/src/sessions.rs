//! Sessions: a hash each, with what its client set in another.

use mcpace_serve::store::{Change, Down, Found, Later, Life, Name, Put, Record, SessionStore};
use redis::Value;
use std::time::Duration;

use crate::Inner;
use crate::scripts::call;

impl SessionStore for Inner {
    fn put<'a>(&'a self, name: Name, record: &'a Record, life: Life) -> Later<'a, Put> {
        Box::pin(async move {
            let record = serde_json::to_string(record).map_err(|_| Down)?;
            let mut put = call(&self.link.scripts.session_put, self.prefix());
            let whole = life.whole.map(|whole| millis(whole).to_string()).unwrap_or_default();
            put.arg(name.to_string()).arg(record).arg(millis(life.idle)).arg(whole);
            let kept: i64 = self.query(put).await?;
            Ok(if kept == 1 { Put::Kept } else { Put::Ended })
        })
    }

    fn find(&self, name: Name) -> Later<'_, Found> {
        Box::pin(async move {
            let mut find = call(&self.link.scripts.session_find, self.prefix());
            find.arg(name.to_string());
            let found: Vec<Value> = self.query(find).await?;
            Ok(read(&found).unwrap_or(Found::Unknown))
        })
    }

    fn touch<'a>(&'a self, names: &'a [Name], life: Life) -> Later<'a, ()> {
        Box::pin(async move {
            if names.is_empty() {
                return Ok(());
            }
            let mut touch = call(&self.link.scripts.session_touch, self.prefix());
            touch.arg(millis(life.idle));
            for name in names {
                touch.arg(name.to_string());
            }
            self.query(touch).await.map(|_: i64| ())
        })
    }

    fn change<'a>(&'a self, name: Name, changes: &'a [Change]) -> Later<'a, ()> {
        Box::pin(async move {
            let mut change = call(&self.link.scripts.session_change, self.prefix());
            change.arg(name.to_string());
            for one in changes {
                let text = serde_json::to_string(one).map_err(|_| Down)?;
                match one {
                    Change::LogLevel(_) => change.arg("level").arg(text),
                    Change::Watch(uri) => change.arg(watched(uri)).arg(text),
                    Change::Unwatch(uri) => change.arg(watched(uri)).arg(""),
                };
            }
            self.query(change).await.map(|_: i64| ())
        })
    }

    fn end(&self, name: Name, life: Life) -> Later<'_, ()> {
        Box::pin(async move {
            let mut end = call(&self.link.scripts.session_end, self.prefix());
            end.arg(name.to_string()).arg(millis(life.idle));
            self.query(end).await.map(|_: i64| ())
        })
    }
}

/// The field of a watched resource: its URI may be long, and stands in the value.
fn watched(uri: &str) -> String {
    format!("watch {}", Name::of(uri))
}

/// Reads the script's reply. `None` where the record can't be read: it is of another release.
fn read(found: &[Value]) -> Option<Found> {
    let mut values = found.iter();
    match values.next()? {
        Value::Int(2) => return Some(Found::Ended),
        Value::Int(1) => {}
        _ => return Some(Found::Unknown),
    }
    let Value::BulkString(record) = values.next()? else { return None };
    let mut record: Record = serde_json::from_slice(record).ok()?;
    let left = match values.next()? {
        Value::Int(left) => u64::try_from(*left).ok(),
        _ => None,
    };
    record.changes = values
        .filter_map(|value| match value {
            Value::BulkString(change) => serde_json::from_slice(change).ok(),
            _ => None,
        })
        .collect();
    Some(Found::Session(Box::new(record), left.map(Duration::from_millis)))
}

/// At least one: Redis takes none for an expiry.
pub(crate) fn millis(time: Duration) -> u64 {
    // Lua counts in doubles.
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).clamp(1, 1 << 50)
}

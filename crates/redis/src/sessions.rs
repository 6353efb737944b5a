//! Sessions: a hash each, with what its client set in another.

use mcpace_serve::store::{Down, FoundSession, Later, Life, Put, Record, SessionName, SessionStore, SettingChange};
use redis::Value;
use std::time::Duration;

use crate::RedisInner;
use crate::scripts::script_call;

impl SessionStore for RedisInner {
    fn put<'a>(&'a self, name: SessionName, record: &'a Record, life: Life) -> Later<'a, Put> {
        Box::pin(async move {
            let record = serde_json::to_string(record).map_err(|_| Down)?;
            let mut put = script_call(&self.link.scripts.session_put, self.prefix());
            let whole = life.whole.map(|whole| expiry_millis(whole).to_string()).unwrap_or_default();
            put.arg(name.to_string()).arg(record).arg(expiry_millis(life.idle)).arg(whole);
            let kept: i64 = self.run_query(put).await?;
            Ok(if kept == 1 { Put::Kept } else { Put::Ended })
        })
    }

    fn find(&self, name: SessionName) -> Later<'_, FoundSession> {
        Box::pin(async move {
            let mut find = script_call(&self.link.scripts.session_find, self.prefix());
            find.arg(name.to_string());
            let found: Vec<Value> = self.run_query(find).await?;
            Ok(read_session(&found).unwrap_or(FoundSession::Unknown))
        })
    }

    fn touch<'a>(&'a self, names: &'a [SessionName], life: Life) -> Later<'a, ()> {
        Box::pin(async move {
            if names.is_empty() {
                return Ok(());
            }
            let mut touch = script_call(&self.link.scripts.session_touch, self.prefix());
            touch.arg(expiry_millis(life.idle));
            for name in names {
                touch.arg(name.to_string());
            }
            self.run_query(touch).await.map(|_: i64| ())
        })
    }

    fn change<'a>(&'a self, name: SessionName, changes: &'a [SettingChange]) -> Later<'a, ()> {
        Box::pin(async move {
            let mut change = script_call(&self.link.scripts.session_change, self.prefix());
            change.arg(name.to_string());
            for one in changes {
                let text = serde_json::to_string(one).map_err(|_| Down)?;
                match one {
                    SettingChange::LogLevel(_) => change.arg("level").arg(text),
                    SettingChange::Watch(uri) => change.arg(watched_field(uri)).arg(text),
                    SettingChange::Unwatch(uri) => change.arg(watched_field(uri)).arg(""),
                };
            }
            self.run_query(change).await.map(|_: i64| ())
        })
    }

    fn end(&self, name: SessionName, life: Life) -> Later<'_, ()> {
        Box::pin(async move {
            let mut end = script_call(&self.link.scripts.session_end, self.prefix());
            end.arg(name.to_string()).arg(expiry_millis(life.idle));
            self.run_query(end).await.map(|_: i64| ())
        })
    }
}

/// The field of a watched resource: its URI may be long, and stands in the value.
fn watched_field(uri: &str) -> String {
    format!("watch {}", SessionName::of(uri))
}

/// Reads the script's reply. `None` where the record can't be read: it is of another release.
fn read_session(found: &[Value]) -> Option<FoundSession> {
    let mut values = found.iter();
    match values.next()? {
        Value::Int(2) => return Some(FoundSession::Ended),
        Value::Int(1) => {}
        _ => return Some(FoundSession::Unknown),
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
    Some(FoundSession::Session(Box::new(record), left.map(Duration::from_millis)))
}

/// At least one: Redis takes none for an expiry.
pub(crate) fn expiry_millis(time: Duration) -> u64 {
    // Lua counts in doubles.
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).clamp(1, 1 << 50)
}

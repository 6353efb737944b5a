//! The scripts: each is one atomic step, by Redis's own clock.

use redis::{Cmd, Script};

macro_rules! script {
    ($($file:literal),+) => {
        Script::new(concat!(include_str!("lua/common.lua"), $(include_str!(concat!("lua/", $file, ".lua"))),+))
    };
}

/// All of them. Loaded with each connection, so that a call sends a hash.
pub(crate) struct Scripts {
    pub(crate) session_put: Script,
    pub(crate) session_find: Script,
    pub(crate) session_touch: Script,
    pub(crate) session_change: Script,
    pub(crate) session_end: Script,
    pub(crate) log_add: Script,
    pub(crate) log_open: Script,
    pub(crate) log_read: Script,
    pub(crate) log_is_read: Script,
    pub(crate) log_close: Script,
    pub(crate) post: Script,
    pub(crate) limit_fixed: Script,
    pub(crate) limit_sliding: Script,
    pub(crate) limit_bucket: Script,
}

impl Scripts {
    pub(crate) fn new() -> Self {
        Self {
            session_put: script!("session_common", "session_put"),
            session_find: script!("session_common", "session_find"),
            session_touch: script!("session_common", "session_touch"),
            session_change: script!("session_change"),
            session_end: script!("session_end"),
            log_add: script!("log_add"),
            log_open: script!("log_open"),
            log_read: script!("log_read"),
            log_is_read: script!("log_is_read"),
            log_close: script!("log_close"),
            post: script!("post"),
            limit_fixed: script!("limit_fixed"),
            limit_sliding: script!("limit_sliding"),
            limit_bucket: script!("limit_bucket"),
        }
    }

    pub(crate) fn all(&self) -> [&Script; 14] {
        [
            &self.session_put,
            &self.session_find,
            &self.session_touch,
            &self.session_change,
            &self.session_end,
            &self.log_add,
            &self.log_open,
            &self.log_read,
            &self.log_is_read,
            &self.log_close,
            &self.post,
            &self.limit_fixed,
            &self.limit_sliding,
            &self.limit_bucket,
        ]
    }
}

/// A call of a script; its arguments follow. The keys are made within, of the prefix: no cluster is served.
pub(crate) fn call(script: &Script, prefix: &str) -> Cmd {
    let mut call = redis::cmd("EVALSHA");
    call.arg(script.get_hash()).arg(0).arg(prefix);
    call
}

//! The scripts: each is one atomic step, by Redis's own clock.

use redis::{Cmd, Script};

/// Each by its name, with the files that it is made of, after what all begin with.
macro_rules! scripts {
    ($($name:ident: $($file:literal),+;)+) => {
        /// All of them. Loaded with each connection, so that a call sends a hash.
        pub(crate) struct Scripts {
            $(pub(crate) $name: Script,)+
        }

        impl Scripts {
            pub(crate) fn new() -> Self {
                Self { $($name: Script::new(concat!(
                    include_str!("lua/common.lua"),
                    $(include_str!(concat!("lua/", $file, ".lua"))),+
                )),)+ }
            }

            pub(crate) fn all(&self) -> Vec<&Script> {
                vec![$(&self.$name),+]
            }
        }
    };
}

scripts! {
    session_put: "session_common", "session_put";
    session_find: "session_common", "session_find";
    session_touch: "session_common", "session_touch";
    session_change: "session_change";
    session_end: "session_common", "session_end";
    log_add: "log_add";
    log_open: "log_open";
    log_read: "log_read";
    log_is_read: "log_is_read";
    log_close: "log_close";
    post: "post";
    box_taken: "box_taken";
    limit_fixed: "limit_common", "limit_fixed";
    limit_sliding: "limit_common", "limit_sliding";
    limit_bucket: "limit_common", "limit_bucket";
}

/// A call of a script; its arguments follow. The keys are made within, of the prefix: no cluster is served.
pub(crate) fn script_call(script: &Script, prefix: &str) -> Cmd {
    let mut call = redis::cmd("EVALSHA");
    call.arg(script.get_hash()).arg(0).arg(prefix);
    call
}

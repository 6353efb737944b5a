//! Where a request comes from: the ends of its connection, which only the process that accepted it knows.
//!
//! Constraint: a request that another process forwarded names its ends in a header that counts only on the socket between
//! processes. A client's own header of that name is overwritten or ignored.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::headers::{Ends, Headers};

/// Names the two ends between processes: `CLIENT SERVER`.
const ENDS: HeaderName = HeaderName::from_static("mcpace-ends");

/// Addresses, scheme and target of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum RequestOrigin {
    /// A connection of this process's own.
    Here(Ends),
    /// Another process of the family took it in.
    PassedOn { is_tls: bool },
}

impl Default for RequestOrigin {
    fn default() -> Self {
        RequestOrigin::Here(Ends::default())
    }
}

impl RequestOrigin {
    /// The head of a request that came from here, for handlers.
    pub(super) fn request_headers(self, target: Bytes, lines: Bytes) -> Headers {
        match self {
            RequestOrigin::Here(ends) => Headers::new(target, lines, ends),
            RequestOrigin::PassedOn { is_tls } => {
                let headers = Headers::new(target.clone(), lines.clone(), Ends::default());
                let named = headers.get(ENDS.as_str()).and_then(read_ends).unwrap_or_default();
                Headers::new(target, lines, Ends { is_tls, ..named })
            }
        }
    }

    /// Names it in a request that is passed on to another process.
    pub(super) fn write_headers(self, headers: &mut HeaderMap) {
        let RequestOrigin::Here(Ends { client: Some(client), server: Some(server), .. }) = self else {
            headers.remove(ENDS);
            return;
        };
        if let Ok(value) = HeaderValue::try_from(format!("{client} {server}")) {
            headers.insert(ENDS, value);
        }
    }
}

fn read_ends(value: &[u8]) -> Option<Ends> {
    let (client, server) = std::str::from_utf8(value).ok()?.split_once(' ')?;
    let address = |text: &str| text.parse::<SocketAddr>().ok();
    Some(Ends { client: address(client), server: address(server), is_tls: false })
}

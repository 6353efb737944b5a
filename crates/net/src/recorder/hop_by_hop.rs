//! Which headers of a message stay on their connection (RFC 9110 §7.6.1), and what they say about it. Pure.

use http::HeaderMap;
use http::header::{CONNECTION, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Persistence options in a sender's headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Persistence {
    /// `Connection: close`.
    pub(super) close: bool,
    /// `Connection: keep-alive`.
    keep_alive: bool,
    /// `Keep-Alive: timeout=…`.
    parameters: Option<HeaderValue>,
}

/// Takes out what belongs to one connection only: the fixed names, and those that `Connection` lists.
pub(super) fn take_hop_by_hop(headers: &mut HeaderMap) -> Persistence {
    let mut persistence = Persistence { parameters: headers.get(KEEP_ALIVE).cloned(), ..Persistence::default() };
    let mut listed = Vec::new();
    for value in headers.get_all(CONNECTION) {
        for token in value.to_str().unwrap_or_default().split(',').map(str::trim) {
            if token.eq_ignore_ascii_case("close") {
                persistence.close = true;
            } else if token.eq_ignore_ascii_case("keep-alive") {
                persistence.keep_alive = true;
            } else if let Ok(name) = HeaderName::from_bytes(token.as_bytes()) {
                listed.push(name);
            }
        }
    }
    for name in listed.iter().chain(&[CONNECTION, KEEP_ALIVE, PROXY_CONNECTION, TE, TRANSFER_ENCODING, UPGRADE]) {
        headers.remove(name);
    }
    persistence
}

impl Persistence {
    /// Whether the sender asked to keep the connection.
    pub(super) fn keeps_alive(&self) -> bool {
        self.keep_alive
    }

    /// Says the same on the other connection. A front connection and its back connection live and die together, so what
    /// one peer announces of its own is true of both.
    pub(super) fn pass_on(self, headers: &mut HeaderMap) {
        if self.close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        } else if self.keep_alive {
            headers.insert(CONNECTION, HeaderValue::from_static("keep-alive"));
        }
        if let Some(parameters) = self.parameters {
            headers.insert(KEEP_ALIVE, parameters);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn what_connection_lists_goes_with_it() {
        let mut given =
            headers(&[("connection", "x-hop, close"), ("x-hop", "1"), ("te", "trailers"), ("accept", "*/*")]);
        let persistence = take_hop_by_hop(&mut given);
        assert!(persistence.close);
        assert_eq!(given, headers(&[("accept", "*/*")]));
    }

    #[test]
    fn what_a_peer_says_of_its_connection_is_passed_on() {
        let mut given =
            headers(&[("connection", "Keep-Alive"), ("keep-alive", "timeout=5"), ("transfer-encoding", "chunked")]);
        let persistence = take_hop_by_hop(&mut given);
        assert!(given.is_empty());
        persistence.pass_on(&mut given);
        assert_eq!(given, headers(&[("connection", "keep-alive"), ("keep-alive", "timeout=5")]));
    }
}

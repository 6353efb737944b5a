//! What is shown of URLs and of errors on the way to them, and which URLs are this machine's: for all who carry tokens. Pure.

use url::{Host, Url};

/// A URL as it may stand in messages: without credentials, query and fragment.
#[must_use]
pub fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Both fail only for URLs that can't have credentials.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

/// Whether a URL leads to this machine by its own word: what is sent there passes no wire.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// An error with its causes, on one line: the outermost alone says little. Many libraries repeat the cause in their own words:
/// that is said once.
#[must_use]
pub fn reason_of(error: &dyn std::error::Error) -> String {
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !reason.contains(&words) {
            reason = format!("{reason}: {words}");
        }
        source = cause.source();
    }
    reason.replace(['\r', '\n'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_url_are_not_shown() {
        let url = Url::parse("https://me:hunter2@id.example:8443/a/b?code=SECRET#SECRET").unwrap();
        assert_eq!(shown(&url), "https://id.example:8443/a/b");
        assert_eq!(shown(&Url::parse("mailto:a@b?x").unwrap()), "mailto:a@b");
    }

    #[test]
    fn only_this_machines_own_names_are_loopback() {
        for (url, is_it) in [
            ("http://localhost:1/", true),
            ("http://127.8.9.1/", true),
            ("http://[::1]/", true),
            ("http://localhost.evil/", false),
            ("http://128.0.0.1/", false),
            ("http://[::2]/", false),
            ("file:///etc/passwd", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), is_it, "{url}");
        }
    }

    #[test]
    fn an_error_says_what_it_comes_from_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("{said}")]
        struct Chained {
            said: &'static str,
            #[source]
            cause: Option<Box<Chained>>,
        }
        let of = |said, cause| Chained { said, cause: Option::map(cause, Box::new) };
        let deepest = of("no\r\nroute", None);
        let error = of("connecting", Some(of("connecting", Some(deepest))));
        assert_eq!(reason_of(&error), "connecting: no  route");
    }
}

//! Classifies failures by an SDK's error messages, because the SDK has no codes. Knows no SDK.

const LOST: [&str; 6] =
    ["connection", "connect error", "sending request", "transport closed", "no such file", "broken pipe"];

/// The kind of a failure: `auth`, `connection` or `protocol`.
pub fn kind_of(message: &str) -> &'static str {
    let text = message.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&["connection refused", "connection reset"]) {
        "connection"
    } else if has(&["unauthorized", "auth required", "oauth"]) || has_status_401(&text) {
        "auth"
    } else if has(&LOST) {
        "connection"
    } else {
        "protocol"
    }
}

/// Whether the text contains the status 401, not as a port or as part of another number.
fn has_status_401(text: &str) -> bool {
    text.match_indices("401").any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, ':' | '.' | '_'))
            && !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::kind_of;

    #[test]
    fn a_port_is_no_status() {
        for (message, kind) in [
            ("error sending request for url (http://127.0.0.1:40123/mcp): tcp connect error", "connection"),
            ("http://127.0.0.1:401/mcp: transport closed", "connection"),
            ("Client error: HTTP 401 for url (http://127.0.0.1:40123/mcp)", "auth"),
            ("Auth required", "auth"),
            ("status 401", "auth"),
            ("401", "auth"),
            ("oauth server: Connection refused (os error 111)", "connection"),
            ("unexpected message 4012", "protocol"),
        ] {
            assert_eq!(kind_of(message), kind, "{message}");
        }
    }
}

//! Names whose values are secrets.
//!
//! In headers and parameters any word of the name counts: every vendor calls its key something else, and a value that is
//! masked without need can still be told from others. In JSON members only the end of the name counts: what tools are given
//! and return should stay readable.

/// Ends of member names, without case and separators. In text that isn't JSON, one of these anywhere withholds the text.
const STRONG: [&str; 20] = [
    "accesstoken",
    "refreshtoken",
    "idtoken",
    "authtoken",
    "bearertoken",
    "sessiontoken",
    "securitytoken",
    "subjecttoken",
    "actortoken",
    "clientsecret",
    "secretkey",
    "privatekey",
    "accesskey",
    "apikey",
    "codeverifier",
    "assertion",
    "password",
    "passwd",
    "passphrase",
    "authorization",
];

/// Ends of member names that are ordinary words in running text, or that [`PLAIN`] has exceptions for.
const WEAK: [&str; 14] = [
    "token",
    "secret",
    "cookie",
    "credential",
    "passcode",
    "connectionstring",
    "connstring",
    "sharedkey",
    "signingkey",
    "encryptionkey",
    "subscriptionkey",
    "accountkey",
    "masterkey",
    "sshkey",
];

/// Ends of member names that are no secrets although they end with `token`: positions, limits and special words of models.
const PLAIN: [&str; 13] = [
    "progresstoken",
    "pagetoken",
    "nexttoken",
    "continuationtoken",
    "resumptiontoken",
    "synctoken",
    "cancellationtoken",
    "stoptoken",
    "maxtoken",
    "bostoken",
    "eostoken",
    "padtoken",
    "unktoken",
];

/// Last words of member names: too short to be looked for at the end of a longer word.
const MEMBER_WORDS: [&str; 5] = ["pass", "pwd", "jwt", "otp", "psk"];

/// Secret only in a query or a form, where they are OAuth's: a tool's argument may well be called `code`.
const PARAMETERS: [&str; 2] = ["code", "state"];

/// Words of which one in a header's or a parameter's name makes its value a secret.
const WORDS: [&str; 20] = [
    "key",
    "auth",
    "sig",
    "signature",
    "jwt",
    "cookie",
    "credential",
    "credentials",
    "pass",
    "pwd",
    "otp",
    "psk",
    "pin",
    "pat",
    "passcode",
    "bearer",
    "dpop",
    "csrf",
    "xsrf",
    "hmac",
];

/// Ends of such words, since not everybody separates the words of a name.
const WORD_ENDS: [&str; 8] =
    ["token", "secret", "password", "passwd", "passphrase", "authorization", "apikey", "accesskey"];

/// Secret in a header only: in a query the session is the path's, and of no use once it has ended.
const SESSION: &str = "session";

/// Longest name and longest user information that are looked for in running text.
const LONGEST: usize = 64;
const LONGEST_AUTHORITY: usize = 4096;

/// Whether a JSON member of this name holds a secret.
pub(crate) fn is_secret_member(name: &str) -> bool {
    names_secret_member(name.as_bytes())
}

/// Whether a parameter of a query or a form holds a secret. A name with an escape in it may be any name, so it counts.
pub(crate) fn is_secret_parameter(name: &str) -> bool {
    let is_oauths = || PARAMETERS.iter().any(|secret| name.eq_ignore_ascii_case(secret));
    is_secret_member(name) || has_secret_word(name) || is_oauths() || name.contains('%')
}

/// Whether a header holds a secret.
pub(crate) fn is_secret_header(name: &str) -> bool {
    has_secret_word(name) || name_words(name).any(|word| word.eq_ignore_ascii_case(SESSION))
}

/// Whether text may hold a secret: a secret name that is quoted or has a value, headers that were printed, or a URL with
/// credentials. Looks at the quotation marks and signs of the text only, since each body goes through it.
pub(crate) fn may_hold_secret(text: &str) -> bool {
    let bytes = text.as_bytes();
    name_ends(bytes).any(|at| gives_value(bytes, at) || is_in_url(bytes, at) || quotes_headers(bytes, at))
}

/// Whether a member of this name holds HTTP headers.
pub(crate) fn holds_headers(name: &str) -> bool {
    may_end_name(name.as_bytes()) && has_ending(name_tail(name.as_bytes()), &HEADERS)
}

/// Whether text that isn't JSON names a secret: it mentions a [`STRONG`] name, or quotes a secret name or gives it a value.
pub(crate) fn names_a_secret(text: &str) -> bool {
    let mut tail = 0_u128;
    let mut letters = text.bytes().filter(|byte| !matches!(byte, b'_' | b'-')).map(|byte| byte.to_ascii_lowercase());
    let mentions = letters.any(|letter| {
        tail = tail << 8 | u128::from(letter);
        STRONG_LAST[usize::from(letter)] && has_ending(tail, &STRONG_ENDS)
    });
    mentions || name_ends(text.as_bytes()).any(|at| gives_value(text.as_bytes(), at))
}

/// Where names end in text, and where user information does.
fn name_ends(text: &[u8]) -> impl Iterator<Item = usize> {
    const SIGNS: [bool; 256] = {
        let mut signs = [false; 256];
        let (all, mut at) = (b"\"':>=@", 0);
        while at < all.len() {
            signs[all[at] as usize] = true;
            at += 1;
        }
        signs
    };
    text.iter().enumerate().filter(|(_, byte)| SIGNS[usize::from(**byte)]).map(|(at, _)| at)
}

/// Whether a secret's name ends at this byte: it is quoted, or what follows is its value.
fn gives_value(text: &[u8], at: usize) -> bool {
    match text[at] {
        b'"' | b'\'' => may_end_name(&text[..at]) && names_secret_member(quoted_name(&text[..at])),
        // After a quotation mark the name has been looked at.
        b':' | b'>' if at > 0 && text[at - 1] != b'"' => {
            let name = name_before(text[..at].trim_ascii_end());
            names_secret_member(name) || (name.contains(&b'-') && std::str::from_utf8(name).is_ok_and(is_secret_header))
        }
        b'=' => {
            let before = text[..at].trim_ascii_end();
            let name = name_before(before);
            !follows_separator(before, name) && names_secret_member(name)
        }
        _ => false,
    }
}

/// Whether a name of [`HEADERS`] ends at this byte, in quotation marks.
fn quotes_headers(text: &[u8], at: usize) -> bool {
    text[at] == b'"' && may_end_name(&text[..at]) && has_ending(name_tail(quoted_name(&text[..at])), &HEADERS)
}

/// The name before a quotation mark. Within a string that is JSON itself these are escaped, on each level once more.
fn quoted_name(text: &[u8]) -> &[u8] {
    let escapes = text.iter().rev().take_while(|byte| **byte == b'\\').count();
    name_before(&text[..text.len() - escapes])
}

/// Whether a secret of a URL is at this byte: a parameter that is one by its name, or user information.
fn is_in_url(text: &[u8], at: usize) -> bool {
    match text[at] {
        b'=' => {
            let name = name_before(&text[..at]);
            follows_separator(&text[..at], name) && std::str::from_utf8(name).is_ok_and(is_secret_parameter)
        }
        b'@' => has_user_information(&text[..at]),
        _ => false,
    }
}

/// Whether the name at the end of `text` follows a separator of a URL's parameters.
fn follows_separator(text: &[u8], name: &[u8]) -> bool {
    let before = text.len().checked_sub(name.len() + 1).map(|at| text[at]);
    matches!(before, Some(b'?' | b'&' | b';' | b'#'))
}

/// Whether what stands before a `@` is the authority of a URL, whose slashes may be escaped.
fn has_user_information(before: &[u8]) -> bool {
    let mut run = before.iter().rev().take(LONGEST_AUTHORITY);
    match run.find(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'"' | b'<' | b'>')) {
        Some(b'/') => run.find(|byte| **byte != b'\\') == Some(&b'/'),
        _ => false,
    }
}

/// Whether the last letters of text are those of one of the names: the quick answer for nearly every quotation mark.
fn may_end_name(text: &[u8]) -> bool {
    let length = text.iter().rev().take_while(|byte| matches!(byte, b'0'..=b'9' | b'_' | b'-' | b']' | b'\\')).count();
    let is_pair = |text: &[u8]| matches!(text, [.., a, b] if LAST_PAIRS[letter_pair(*a, *b)]);
    let text = &text[..text.len() - length];
    is_pair(text) || (matches!(text, [.., b's' | b'S']) && is_pair(&text[..text.len() - 1]))
}

/// The name that text ends with.
fn name_before(text: &[u8]) -> &[u8] {
    let is_part =
        |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'%' | b' ' | b'[' | b']');
    let length = text.iter().rev().take(LONGEST).take_while(is_part).count();
    &text[text.len() - length..]
}

/// Whether a member's name is a secret's.
fn names_secret_member(name: &[u8]) -> bool {
    // `password2` and `api_key_1` are names like those without a number.
    let digits = name.iter().rev().take_while(|byte| matches!(byte, b'0'..=b'9' | b'_' | b'-' | b']')).count();
    let name = &name[..name.len() - digits];
    let Some(last) = name.last() else { return false };
    let plural = last.eq_ignore_ascii_case(&b's');
    if !may_end_name(name) {
        return false;
    }
    let tail = name_tail(name);
    if plural {
        let one = tail >> 8;
        // `tokens` are counted, in limits and usage: only those of a kind are secrets.
        return has_ending(one, &STRONG_ENDS)
            || (has_ending(one, &WEAK_ENDS) && !has_ending(one, &TOKEN))
            || is_short(name);
    }
    has_ending(tail, &STRONG_ENDS) || (has_ending(tail, &WEAK_ENDS) && !has_ending(tail, &PLAIN_ENDS)) || is_short(name)
}

fn is_short(name: &[u8]) -> bool {
    let last = std::str::from_utf8(name).ok().and_then(|name| name_words(name).last());
    last.is_some_and(|word| MEMBER_WORDS.iter().any(|secret| word.eq_ignore_ascii_case(secret)))
}

fn has_secret_word(name: &str) -> bool {
    name_words(name).any(|word| {
        let tail = name_tail(word.as_bytes());
        has_ending(tail, &WORD_END_LETTERS)
            || (word.len() <= 16 && WORD_LETTERS.iter().any(|(letters, _)| *letters == tail))
    })
}

/// The words of a name, separated by anything but letters and figures, or by a capital after a small letter.
fn name_words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|character: char| !character.is_ascii_alphanumeric()).flat_map(|part| {
        let mut rest = part;
        std::iter::from_fn(move || {
            let hump =
                rest.as_bytes().windows(2).position(|two| !two[0].is_ascii_uppercase() && two[1].is_ascii_uppercase());
            let (word, after) = rest.split_at(hump.map_or(rest.len(), |at| at + 1));
            rest = after;
            (!word.is_empty()).then_some(word)
        })
    })
}

/// The end of a name as one number, which holds sixteen letters, and which bits of it count.
type Ending = (u128, u128);

const STRONG_ENDS: [Ending; STRONG.len()] = build_endings(STRONG);
const WEAK_ENDS: [Ending; WEAK.len()] = build_endings(WEAK);
const PLAIN_ENDS: [Ending; PLAIN.len()] = build_endings(PLAIN);
const TOKEN: [Ending; 1] = build_endings(["token"]);
const HEADERS: [Ending; 2] = build_endings(["header", "headers"]);

const WORD_LETTERS: [Ending; WORDS.len()] = build_endings(WORDS);
const WORD_END_LETTERS: [Ending; WORD_ENDS.len()] = build_endings(WORD_ENDS);

/// Last letters of [`STRONG`].
const STRONG_LAST: [bool; 256] = {
    let (mut letters, mut at) = ([false; 256], 0);
    while at < STRONG.len() {
        let name = STRONG[at].as_bytes();
        letters[name[name.len() - 1] as usize] = true;
        at += 1;
    }
    letters
};

/// Pairs of last letters, by [`letter_pair`], of all names of members and of headers.
const LAST_PAIRS: [bool; 1024] =
    last_pairs(STRONG, last_pairs(WEAK, last_pairs(MEMBER_WORDS, last_pairs(["header"], [false; 1024]))));

/// Five bits of each letter, without their case.
const fn letter_pair(a: u8, b: u8) -> usize {
    ((a & 31) as usize) << 5 | (b & 31) as usize
}

const fn build_endings<const N: usize>(names: [&str; N]) -> [Ending; N] {
    let (mut endings, mut index) = ([(0, 0); N], 0);
    while index < N {
        let name = names[index].as_bytes();
        let (mut letters, mut mask, mut at) = (0, 0, name.len().saturating_sub(16));
        while at < name.len() {
            letters = letters << 8 | name[at] as u128;
            mask = mask << 8 | 0xff;
            at += 1;
        }
        endings[index] = (letters, mask);
        index += 1;
    }
    endings
}

const fn last_pairs<const N: usize>(names: [&str; N], mut pairs: [bool; 1024]) -> [bool; 1024] {
    let mut index = 0;
    while index < N {
        let name = names[index].as_bytes();
        pairs[letter_pair(name[name.len() - 2], name[name.len() - 1])] = true;
        index += 1;
    }
    pairs
}

fn has_ending(tail: u128, endings: &[Ending]) -> bool {
    endings.iter().any(|(letters, mask)| tail & mask == *letters)
}

/// The last sixteen letters of a name.
fn name_tail(name: &[u8]) -> u128 {
    let letters = name.iter().rev().filter(|byte| !is_separator(**byte)).take(16).enumerate();
    letters.fold(0, |tail, (at, byte)| tail | u128::from(byte.to_ascii_lowercase()) << (8 * at))
}

/// Whether a byte separates the words of a name.
const fn is_separator(byte: u8) -> bool {
    matches!(byte, b'_' | b'-' | b'.' | b' ' | b'[' | b']')
}

#[cfg(test)]
pub(crate) fn secret_member_names() -> Vec<&'static str> {
    STRONG.into_iter().chain(WEAK).chain(MEMBER_WORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_secret_by_the_end_of_their_name() {
        for name in [
            "GITHUB_TOKEN",
            "github_token",
            "api_token",
            "webhook_secret",
            "jwt",
            "cookie",
            "secret",
            "token",
            "pwd",
            "pass",
            "connectionString",
            "Set-Cookie",
            "accessToken",
            "access-token",
            "db_password",
            "privateKey",
            "apiKeys",
            "passwords",
            "credentials",
            "password2",
            "api_key_1",
            "dbPass",
            "x-api-key",
            "refresh_tokens",
            "client.secret",
            "user[password]",
        ] {
            assert!(is_secret_member(name), "{name}");
        }
        for name in [
            "progressToken",
            "maxTokens",
            "max_tokens",
            "nextPageToken",
            "token_endpoint",
            "token_type",
            "tokens",
            "author",
            "total_tokens",
            "NextContinuationToken",
            "passwordless",
            "bypass",
            "compass",
            "laptop",
            "tokenizer",
            "key",
            "signature",
            "client_secret_expires_at",
            "secretary",
            "code",
            "state",
            "",
            "_",
            "7",
            "class",
        ] {
            assert!(!is_secret_member(name), "{name}");
        }
    }

    #[test]
    fn text_names_a_secret_where_it_gives_one_a_value() {
        for text in [
            "GITHUB_TOKEN=S",
            "token: S",
            "<token>S</token>",
            "x-pin: S",
            "{'token': 'S'}",
            "my password",
            "secret = S",
            "{token: S}",
            r#"<input name="csrf_token" value="S">"#,
        ] {
            assert!(names_a_secret(text), "{text}");
        }
        for text in ["Token refreshed", "secretary: 5", "me@example.org", "a=b", "5 tokens: fine", "http://h/@a/b"] {
            assert!(!names_a_secret(text) && !may_hold_secret(text), "{text}");
        }
        for text in ["at http://u:S@h/", r"http:\/\/u:S@h", "//u@h", "/cb?a=1;key=S", "x#token=S", "a?b=1;token=S"] {
            assert!(!names_a_secret(text) && may_hold_secret(text), "{text}");
        }
    }
}

//! What names say of their values: which hold secrets.
//!
//! Of headers and parameters any word counts, since everybody calls their key something else, and one masked for nothing is
//! still told from others. Of JSON members the end of the name does: what tools are given and return should stay readable.

/// How names of members and parameters end that hold secrets wherever they stand; without case, `_` and `-`.
pub(crate) const SECRET_NAMES: [&str; 20] = [
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

/// Secret only in a query or a form, where they are OAuth's: a tool's argument may well be called `code`.
const SECRET_PARAMETERS: [&str; 2] = ["code", "state"];

/// Words of which one in a header's or a parameter's name makes its value a secret.
const SECRET_WORDS: [&str; 8] = ["key", "auth", "sig", "signature", "jwt", "cookie", "credential", "credentials"];

/// So do words that end like these, since not everybody parts them.
const SECRET_ENDINGS: [&str; 8] =
    ["token", "secret", "password", "passwd", "passphrase", "authorization", "apikey", "accesskey"];

/// In a header only: the session of a query is its path's, and of no use once it has ended.
const SESSION: &str = "session";

/// Of a member, or of anything else.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let letters: Vec<u8> = plain_letters(name.as_bytes()).collect();
    SECRET_NAMES.iter().any(|secret| letters.ends_with(secret.as_bytes()))
}

/// A name with an escape in it may be any name, so it counts as a secret's.
pub(crate) fn is_secret_parameter(name: &str) -> bool {
    let oauths = || SECRET_PARAMETERS.iter().any(|secret| name.eq_ignore_ascii_case(secret));
    is_secret_name(name) || has_secret_word(name) || oauths() || name.contains('%')
}

/// Of a header.
pub(crate) fn is_secret_header(name: &str) -> bool {
    has_secret_word(name) || words(name).any(|word| word.eq_ignore_ascii_case(SESSION))
}

fn has_secret_word(name: &str) -> bool {
    words(name).any(|word| {
        let ends = |end: &&str| {
            word.len().checked_sub(end.len()).and_then(|at| word.get(at..)).is_some_and(|w| w.eq_ignore_ascii_case(end))
        };
        SECRET_WORDS.iter().any(|secret| word.eq_ignore_ascii_case(secret)) || SECRET_ENDINGS.iter().any(ends)
    })
}

/// The words of a name, parted by what is no letter or figure, or by a capital after a small letter.
fn words(name: &str) -> impl Iterator<Item = &str> {
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

/// Whether a name of [`SECRET_NAMES`] stands anywhere in `text`: one pass, since each body goes through it.
pub(crate) fn names_a_secret(text: &str) -> bool {
    /// A name as one number, which holds sixteen letters, and which bits of it count.
    const fn ending(name: &str) -> (u128, u128) {
        let name = name.as_bytes();
        let (mut letters, mut mask, mut at) = (0, 0, name.len().saturating_sub(16));
        while at < name.len() {
            letters = letters << 8 | name[at] as u128;
            mask = mask << 8 | 0xff;
            at += 1;
        }
        (letters, mask)
    }
    const ENDINGS: [(u128, u128); SECRET_NAMES.len()] = {
        let (mut endings, mut at) = ([(0, 0); SECRET_NAMES.len()], 0);
        while at < SECRET_NAMES.len() {
            endings[at] = ending(SECRET_NAMES[at]);
            at += 1;
        }
        endings
    };
    let mut last = 0_u128;
    plain_letters(text.as_bytes()).any(|letter| {
        last = last << 8 | u128::from(letter);
        matches!(letter, b'n' | b't' | b'y' | b'r' | b'd' | b'e')
            && ENDINGS.iter().any(|(letters, mask)| last & mask == *letters)
    })
}

/// Small letters, without what parts the words of a name.
fn plain_letters(text: &[u8]) -> impl Iterator<Item = u8> {
    text.iter().filter(|byte| !matches!(byte, b'_' | b'-')).map(u8::to_ascii_lowercase)
}

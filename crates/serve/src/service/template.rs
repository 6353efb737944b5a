//! URI templates (RFC 6570), read backwards: which values make this URI?
//!
//! Levels 1 to 3, and of level 4 the explode modifier of `{/path*}`, `{.type*}` and `{;key*}`. Query expressions at the end
//! match in any order, and their variables may be missing.
//!
//! Constraint: no backtracking, so that matching is linear in the URI (which is the peer's) for each variable. At most one
//! variable may span several segments (`{+path}`, `{#part}`, `{/path*}`), and no two may touch: then each one's end is where
//! the text after it is.

use std::collections::{BTreeMap, BTreeSet};

use crate::build_error::BuildError;

const TEMPLATE_LIMIT: usize = 8 << 10;
const URI_LIMIT: usize = 64 << 10;

type Values = BTreeMap<String, String>;

/// A template to match URIs with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UriTemplate {
    /// All but the query's variables.
    atoms: Vec<Atom>,
    /// Which atom may span several segments.
    spanning: Option<usize>,
    /// Variables that stand in the URI's query, in any order, or not at all.
    query: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Atom {
    Literal(String),
    Variable(Variable),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Variable {
    name: String,
    operator: Operator,
    explode: bool,
}

/// Operator of an expression (RFC 6570 §2.2), which determines its first character, separator and names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Simple,
    Reserved,
    Fragment,
    Label,
    Path,
    Parameter,
    Query,
    More,
}

impl UriTemplate {
    pub(crate) fn parse(template: &str) -> Result<Self, BuildError> {
        parse_template(template).map_err(|reason| BuildError::Template { template: template.to_owned(), reason })
    }

    pub(crate) fn has_variable(&self, wanted: &str) -> bool {
        let in_path = self.atoms.iter().any(|atom| matches!(atom, Atom::Variable(one) if one.name == wanted));
        in_path || self.query.iter().any(|name| name == wanted)
    }

    /// Values of the variables, decoded; `None` if the URI does not match the template. The items of an exploded variable are
    /// joined by its separator.
    pub(crate) fn match_uri(&self, uri: &str) -> Option<Values> {
        if uri.len() > URI_LIMIT {
            return None;
        }
        if self.query.is_empty() {
            return self.scan_values(uri);
        }
        let without_fragment = uri.split_once('#').map_or(uri, |(before, _)| before);
        let (path, query) = without_fragment.split_once('?').unwrap_or((without_fragment, ""));
        let mut values = self.scan_values(path)?;
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            // Names are never escaped. The first of several equal names counts.
            if self.query.iter().any(|known| known == name) && !values.contains_key(name) {
                values.insert(name.to_owned(), percent_decode(value)?);
            }
        }
        Some(values)
    }

    fn scan_values(&self, uri: &str) -> Option<Values> {
        let mut values = Values::new();
        let Some(at) = self.spanning else {
            return (from_end(&self.atoms, uri, true, &mut values)? == 0).then_some(values);
        };
        let end = from_end(&self.atoms[at + 1..], uri, false, &mut values)?;
        let start = from_start(&self.atoms[..at], &uri[..end], &mut values)?;
        let Atom::Variable(variable) = &self.atoms[at] else { return None };
        values.insert(variable.name.clone(), variable.capture_segments(&uri[start..end])?);
        Some(values)
    }
}

/// Matches backwards: a variable begins after the last place where the text before it is. Gives where the first atom begins.
fn from_end(atoms: &[Atom], uri: &str, is_whole: bool, values: &mut Values) -> Option<usize> {
    let mut end = uri.len();
    for (index, atom) in atoms.iter().enumerate().rev() {
        match atom {
            Atom::Literal(literal) => end -= uri[..end].strip_suffix(literal.as_str()).map(|_| literal.len())?,
            Atom::Variable(variable) => {
                let start = match index.checked_sub(1).map(|before| &atoms[before]) {
                    None => 0,
                    Some(Atom::Literal(before)) if index == 1 && is_whole => {
                        uri[..end].strip_prefix(before.as_str()).map(|_| before.len())?
                    }
                    Some(Atom::Literal(before)) => uri[..end].rfind(before.as_str())? + before.len(),
                    Some(Atom::Variable(_)) => return None,
                };
                values.insert(variable.name.clone(), variable.capture_value(&uri[start..end])?);
                end = start;
            }
        }
    }
    Some(end)
}

/// Matches forwards: a variable ends at the first place where the text after it is. Gives where the last atom ends.
fn from_start(atoms: &[Atom], uri: &str, values: &mut Values) -> Option<usize> {
    let mut at = 0;
    for (index, atom) in atoms.iter().enumerate() {
        match atom {
            Atom::Literal(literal) => at += uri[at..].strip_prefix(literal.as_str()).map(|_| literal.len())?,
            Atom::Variable(variable) => {
                let end = match atoms.get(index + 1) {
                    Some(Atom::Literal(after)) => at + uri[at..].find(after.as_str())?,
                    Some(Atom::Variable(_)) => return None,
                    None => uri.len(),
                };
                values.insert(variable.name.clone(), variable.capture_value(&uri[at..end])?);
                at = end;
            }
        }
    }
    Some(at)
}

impl Variable {
    fn spans_segments(&self) -> bool {
        self.explode || matches!(self.operator, Operator::Reserved | Operator::Fragment)
    }

    /// One value, as it stands in the URI.
    fn capture_value(&self, mut raw: &str) -> Option<String> {
        // `{;name}` of an empty value is written without the `=`.
        if self.operator == Operator::Parameter && !raw.is_empty() {
            raw = raw.strip_prefix('=')?;
        }
        if raw.contains(|mark| self.operator.stop_characters().contains(mark)) { None } else { percent_decode(raw) }
    }

    /// The value of the variable that may span several segments.
    fn capture_segments(&self, raw: &str) -> Option<String> {
        if !self.explode {
            return if raw.contains(|mark| self.operator.stop_characters().contains(mark)) {
                None
            } else {
                percent_decode(raw)
            };
        }
        if raw.is_empty() {
            return Some(String::new());
        }
        let separator = self.operator.separator();
        let stops = self.operator.stop_characters();
        if raw.contains(|mark| mark != separator && stops.contains(mark)) {
            return None;
        }
        let mut items = Vec::new();
        for item in raw.strip_prefix(separator)?.split(separator) {
            let value = match (self.operator, item.split_once('=')) {
                (Operator::Parameter, Some((name, value))) if name == self.name => value,
                (Operator::Parameter, None) if item == self.name => "",
                (Operator::Parameter, _) => return None,
                _ => item,
            };
            items.push(percent_decode(value)?);
        }
        Some(items.join(separator.encode_utf8(&mut [0; 4])))
    }
}

impl Operator {
    fn from_mark(mark: char) -> Option<Self> {
        Some(match mark {
            '+' => Operator::Reserved,
            '#' => Operator::Fragment,
            '.' => Operator::Label,
            '/' => Operator::Path,
            ';' => Operator::Parameter,
            '?' => Operator::Query,
            '&' => Operator::More,
            _ => return None,
        })
    }

    /// Text before the first variable.
    fn first_prefix(self) -> &'static str {
        match self {
            Operator::Simple | Operator::Reserved => "",
            Operator::Fragment => "#",
            Operator::Label => ".",
            Operator::Path => "/",
            Operator::Parameter => ";",
            Operator::Query => "?",
            Operator::More => "&",
        }
    }

    /// Text between variables.
    fn separator(self) -> char {
        match self {
            Operator::Simple | Operator::Reserved | Operator::Fragment => ',',
            Operator::Label => '.',
            Operator::Path => '/',
            Operator::Parameter => ';',
            Operator::Query | Operator::More => '&',
        }
    }

    /// Text before a value: its name, if the expression has names.
    fn name_prefix(self, name: &str) -> String {
        match self {
            Operator::Parameter => name.to_owned(),
            Operator::Query | Operator::More => format!("{name}="),
            _ => String::new(),
        }
    }

    /// Characters that no value has unescaped.
    fn stop_characters(self) -> &'static str {
        match self {
            Operator::Simple => "/?#&,",
            Operator::Reserved => "?#",
            Operator::Fragment => "",
            Operator::Label => "./?#",
            Operator::Path => "/?#",
            Operator::Parameter => ";/?#",
            Operator::Query | Operator::More => "&#",
        }
    }
}

/// A piece of a template.
enum TemplatePart {
    Literal(String),
    Expression(Operator, Vec<Variable>),
}

fn parse_template(template: &str) -> Result<UriTemplate, &'static str> {
    if template.is_empty() {
        return Err("it is empty");
    }
    if template.len() > TEMPLATE_LIMIT {
        return Err("it is longer than 8 KiB");
    }
    let mut parts = parse_parts(template)?;
    let query = split_query(&mut parts);
    let atoms = flatten_parts(parts);
    if atoms.windows(2).any(|pair| matches!(pair, [Atom::Variable(_), Atom::Variable(_)])) {
        return Err("two variables touch, so that nobody knows where one ends");
    }
    let is_spanning = |atom: &Atom| matches!(atom, Atom::Variable(variable) if variable.spans_segments());
    if atoms.iter().filter(|atom| is_spanning(atom)).count() > 1 {
        return Err("two variables may span several segments");
    }
    let spanning = atoms.iter().position(is_spanning);
    Ok(UriTemplate { atoms, spanning, query })
}

fn parse_parts(template: &str) -> Result<Vec<TemplatePart>, &'static str> {
    let mut parts = Vec::new();
    let mut names = BTreeSet::new();
    let mut rest = template;
    while let Some(open) = rest.find(['{', '}']) {
        let (literal, expression) = rest.split_at(open);
        if !literal.is_empty() {
            parts.push(TemplatePart::Literal(literal.to_owned()));
        }
        let inner = expression.strip_prefix('{').ok_or("a brace closes that didn't open")?;
        let (inner, after) = inner.split_once('}').ok_or("a brace doesn't close")?;
        let operator = inner.chars().next().and_then(Operator::from_mark);
        let listed = if operator.is_some() { &inner[1..] } else { inner };
        let operator = operator.unwrap_or(Operator::Simple);
        let variables =
            listed.split(',').map(|written| parse_variable(operator, written)).collect::<Result<Vec<_>, _>>()?;
        if !variables.iter().all(|variable| names.insert(variable.name.clone())) {
            return Err("a variable is there twice");
        }
        parts.push(TemplatePart::Expression(operator, variables));
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(TemplatePart::Literal(rest.to_owned()));
    }
    Ok(parts)
}

fn parse_variable(operator: Operator, written: &str) -> Result<Variable, &'static str> {
    let (name, explode) = match written.strip_suffix('*') {
        Some(name) => (name, true),
        None => (written, false),
    };
    // RFC 6570 §2.3, but for escaped characters.
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !name.split('.').all(is_word) {
        return Err("an expression has something else than names in it");
    }
    if explode && !matches!(operator, Operator::Label | Operator::Path | Operator::Parameter) {
        return Err("only {/name*}, {.name*} and {;name*} can be exploded");
    }
    Ok(Variable { name: name.to_owned(), operator, explode })
}

/// Takes the query expressions at the end away, where what is before them can't hold a question mark.
fn split_query(parts: &mut Vec<TemplatePart>) -> Vec<String> {
    let of_query = |part: &TemplatePart| matches!(part, TemplatePart::Expression(Operator::Query | Operator::More, _));
    let cut = parts.iter().rposition(|part| !of_query(part)).map_or(0, |last| last + 1);
    if !matches!(parts.get(cut), Some(TemplatePart::Expression(Operator::Query, _))) {
        return Vec::new();
    }
    let marks = |part: &TemplatePart| match part {
        TemplatePart::Literal(literal) => literal.contains(['?', '#']),
        TemplatePart::Expression(operator, _) => matches!(operator, Operator::Query | Operator::Fragment),
    };
    if parts[..cut].iter().any(marks) {
        return Vec::new();
    }
    let names = |part| match part {
        TemplatePart::Expression(_, variables) => variables.into_iter().map(|variable| variable.name).collect(),
        TemplatePart::Literal(_) => Vec::new(),
    };
    parts.split_off(cut).into_iter().flat_map(names).collect()
}

fn flatten_parts(parts: Vec<TemplatePart>) -> Vec<Atom> {
    let mut atoms: Vec<Atom> = Vec::new();
    for part in parts {
        match part {
            TemplatePart::Literal(literal) => push_text(&mut atoms, &literal),
            TemplatePart::Expression(operator, variables) => {
                for (index, variable) in variables.into_iter().enumerate() {
                    // An exploded one's items bring their separators along.
                    if !variable.explode {
                        match index {
                            0 => push_text(&mut atoms, operator.first_prefix()),
                            _ => push_text(&mut atoms, operator.separator().encode_utf8(&mut [0; 4])),
                        }
                        push_text(&mut atoms, &operator.name_prefix(&variable.name));
                    }
                    atoms.push(Atom::Variable(variable));
                }
            }
        }
    }
    atoms
}

fn push_text(atoms: &mut Vec<Atom>, text: &str) {
    match atoms.last_mut() {
        _ if text.is_empty() => {}
        Some(Atom::Literal(literal)) => literal.push_str(text),
        _ => atoms.push(Atom::Literal(text.to_owned())),
    }
}

/// RFC 3986 §2.1; `None` where the result is not UTF-8 or an escape is cut off.
fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = after;
            continue;
        }
        let digits = after.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::UriTemplate;

    fn values(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
        UriTemplate::parse(template).unwrap().match_uri(uri).map(|map| map.into_iter().collect())
    }

    fn pairs(pairs: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        Some(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn reads_variables_back() {
        assert_eq!(values("a://{x}", "a://1"), pairs(&[("x", "1")]));
        assert_eq!(values("a://{x}/b/{y}.txt", "a://1/b/2.txt.txt"), pairs(&[("x", "1"), ("y", "2.txt")]));
        assert_eq!(values("a://{x}-{y}", "a://1-2-3"), pairs(&[("x", "1-2"), ("y", "3")]));
        assert_eq!(values("a://{x}", "a://caf%C3%A9%20x"), pairs(&[("x", "café x")]));
        assert_eq!(values("a://{x}", "a://"), pairs(&[("x", "")]));
        assert_eq!(values("a://{x}", "a://1%2F2"), pairs(&[("x", "1/2")]));
        assert_eq!(values("a://b", "a://b"), pairs(&[]));
        assert_eq!(values("a://{x,y}", "a://1,2"), pairs(&[("x", "1"), ("y", "2")]));
        assert_eq!(values("a://b{;id}/c", "a://b;id=5/c"), pairs(&[("id", "5")]));
        assert_eq!(values("a://b{;id}", "a://b;id"), pairs(&[("id", "")]));
        assert_eq!(values("a://b{.type}", "a://b.png"), pairs(&[("type", "png")]));
        assert_eq!(values("a://b{&x}", "a://b&x=1"), pairs(&[("x", "1")]));
    }

    #[test]
    fn lets_one_variable_span_segments() {
        assert_eq!(values("a://{+path}", "a://b/c"), pairs(&[("path", "b/c")]));
        assert_eq!(values("a://{x}/{+path}/end", "a://1/b/c/end"), pairs(&[("path", "b/c"), ("x", "1")]));
        assert_eq!(values("a://b{/path*}", "a://b/1/2%203"), pairs(&[("path", "1/2 3")]));
        assert_eq!(values("a://b{/path*}", "a://b"), pairs(&[("path", "")]));
        assert_eq!(values("a://b{;k*}", "a://b;k=1;k"), pairs(&[("k", "1;")]));
        assert_eq!(values("a://b{#part}", "a://b#x/y?z"), pairs(&[("part", "x/y?z")]));
        assert_eq!(values("a://b{;k*}", "a://b;other=1"), None);
        assert_eq!(values("a://{+path}", "a://b?c"), None);
    }

    #[test]
    fn takes_a_query_in_any_order() {
        let template = "a://b/{x}{?q,page}";
        assert_eq!(
            values(template, "a://b/1?page=2&other=3&q=x%20y#z"),
            pairs(&[("page", "2"), ("q", "x y"), ("x", "1")])
        );
        assert_eq!(values(template, "a://b/1"), pairs(&[("x", "1")]));
        assert_eq!(values(template, "a://b/1?q=1&q=2"), pairs(&[("q", "1"), ("x", "1")]));
        assert_eq!(values(template, "a://b/1?%71=evil"), pairs(&[("x", "1")]));
        assert_eq!(values("a://b?fixed=1{&page}", "a://b?fixed=1&page=2"), pairs(&[("page", "2")]));
        assert!(UriTemplate::parse(template).unwrap().has_variable("page"));
    }

    #[test]
    fn knows_its_family() {
        for uri in ["a://1/2", "b://1", "a://1?x", "a://%", "a://%zz", "a://%ff", ""] {
            assert_eq!(values("a://{x}", uri), None, "{uri}");
        }
        assert_eq!(values("a://{x}é{y}", "a://x"), None);
        assert_eq!(values("a://{x}", &format!("a://{}", "x".repeat(super::URI_LIMIT))), None);
        // The text before and the text after may not overlap.
        assert_eq!(values("aa{x}aa", "aaa"), None);
        assert_eq!(values("aa{+x}aa", "aaa"), None);
    }

    #[test]
    fn refuses_what_is_no_template() {
        let wrong = [
            "",
            "a{",
            "a}",
            "a{}",
            "a{x}{y}",
            "a{x}b{x}",
            "a{?q*}",
            "a{x*}",
            "a{x y}",
            "a{+x}/{+y}",
            "a{x:3}",
            "a{x..y}",
        ];
        for template in wrong {
            assert!(UriTemplate::parse(template).is_err(), "{template}");
        }
    }
}

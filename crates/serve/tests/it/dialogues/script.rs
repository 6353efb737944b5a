//! The text of dialogues: scenes of steps. `tests/dialogues/README.md` describes the format.

use std::fmt;

/// One server and what is said to it.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) title: String,
    /// `name: value` lines at its head, in order.
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) steps: Vec<Step>,
}

/// One line with its continuation.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// In the file, from 1.
    pub(crate) line: usize,
    /// Which connection; empty where there is only one.
    pub(crate) peer: String,
    pub(crate) action: Action,
    /// The text after the sign.
    pub(crate) text: String,
    /// Indented lines below, with their numbers.
    pub(crate) more: Vec<(usize, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// `>`
    Send,
    /// `<`
    Expect,
    /// `<?`: in any order with the steps of this kind beside it.
    ExpectAnyOrder,
    /// `!`
    Do,
}

#[derive(Debug)]
pub(crate) struct ScriptError {
    pub(crate) line: usize,
    pub(crate) what: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl Scene {
    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

pub(crate) fn parse(text: &str) -> Result<Vec<Scene>, ScriptError> {
    let mut scenes: Vec<Scene> = Vec::new();
    for (index, raw) in text.lines().enumerate() {
        let line = index + 1;
        let fail = |what: &str| Err(ScriptError { line, what: what.to_owned() });
        if raw.trim().is_empty() || raw.starts_with('#') {
            continue;
        }
        if let Some(title) = raw.strip_prefix("===") {
            scenes.push(Scene { title: title.trim().to_owned(), settings: Vec::new(), steps: Vec::new() });
            continue;
        }
        let Some(scene) = scenes.last_mut() else { return fail("nothing stands before the first ===") };
        if raw.starts_with(' ') {
            let Some(step) = scene.steps.last_mut() else { return fail("nothing to continue") };
            step.more.push((line, raw.trim().to_owned()));
        } else if let Some(step) = step(line, raw) {
            scene.steps.push(step);
        } else if let (Some((name, value)), true) = (raw.split_once(':'), scene.steps.is_empty()) {
            scene.settings.push((name.trim().to_owned(), value.trim().to_owned()));
        } else {
            return fail("neither a step nor a setting");
        }
    }
    Ok(scenes)
}

fn step(line: usize, raw: &str) -> Option<Step> {
    let (first, text) = raw.split_once(' ').unwrap_or((raw, ""));
    let (peer, action) = ["<?", ">", "<", "!"].into_iter().find_map(|sign| {
        let action = match sign {
            "<?" => Action::ExpectAnyOrder,
            ">" => Action::Send,
            "<" => Action::Expect,
            _ => Action::Do,
        };
        first.strip_suffix(sign).map(|peer| (peer, action))
    })?;
    if !peer.chars().all(|c| c.is_ascii_alphanumeric()) {
        return None;
    }
    Some(Step { line, peer: peer.to_owned(), action, text: text.trim().to_owned(), more: Vec::new() })
}

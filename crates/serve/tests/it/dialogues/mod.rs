//! Dialogues with the server, kept as data files in `tests/dialogues`: played over stdio in memory and over HTTP on real
//! sockets, by a server that answers `initialize` at once and by one that answers it later. `UPDATE_DIALOGUES=1` writes what came into the files, for a person to read the difference.

mod over_http;
mod over_stdio;
mod pattern;
mod script;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcpace_serve::Server;
use serde_json::Value;
use tokio::sync::Semaphore;

use self::pattern::{Memory, renewed, written};
use self::script::Scene;
use crate::fixture;
use crate::later::answer_initialize_later;

/// Plays one scene and collects its findings.
#[derive(Debug, Default)]
pub(crate) struct Player {
    memory: Memory,
    update: bool,
    /// Whether the server answers `initialize` later.
    begins_later: bool,
    /// Lines to write anew, with their numbers.
    updates: Vec<(usize, String)>,
}

/// A difference: where, and what.
type Difference = (usize, String);

impl Player {
    fn server(&self, scene: &Scene) -> Server {
        let made = || fixture::server(scene.setting("server").unwrap_or_default());
        let server = made();
        if self.begins_later {
            answer_initialize_later(&server, made(), Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)));
        }
        server
    }

    /// Compares a JSON text of the script with what came.
    fn compare(&mut self, line: usize, expected: &str, actual: &str) -> Result<(), Difference> {
        let actual: Value = serde_json::from_str(actual).map_err(|error| (line, format!("{error}: {actual}")))?;
        let wanted: Option<Value> = match expected {
            // A place to be filled by an update.
            "" if self.update => None,
            text => Some(serde_json::from_str(text).map_err(|error| (line, format!("{error} in the script")))?),
        };
        if wanted.as_ref().is_some_and(|wanted| self.memory.matches(wanted, &actual)) {
            return Ok(());
        }
        if self.update {
            self.updates.push((line, written(&renewed(wanted.as_ref(), &actual))));
            return Ok(());
        }
        Err((line, format!("expected {expected}\n     came {}", written(&actual))))
    }

    fn compare_text(&mut self, line: usize, what: &str, expected: &str, actual: &str) -> Result<(), Difference> {
        if self.memory.matches_text(expected, actual) {
            return Ok(());
        }
        Err((line, format!("{what}: expected {expected:?}, came {actual:?}")))
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/dialogues")
}

/// Plays all scenes of a text; gives the differences and the text as it should be.
async fn play(name: &str, text: &str, update: bool) -> (Vec<String>, String) {
    let scenes = match script::parse(text) {
        Ok(scenes) => scenes,
        Err(error) => return (vec![format!("{name}: {error}")], text.to_owned()),
    };
    let mut differences = Vec::new();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // Side by side, since a scene that fails does so by waiting to its limit.
    let players = |update| {
        let later = Player { begins_later: true, ..Player::default() };
        let now = Player { update, ..Player::default() };
        if update { vec![now] } else { vec![now, later] }
    };
    let played = scenes.into_iter().flat_map(|scene| players(update).into_iter().map(move |it| (scene.clone(), it)));
    let playing: Vec<_> = played.map(|(scene, player)| tokio::spawn(play_scene(scene, player))).collect();
    for played in playing {
        let (title, updates, played) = played.await.unwrap();
        if let Err((line, what)) = played {
            differences.push(format!("{name}:{line}: {title}: {what}"));
        }
        for (line, text) in updates {
            let old = &lines[line - 1];
            let end = old.find('{').or_else(|| old.find('[')).unwrap_or(old.len());
            lines[line - 1] = format!("{}{text}", &old[..end]);
        }
    }
    (differences, lines.join("\n") + "\n")
}

/// Gives the scene's title, the lines to write anew, and how it went.
async fn play_scene(scene: Scene, mut player: Player) -> (String, Vec<(usize, String)>, Result<(), Difference>) {
    let played = match scene.setting("over") {
        Some("stdio") => over_stdio::play(&scene, &mut player).await,
        Some("http") => over_http::play(&scene, &mut player).await,
        other => Err((0, format!("over what? {other:?}"))),
    };
    let title = if player.begins_later { format!("{}, initialize answered later", scene.title) } else { scene.title };
    (title, player.updates, played)
}

#[tokio::test]
async fn every_dialogue_goes_as_written() {
    let update = std::env::var_os("UPDATE_DIALOGUES").is_some();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    assert!(!files.is_empty());
    let mut differences = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let (found, renewed) = play(&name, &text, update).await;
        differences.extend(found);
        if update && renewed != text {
            std::fs::write(&path, renewed).unwrap();
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

const WRONG: &str = r#"
=== a wrong expectation
over: stdio
> {"jsonrpc":"2.0","id":1,"method":"ping"}
< {"jsonrpc":"2.0","id":2,"result":{}}
=== a missing message
over: stdio
! close
< {"jsonrpc":"2.0","id":2,"result":{}}
=== a message that nobody expects
over: stdio
> {"jsonrpc":"2.0","id":1,"method":"ping"}
! close
< end
"#;

#[tokio::test]
async fn a_dialogue_that_goes_otherwise_is_told_and_mended_on_demand() {
    let (differences, unchanged) = play("wrong", WRONG.trim_start(), false).await;
    // Each is played twice: with `initialize` answered at once, and later.
    assert_eq!(differences.len(), 6, "{differences:?}");
    assert!(differences[0].starts_with("wrong:4: a wrong expectation: expected"), "{differences:?}");
    assert_eq!(unchanged, WRONG.trim_start());
    let (_, mended) = play("wrong", WRONG.trim_start(), true).await;
    assert_eq!(mended, WRONG.trim_start().replacen(r#""id":2"#, r#""id":1"#, 1));
}

//! Scenes over HTTP: a server on a real socket, connections by name.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::Value;

use super::script::{Action, Scene, Step};
use super::{Difference, Player};
use crate::fixture;
use crate::peer::{Head, Peer, limited};

struct Client {
    address: SocketAddr,
    peers: BTreeMap<String, Peer>,
}

pub(super) async fn play(scene: &Scene, player: &mut Player) -> Result<(), Difference> {
    let server = player.server(scene);
    let settings = scene.settings.iter().filter(|(name, _)| name != "over" && name != "server");
    let running = fixture::http(server, settings).map_err(|what| (0, what))?;
    let mut client = Client { address: running.address(), peers: BTreeMap::new() };
    for step in &scene.steps {
        client.play(step, player).await?;
    }
    Ok(())
}

impl Client {
    async fn play(&mut self, step: &Step, player: &mut Player) -> Result<(), Difference> {
        let at = |what: String| (step.line, what);
        match (step.action, step.text.as_str()) {
            (Action::Send, _) => self.send(step, player).await.map_err(at),
            (Action::Do, "hang up") => {
                self.peers.remove(&step.peer);
                Ok(())
            }
            (Action::Expect, text) => {
                let peer = self.peers.get_mut(&step.peer).ok_or_else(|| at("no such connection".to_owned()))?;
                match text.split_once(' ').map_or(text, |(word, _)| word) {
                    "event" => event(peer, step, player).await,
                    "end" => end(peer).await.map_err(at),
                    "closed" => match limited("the end of the connection", peer.is_closed()).await.map_err(at)? {
                        true => Ok(()),
                        false => Err(at("the connection goes on".to_owned())),
                    },
                    _ => reply(peer, step, player).await,
                }
            }
            _ => Err(at(format!("what is {:?}?", step.text))),
        }
    }

    /// A request; what most requests have is added where the script says nothing else.
    async fn send(&mut self, step: &Step, player: &Player) -> Result<(), String> {
        let (method, path) = step.text.split_once(' ').ok_or("a method and a path")?;
        let is_body = |text: &str| text.starts_with(['{', '[', '\'']);
        let (bodies, headers): (Vec<_>, Vec<_>) = step.more.iter().partition(|(_, text)| is_body(text));
        let body: String = bodies.iter().map(|(_, text)| player.memory.fill(text.trim_matches('\''))).collect();
        let mut head = format!("{method} {} HTTP/1.1\r\n", player.memory.fill(path));
        let mut usual = vec![("host".to_owned(), self.address.to_string())];
        match method {
            "POST" => {
                usual.push(("accept".to_owned(), "application/json, text/event-stream".to_owned()));
                usual.push(("content-type".to_owned(), "application/json".to_owned()));
                usual.push(("content-length".to_owned(), body.len().to_string()));
            }
            "GET" => usual.push(("accept".to_owned(), "text/event-stream".to_owned())),
            _ => {}
        }
        for (_, text) in headers {
            if let Some(name) = text.strip_prefix('-') {
                usual.retain(|(known, _)| known != name);
                continue;
            }
            let (name, value) = text.split_once(':').ok_or_else(|| format!("no header: {text}"))?;
            usual.retain(|(known, _)| known != name);
            head += &format!("{name}: {}\r\n", player.memory.fill(value.trim()));
        }
        usual.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        if self.peers.get(&step.peer).is_none_or(|peer| peer.closing) {
            let peer = limited("a connection", Peer::connect(self.address)).await??;
            self.peers.insert(step.peer.clone(), peer);
        }
        let peer = self.peers.get_mut(&step.peer).ok_or("no such connection")?;
        let sent = limited("room to write", peer.send(format!("{head}\r\n{body}").as_bytes())).await?;
        if sent { Ok(()) } else { Err("the server takes no request".to_owned()) }
    }
}

async fn reply(peer: &mut Peer, step: &Step, player: &mut Player) -> Result<(), Difference> {
    let at = |what: String| (step.line, what);
    let head = limited("a reply", peer.head()).await.map_err(at)?.map_err(at)?;
    let head = head.ok_or_else(|| at("the connection ended without a reply".to_owned()))?;
    let is_stream = head.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    let body = match is_stream {
        true => String::new(),
        false => {
            let body = limited("a body", peer.rest()).await.map_err(at)?.map_err(at)?;
            String::from_utf8(body).map_err(|error| at(error.to_string()))?
        }
    };
    if head.status.to_string() != step.text {
        return Err(at(format!("expected {}, came {} {body}", step.text, head.status)));
    }
    let mut has_body = false;
    for (line, text) in &step.more {
        if text.starts_with(['{', '[']) {
            has_body = true;
            player.compare(*line, text, &body)?;
        } else if text == "empty" {
            has_body = true;
            player.compare_text(*line, "the body", "", &body)?;
        } else {
            header(*line, text, &head, player)?;
        }
    }
    match has_body || is_stream || body.is_empty() {
        true => Ok(()),
        false => Err(at(format!("a body that the script doesn't show: {body}"))),
    }
}

fn header(line: usize, text: &str, head: &Head, player: &mut Player) -> Result<(), Difference> {
    let (name, wanted) = text.split_once(':').ok_or_else(|| (line, format!("no header: {text}")))?;
    match (wanted.trim(), head.header(name)) {
        ("none", None) => Ok(()),
        ("none", Some(value)) => Err((line, format!("{name} is there: {value}"))),
        (wanted, Some(value)) => player.compare_text(line, name, wanted, value),
        (_, None) => Err((line, format!("{name} is missing"))),
    }
}

async fn event(peer: &mut Peer, step: &Step, player: &mut Player) -> Result<(), Difference> {
    let at = |what: String| (step.line, what);
    let event = limited("an event", peer.event()).await.map_err(at)?.map_err(at)?;
    let event = event.ok_or_else(|| at("the stream ended".to_owned()))?;
    let wanted = step.text.strip_prefix("event").unwrap_or_default().trim();
    let kind = if wanted.is_empty() { "message" } else { wanted };
    player.compare_text(step.line, "the event", kind, event.kind())?;
    for (line, text) in &step.more {
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        match (name, value.trim()) {
            ("id", "none") if event.id.is_none() => {}
            ("id", wanted) => {
                let id = event.id.as_deref().ok_or_else(|| (*line, "no id".to_owned()))?;
                player.compare_text(*line, "the id", wanted, id)?;
            }
            ("retry", wanted) => {
                let retry = peer.retry().map(|retry| retry.to_string()).unwrap_or_default();
                player.compare_text(*line, "retry", wanted, &retry)?;
            }
            ("data", wanted) => player.compare_text(*line, "the data", wanted, &event.data)?,
            _ => player.compare(*line, text, &event.data)?,
        }
    }
    let has_data = step.more.iter().any(|(_, text)| text.starts_with(['{', '[']) || text.starts_with("data:"));
    match has_data {
        true => Ok(()),
        false => Err(at(format!("data that the script doesn't show: {}", event.data))),
    }
}

async fn end(peer: &mut Peer) -> Result<(), String> {
    let rest = limited("the end of the body", peer.event()).await??;
    match rest {
        None => Ok(()),
        Some(event) => {
            let data: Value = serde_json::from_str(&event.data).unwrap_or(Value::from(event.data));
            Err(format!("the body goes on with {data}"))
        }
    }
}

//! Scenes over stdio: the server on one end of a pipe in memory.

use mcpace_serve::stdio::{self, Options};
use mcpace_wire::lines;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};

use super::script::{Action, Scene, Step};
use super::{Difference, Player};
use crate::peer::limited;

/// Smaller than many a message, so that reads and writes are cut in the middle.
const PIPE: usize = 256;

struct Client {
    input: Option<WriteHalf<DuplexStream>>,
    output: ReadHalf<DuplexStream>,
    decoder: lines::Decoder,
}

pub(super) async fn play(scene: &Scene, player: &mut Player) -> Result<(), Difference> {
    let (ours, theirs) = tokio::io::duplex(PIPE);
    let (output, input) = tokio::io::split(ours);
    let (their_input, their_output) = tokio::io::split(theirs);
    let mut client = Client { input: Some(input), output, decoder: lines::Decoder::new(1 << 20) };
    let options = options(scene)?;
    let server = player.server(scene);
    let serving = async {
        let end = stdio::serve_streams(server, options, their_input, their_output).await;
        end.map_err(|error| (0, format!("the server failed: {error}")))
    };
    let talking = async {
        let talked = talk(scene, player, &mut client).await;
        client.close().await;
        talked
    };
    // The talk first: where it fails, nobody ends the server's input.
    let serving = std::pin::pin!(serving);
    let mut talking = std::pin::pin!(talking);
    let end = tokio::select! {
        biased;
        talked = &mut talking => {
            talked?;
            return Ok(());
        }
        end = serving => end?,
    };
    talking.await?;
    match scene.setting("ends") {
        Some(wanted) if wanted != format!("{end:?}") => Err((0, format!("the end: {end:?}, not {wanted}"))),
        _ => Ok(()),
    }
}

fn options(scene: &Scene) -> Result<Options, Difference> {
    let mut options = Options::default();
    for (name, value) in &scene.settings {
        let number = || value.parse().map_err(|_| (0, format!("{name}: {value:?} is no number")));
        match name.as_str() {
            "line limit" => options.line_limit = number()?,
            "call limit" => options.call_limit = number()?,
            "waiting limit" => options.waiting_limit = number()?,
            "drain limit ms" => options.drain_limit = std::time::Duration::from_millis(number()? as u64),
            "over" | "server" | "ends" => {}
            _ => return Err((0, format!("no such setting: {name}"))),
        }
    }
    Ok(options)
}

async fn talk(scene: &Scene, player: &mut Player, client: &mut Client) -> Result<(), Difference> {
    let mut steps = scene.steps.iter().peekable();
    while let Some(step) = steps.next() {
        match (step.action, step.text.as_str()) {
            (Action::Send, text) => client.send(&player.memory.fill(text)).await.map_err(|what| (step.line, what))?,
            (Action::Do, "close") => client.close().await,
            (Action::Expect, "end") => match client.line().await.map_err(|what| (step.line, what))? {
                Some(line) => return Err((step.line, format!("expected the end, came {line}"))),
                None => return Ok(()),
            },
            (Action::Expect, expected) => {
                let line = client.expect(step).await?;
                player.compare(step.line, expected, &line)?;
            }
            (Action::ExpectAnyOrder, _) => {
                let mut group = vec![step];
                while let Some(next) = steps.next_if(|next| next.action == Action::ExpectAnyOrder) {
                    group.push(next);
                }
                any_order(player, client, group).await?;
            }
            (Action::Do, other) => return Err((step.line, format!("do what? {other}"))),
        }
    }
    Ok(())
}

async fn any_order(player: &mut Player, client: &mut Client, mut group: Vec<&Step>) -> Result<(), Difference> {
    while !group.is_empty() {
        let line = client.expect(group[0]).await?;
        let fits = group.iter().position(|step| player.compare(step.line, &step.text, &line).is_ok());
        match fits {
            Some(at) => drop(group.remove(at)),
            None => return Err((group[0].line, format!("fits none of the lines here: {line}"))),
        }
    }
    Ok(())
}

impl Client {
    async fn close(&mut self) {
        if let Some(mut input) = self.input.take() {
            // Where the server is gone already there is nothing left to close.
            let _ = input.shutdown().await;
        }
    }

    async fn send(&mut self, text: &str) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("the input is closed")?;
        let mut line = Vec::new();
        lines::encode_line(text.as_bytes(), &mut line);
        limited("room to write", input.write_all(&line)).await?.map_err(|error| error.to_string())
    }

    async fn expect(&mut self, step: &Step) -> Result<String, Difference> {
        let line = self.line().await.map_err(|what| (step.line, what))?;
        line.ok_or_else(|| (step.line, "the output ended".to_owned()))
    }

    async fn line(&mut self) -> Result<Option<String>, String> {
        loop {
            if let Some(line) = self.decoder.next_line().map_err(|error| error.to_string())? {
                return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
            }
            let mut chunk = [0; 1024];
            let read = limited("a line from the server", self.output.read(&mut chunk)).await?;
            match read.map_err(|error| error.to_string())? {
                0 => return Ok(None),
                length => self.decoder.feed(&chunk[..length]),
            }
        }
    }
}

//! Ways to the 'everything' server, and callbacks that answer all of its questions.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpace_client::{Callbacks, Client, Mode, Options, Socket, Target};
use mcpace_serve::http::{self, Endpoint, ServerHandle};
use mcpace_serve::{Builder, Server, stdio};
use mcpace_wire::mcp::{
    ContentBlock, CreateMessageResult, ElicitAction, ElicitResult, ElicitationCapability, Extra, Json, ListRootsResult,
    OneOrMany, Role, Root, SamplingCapability,
};
use serde_json::json;

use crate::{ask, changes, content, inputs, jobs, prompts, resources, talk};

pub(crate) fn everything() -> Server {
    let register: [fn(Builder) -> Builder; 8] = [
        content::register,
        talk::register,
        ask::register,
        inputs::register,
        changes::register,
        jobs::register,
        resources::register,
        prompts::register,
    ];
    let builder = Server::builder("everything", "1").instructions("Has everything.");
    register.into_iter().fold(builder, |builder, register| register(builder)).build().unwrap()
}

pub(crate) fn http_options() -> http::Options {
    http::Options { address: ([127, 0, 0, 1], 0).into(), ..http::Options::default() }
}

pub(crate) fn serve(options: http::Options) -> (ServerHandle, Target) {
    let running = http::serve(everything(), options).unwrap();
    let target = Target::url(&format!("http://{}/mcp", running.address())).unwrap();
    (running, target)
}

/// HTTP without a socket.
pub(crate) fn in_memory_http(server: Server) -> Target {
    let endpoint = Endpoint::new(server, http_options()).unwrap();
    Target::url_over("http://localhost/mcp", move || {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let endpoint = endpoint.clone();
        tokio::spawn(async move { endpoint.serve(theirs).await });
        async { Ok(Box::new(ours) as Box<dyn Socket>) }
    })
    .unwrap()
}

/// Lines, as over stdio, without a process.
pub(crate) fn in_memory_pipe(server: Server) -> Target {
    Target::pipe(move || {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (input, output) = tokio::io::split(theirs);
        let server = server.clone();
        tokio::spawn(async move { stdio::serve_streams(server, stdio::Options::default(), input, output).await });
        async { Ok(Box::new(ours) as Box<dyn Socket>) }
    })
}

/// Notifications that the callbacks heard.
pub(crate) type Heard = Arc<Mutex<Vec<String>>>;

pub(crate) fn callbacks() -> (Callbacks, Heard) {
    let heard = Heard::default();
    let told = Arc::clone(&heard);
    let callbacks = Callbacks::default()
        .sampling(SamplingCapability::default(), |params| async move {
            assert_eq!(params.max_tokens, 100);
            Ok(CreateMessageResult {
                role: Role::Assistant,
                content: OneOrMany::One(ContentBlock::text("Paris")),
                model: "m".to_owned(),
                stop_reason: None,
                meta: None,
                extra: Extra::new(),
            })
        })
        .elicitation(ElicitationCapability::default(), |_| async {
            let content = json!({"name": "Ada", "response": "yes", "confirm": true, "context": "tea", "ok": true, "color": "red"});
            Ok(ElicitResult {
                action: ElicitAction::Accept,
                content: Json::of(&content).ok(),
                meta: None,
                extra: Extra::new(),
            })
        })
        .roots(|| async {
            let root = Root { uri: "file:///home".to_owned(), ..Root::default() };
            Ok(ListRootsResult { roots: vec![root], ..ListRootsResult::default() })
        })
        .hears(move |news| told.lock().unwrap().push(news.method.to_owned()));
    (callbacks, heard)
}

pub(crate) async fn connect(target: &Target, mode: Mode, callbacks: Callbacks) -> Client {
    let options = Options { mode, callbacks, ..Options::default() };
    limited(Client::connect(target.clone(), options)).await.unwrap()
}

/// Nothing in these tests may hang.
pub(crate) async fn limited<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), work).await.expect("it hangs")
}

pub(crate) fn text(blocks: &[ContentBlock]) -> &str {
    match &blocks[0] {
        ContentBlock::Text(text) => &text.text,
        other => panic!("{other:?}"),
    }
}

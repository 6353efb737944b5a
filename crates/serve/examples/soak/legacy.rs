//! Sessions that come and go: calls, questions, progress, cancellation, resumption, subscriptions, 2024-11-05's two endpoints.

use hyper::{Method, Request};
use mcpace_wire::Revision;
use serde_json::{Value, json};

use crate::client::{Accept, Link, Outcome, Reply, Way, call, expect, notification, request, text_of};
use crate::load::{Dice, Target};

const REVISIONS: [Revision; 3] = [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

/// A session and the connection that it was begun on.
struct Session {
    link: Link,
    id: String,
    revision: Revision,
}

impl Session {
    async fn begin(target: &Target, revision: Revision) -> Outcome<Self> {
        let mut link = Link::open(target.address).await?;
        let way = Way { revision, session: None, accept: Accept::Both };
        let reply = link.send(way.post(&initialize(revision))).await?;
        let id = reply.header("mcp-session-id").ok_or("initialize began no session")?.to_owned();
        reply.answer(&json!(0)).await?;
        let mut session = Self { link, id, revision };
        session.tell(&notification("notifications/initialized", json!({}))).await?;
        Ok(session)
    }

    fn way(&self, accept: Accept) -> Way<'_> {
        Way { revision: self.revision, session: Some(&self.id), accept }
    }

    async fn open(&mut self, accept: Accept, message: &Value) -> Outcome<Reply> {
        let request = self.way(accept).post(message);
        self.link.send(request).await
    }

    async fn ask(&mut self, accept: Accept, message: &Value) -> Outcome<Value> {
        self.open(accept, message).await?.answer(&message["id"]).await
    }

    async fn tell(&mut self, message: &Value) -> Outcome {
        let way = Way { revision: self.revision, session: Some(&self.id), accept: Accept::Both };
        self.link.tell(way, message).await
    }

    /// GET on a connection of its own, which is alive as long as the link.
    async fn get(&self, target: &Target, last_event_id: Option<&str>) -> Outcome<(Link, Reply)> {
        let mut link = Link::open(target.address).await?;
        let reply = link.send(self.way(Accept::Events).bare(Method::GET, last_event_id)).await?;
        expect(reply.status() == 200, || format!("GET was answered {}", reply.status()))?;
        Ok((link, reply))
    }

    /// Ends it, or leaves that to the idle limit.
    async fn leave(mut self, dice: &mut Dice) -> Outcome {
        if dice.one_of(2) == 0 {
            return Ok(());
        }
        let delete = self.way(Accept::Both).bare(Method::DELETE, None);
        let reply = self.link.send(delete).await?;
        expect(reply.status() == 204, || format!("DELETE was answered {}", reply.status()))
    }
}

fn initialize(revision: Revision) -> Value {
    let capabilities = json!({"sampling": {}, "elicitation": {"form": {}}, "roots": {}});
    let client = json!({"name": "soak", "version": "1"});
    request(0, "initialize", json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": client}))
}

pub(crate) async fn calls(target: &Target, dice: &mut Dice) -> Outcome {
    let revision = dice.pick(&REVISIONS);
    let mut session = Session::begin(target, revision).await?;
    for id in 1..=dice.one_of(20) {
        let answer = session.ask(dice.pick(&Accept::ALL), &call(id, "echo", json!({"text": "soaked"}))).await?;
        expect(text_of(&answer)? == "soaked", || answer.to_string())?;
    }
    for method in ["ping", "tools/list", "resources/list", "prompts/list", "no/such/method"] {
        session.ask(dice.pick(&Accept::ALL), &request(50, method, json!({}))).await?;
    }
    if revision.has_batches() {
        let echo = |id| call(id, "echo", json!({"text": "in a batch"}));
        let batch = json!([echo(60), notification("notifications/unknown", json!({})), echo(61)]);
        let reply = session.open(Accept::Json, &batch).await?;
        let replies: Vec<Value> = serde_json::from_slice(&reply.rest().await?)?;
        expect(replies.len() == 2, || format!("{} replies to a batch of two requests", replies.len()))?;
    }
    session.leave(dice).await
}

pub(crate) async fn progress(target: &Target, dice: &mut Dice) -> Outcome {
    let mut session = Session::begin(target, dice.pick(&REVISIONS)).await?;
    let tool = dice.pick(&["test_tool_with_progress", "test_tool_with_logging"]);
    text_of(&session.ask(dice.pick(&Accept::ALL), &call(1, tool, json!({}))).await?)?;
    session.leave(dice).await
}

/// The question comes on the call's own stream, or on the standalone one where the reply is JSON.
pub(crate) async fn questions(target: &Target, dice: &mut Dice) -> Outcome {
    let mut session = Session::begin(target, dice.pick(&REVISIONS)).await?;
    let (tool, arguments, answer) = dice.pick_of(vec![
        (
            "test_sampling",
            json!({"prompt": "Who?"}),
            json!({"role": "assistant", "content": {"type": "text", "text": "Nobody"}, "model": "none"}),
        ),
        ("test_elicitation", json!({"message": "Who?"}), json!({"action": "decline"})),
    ]);
    let mut others = Link::open(target.address).await?;
    let answered = |question: &Value| json!({"jsonrpc": "2.0", "id": question["id"], "result": answer});
    let message = call(1, tool, arguments);
    if dice.one_of(2) == 0 {
        let mut reply = session.open(Accept::Both, &message).await?;
        let question = reply.message().await?;
        others
            .tell(
                Way { accept: Accept::Both, session: Some(&session.id), revision: session.revision },
                &answered(&question),
            )
            .await?;
        text_of(&reply.answer(&json!(1)).await?)?;
    } else {
        let (_standalone, mut questions) = session.get(target, None).await?;
        let way = Way { accept: Accept::Json, session: Some(&session.id), revision: session.revision };
        let answering = async {
            // Changes by others come in between.
            let question = loop {
                let message = questions.message().await?;
                if !message["id"].is_null() {
                    break message;
                }
            };
            others.tell(way, &answered(&question)).await
        };
        let (reply, told) = tokio::join!(session.link.ask(way, &message), answering);
        told?;
        text_of(&reply?)?;
    }
    session.leave(dice).await
}

/// Nobody answers: the client takes its call back, or goes away.
pub(crate) async fn unanswered(target: &Target, dice: &mut Dice) -> Outcome {
    let mut session = Session::begin(target, dice.pick(&REVISIONS)).await?;
    let mut reply = session.open(Accept::Both, &call(1, "test_elicitation", json!({"message": "Who?"}))).await?;
    reply.message().await?;
    if dice.one_of(2) == 0 {
        return Ok(());
    }
    cancel(target, &session, 1).await?;
    while reply.event().await?.is_some() {}
    session.leave(dice).await
}

pub(crate) async fn cancelled(target: &Target, dice: &mut Dice) -> Outcome {
    let mut session = Session::begin(target, dice.pick(&REVISIONS)).await?;
    let accept = dice.pick(&Accept::ALL);
    let way = Way { accept, session: Some(&session.id), revision: session.revision };
    let endless = call(1, "slow_compute", json!({"seconds": 60.0}));
    let calling = async {
        let reply = session.link.send(way.post(&endless)).await?;
        reply.rest().await
    };
    let cancelling = async {
        // The call may come second: then this does nothing, and is said again.
        let mut link = Link::open(target.address).await?;
        loop {
            link.tell(way, &notification("notifications/cancelled", json!({"requestId": 1}))).await?;
            tokio::time::sleep(dice.moment()).await;
        }
    };
    tokio::select! {
        called = calling => drop(called?),
        told = cancelling => return told,
    }
    session.leave(dice).await
}

async fn cancel(target: &Target, session: &Session, id: u64) -> Outcome {
    let cancelled = notification("notifications/cancelled", json!({"requestId": id}));
    Link::open(target.address).await?.tell(session.way(Accept::Both), &cancelled).await
}

/// The client goes away while its call runs.
pub(crate) async fn left(target: &Target, dice: &mut Dice) -> Outcome {
    let mut session = Session::begin(target, dice.pick(&REVISIONS)).await?;
    // A stream that can be taken up again goes on to its end, so that has to come.
    let slow = call(1, "slow_compute", json!({"seconds": 0.5}));
    let calling = session.ask(dice.pick(&Accept::ALL), &slow);
    // Not hearing in time is what is wanted here.
    let heard = tokio::time::timeout(dice.moment(), calling).await;
    expect(heard.is_err(), || "a call of half a second was answered at once".to_owned())
}

/// A stream that is lost, or let go by the server, and taken up again.
pub(crate) async fn resumed(target: &Target, dice: &mut Dice) -> Outcome {
    let mut session = Session::begin(target, Revision::V2025_11_25).await?;
    let tool = dice.pick(&["test_reconnection", "test_tool_with_progress"]);
    let mut reply = session.open(Accept::Events, &call(1, tool, json!({}))).await?;
    let first = reply.event().await?.and_then(|event| event.id).ok_or("no id to come back with")?;
    if dice.one_of(4) == 0 {
        // Never comes back.
        return Ok(());
    }
    drop(reply);
    session.link = Link::open(target.address).await?;
    let (_link, again) = session.get(target, Some(&first)).await?;
    text_of(&again.answer(&json!(1)).await?)?;
    session.leave(dice).await
}

/// A resource is watched, and changes.
pub(crate) async fn watched(target: &Target, dice: &mut Dice) -> Outcome {
    let mut session = Session::begin(target, dice.pick(&REVISIONS)).await?;
    let (_standalone, mut told) = session.get(target, None).await?;
    let subscribe = request(1, "resources/subscribe", json!({"uri": "test://watched-resource"}));
    session.ask(Accept::Json, &subscribe).await?;
    session.ask(Accept::Json, &call(2, "test_trigger_resource_change", json!({}))).await?;
    loop {
        if told.message().await?["method"] == "notifications/resources/updated" {
            break;
        }
    }
    session.leave(dice).await
}

/// 2024-11-05: one stream for all answers, which is the session.
pub(crate) async fn two_endpoints(target: &Target, dice: &mut Dice) -> Outcome {
    let mut stream = Link::open(target.address).await?;
    let get = Request::builder().uri("/sse").header("host", "localhost").header("accept", "text/event-stream");
    let mut events = stream.send(get.body(<_>::default())?).await?;
    let endpoint = events.event().await?.ok_or("no endpoint")?.data;
    let mut link = Link::open(target.address).await?;
    let revision = Revision::V2024_11_05;
    for message in
        [initialize(revision), call(1, "echo", json!({"text": "a"})), call(2, "slow_compute", json!({"seconds": 60.0}))]
    {
        let mut post = Way { revision, session: None, accept: Accept::Both }.post(&message);
        *post.uri_mut() = endpoint.parse()?;
        let reply = link.send(post).await?;
        expect(reply.status() == 202, || format!("{message} was answered {}", reply.status()))?;
        reply.rest().await?;
        if message["params"]["name"] != "slow_compute" {
            // Changes by others come in between.
            while events.message().await?["id"] != message["id"] {}
        }
    }
    tokio::time::sleep(dice.moment()).await;
    Ok(())
}

//! Several servers behind one port: the session of one is reached through any of them.

use std::path::PathBuf;

use mcpace_serve::http::{Options, ResponseMode, ServerHandle, WorkerGroup};
use serde_json::json;
use tempfile::TempDir;

use crate::http_harness::{Request, ask, call, echo, event, head, open, session, start, text_of};
use crate::peer::{Peer, limited};

const REVISION: &str = "2025-11-25";

/// Servers as in processes of their own: nothing is shared but the folder.
fn family(count: usize, change: fn(&mut Options)) -> (Vec<ServerHandle>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let members = (0..count).map(|own| member(&folder, own, count, change)).collect();
    (members, folder)
}

fn member(folder: &TempDir, own: usize, count: usize, change: fn(&mut Options)) -> ServerHandle {
    let sockets: Vec<PathBuf> = (0..count).map(|number| folder.path().join(number.to_string())).collect();
    start(|options| {
        options.family = Some(WorkerGroup::new(own, sockets).unwrap());
        change(options);
    })
}

#[tokio::test]
async fn a_session_is_reached_through_any_member_and_lives_in_one() {
    let (members, _folder) = family(3, |_| {});
    let id = session(members[1].address(), REVISION).await;
    for member in &members {
        let request = Request::post(&echo(1, "hi")).within(&id, REVISION);
        let answer = ask(member.address(), &request).await;
        assert_eq!(text_of(&answer.json()), "hi");
        assert_eq!(answer.head.header("content-type"), Some("application/json"));
    }
    assert_eq!(members.iter().map(ServerHandle::sessions).collect::<Vec<_>>(), [0, 1, 0]);
    let delete = Request::bare("DELETE").within(&id, REVISION);
    assert_eq!(ask(members[2].address(), &delete).await.head.status, 204);
    assert_eq!(ask(members[0].address(), &delete).await.head.status, 404);
    assert_eq!(members[1].sessions(), 0);
}

#[tokio::test]
async fn one_connection_serves_sessions_of_all_members() {
    let (members, _folder) = family(2, |_| {});
    let mut peer = Peer::connect(members[0].address()).await.unwrap();
    for member in [0, 1, 1, 0, 1] {
        let id = session(members[member].address(), REVISION).await;
        peer.send(&Request::post(&echo(1, "hi")).within(&id, REVISION).bytes()).await;
        assert_eq!(head(&mut peer).await.status, 200);
        let body = limited("a body", peer.rest()).await.unwrap().unwrap();
        assert!(String::from_utf8(body).unwrap().contains("hi"));
    }
}

#[tokio::test]
async fn streams_and_questions_go_through_other_members() {
    let (members, _folder) = family(2, |options| options.response = ResponseMode::Json);
    let id = session(members[0].address(), REVISION).await;
    let other = members[1].address();
    let mut standalone = open(other, &Request::bare("GET").within(&id, REVISION)).await;
    assert_eq!(head(&mut standalone).await.header("content-type"), Some("text/event-stream"));
    let talk = Request::post(&call(1, "talk", &json!({}))).within(&id, REVISION);
    assert_eq!(text_of(&ask(other, &talk).await.json()), "talked");
    assert_eq!(event(&mut standalone).await.unwrap()["method"], "notifications/progress");
}

#[tokio::test]
async fn a_stream_is_taken_up_again_through_another_member() {
    let (members, _folder) = family(2, |_| {});
    let id = session(members[0].address(), REVISION).await;
    let other = members[1].address();
    let mut lost = open(other, &Request::post(&call(1, "steps", &json!({}))).within(&id, REVISION)).await;
    head(&mut lost).await;
    let priming = limited("priming", lost.event()).await.unwrap().unwrap().unwrap();
    limited("the first step", lost.event()).await.unwrap().unwrap().unwrap();
    drop(lost);
    let opened = Request::post(&call(2, "open", &json!({}))).within(&id, REVISION);
    assert_eq!(ask(other, &opened).await.head.status, 200);
    let again = Request::bare("GET").within(&id, REVISION).with("Last-Event-ID", priming.id.unwrap());
    let answer = ask(members[0].address(), &again).await;
    assert_eq!(text_of(answer.events().last().unwrap()), "stepped");
}

#[tokio::test]
async fn a_client_that_leaves_is_gone_for_the_owner_too() {
    // In JSON mode there is nothing to come back to: the call is cancelled.
    let (members, _folder) = family(2, |options| options.response = ResponseMode::Json);
    let id = session(members[0].address(), REVISION).await;
    let probe = |tool| Request::post(&call(2, tool, &json!({}))).within(&id, REVISION);
    let lost = open(members[1].address(), &Request::post(&call(1, "wait", &json!({}))).within(&id, REVISION)).await;
    limited("the call begins", ask(members[0].address(), &probe("waiting"))).await.unwrap();
    drop(lost);
    limited("the call is cancelled", ask(members[0].address(), &probe("cancelled"))).await.unwrap();
}

#[tokio::test]
async fn with_its_owner_a_session_is_gone_and_its_successor_knows_none() {
    let (mut members, folder) = family(2, |_| {});
    let id = session(members[1].address(), REVISION).await;
    let request = Request::post(&echo(1, "hi")).within(&id, REVISION);
    assert_eq!(ask(members[0].address(), &request).await.head.status, 200);
    let owner = members.pop().unwrap();
    tokio::task::spawn_blocking(move || owner.stop()).await.unwrap();
    assert_eq!(ask(members[0].address(), &request).await.head.status, 404);

    members.push(member(&folder, 1, 2, |_| {}));
    assert_eq!(ask(members[0].address(), &request).await.head.status, 404);
    let id = session(members[1].address(), REVISION).await;
    let request = Request::post(&echo(1, "hi")).within(&id, REVISION);
    assert_eq!(text_of(&ask(members[0].address(), &request).await.json()), "hi");
}

#[tokio::test]
async fn an_owner_makes_all_its_checks() {
    let (members, _folder) = family(2, |options| options.limits.body = 200);
    let id = session(members[0].address(), REVISION).await;
    let other = members[1].address();
    let request = Request::post(&echo(1, "hi")).within(&id, REVISION);
    let refused = |request: Request| async move { ask(other, &request).await.head.status };
    assert_eq!(refused(request.clone()).await, 200);
    assert_eq!(refused(request.clone().with("Host", "evil.example")).await, 403);
    assert_eq!(refused(request.clone().with("Origin", "http://evil.example")).await, 403);
    assert_eq!(refused(request.clone().with("Content-Type", "text/plain")).await, 415);
    assert_eq!(refused(request.clone().with("MCP-Protocol-Version", "1999-01-01")).await, 400);
    assert_eq!(refused(request.clone().path("/elsewhere")).await, 404);
    assert_eq!(refused(request.method("PUT")).await, 405);
    let long = "x".repeat(1000);
    assert_eq!(refused(Request::post(&echo(1, &long)).within(&id, REVISION)).await, 413);
}

#[tokio::test]
async fn an_id_of_a_member_that_there_is_not_is_unknown() {
    let (members, _folder) = family(2, |_| {});
    let id = session(members[0].address(), REVISION).await;
    // The two digits that are the member's number.
    for member in ["02", "ff"] {
        let forged = format!("{}{member}{}", &id[..14], &id[16..]);
        let request = Request::post(&echo(1, "hi")).within(&forged, REVISION);
        assert_eq!(ask(members[0].address(), &request).await.head.status, 404, "{member}");
    }
}

#[test]
fn a_family_has_its_member_and_not_too_many() {
    let sockets = |count: usize| (0..count).map(|number| PathBuf::from(number.to_string())).collect::<Vec<_>>();
    assert!(WorkerGroup::new(1, sockets(2)).is_some());
    assert!(WorkerGroup::new(255, sockets(256)).is_some());
    assert!(WorkerGroup::new(2, sockets(2)).is_none());
    assert!(WorkerGroup::new(0, sockets(0)).is_none());
    assert!(WorkerGroup::new(0, sockets(257)).is_none());
}

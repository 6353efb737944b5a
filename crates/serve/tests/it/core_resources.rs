//! Resources, prompts and completions.

use mcpace_serve::{
    BuildError, Completion, HandlerError, NoArguments, Prompt, ReplyStatus, Resource, ResourceTemplate, Server,
};
use mcpace_wire::Revision;
use serde_json::{Value, json};

use crate::core_harness::{Client, MODERN};
use crate::core_server::server;

#[tokio::test(start_paused = true)]
async fn resources_are_read() {
    let server = server();
    for revision in Revision::ALL {
        let client = Client::connect(&server, revision);
        let read = |uri: &'static str| client.ask("r", "resources/read", json!({"uri": uri}));
        let one = read("note://one").await;
        assert_eq!(one.result()["contents"], json!([{"uri": "note://one", "mimeType": "text/plain", "text": "first"}]));
        assert_eq!(one.result()["ttlMs"] == 0, revision.is_modern());
        assert_eq!(one.result()["cacheScope"] == "private", revision.is_modern());
        assert_eq!(one.result()["resultType"] == "complete", revision.is_modern());
        let bytes = read("note://bytes").await;
        assert_eq!(bytes.result()["contents"], json!([{"uri": "note://bytes", "blob": "AP8="}]));
        assert_eq!(read("note://slow").await.result()["contents"][0]["text"], "for \"r\"");
        let dated = read("note://1999/a%20b").await;
        assert_eq!(dated.result()["contents"][0]["text"], "a b in 1999");
    }
}

#[tokio::test(start_paused = true)]
async fn missing_resources_have_the_revisions_code() {
    let server = server();
    for revision in Revision::ALL {
        let client = Client::connect(&server, revision);
        for uri in ["note://nope", "note://gone", "", "note://1999/a/b"] {
            let answer = client.now(1, "resources/read", json!({"uri": uri}));
            let code = if revision.is_modern() { -32602 } else { -32002 };
            assert_eq!(answer.error(), (code, ReplyStatus::Ok), "{uri}");
            assert_eq!(answer.body["error"]["data"], json!({"uri": uri}));
        }
        assert_eq!(client.now(1, "resources/read", json!({})).error().0, -32602);
    }
}

#[test]
fn prompts_are_filled_in() {
    let server = server();
    for revision in Revision::ALL {
        let client = Client::connect(&server, revision);
        let answer = client.now(1, "prompts/get", json!({"name": "greet", "arguments": {"text": "Ada"}}));
        assert_eq!(
            answer.result()["messages"],
            json!([{"role": "user", "content": {"type": "text", "text": "Greet Ada"}}])
        );
        let list = client.now(2, "prompts/list", json!({}));
        let told = &list.result()["prompts"][0]["arguments"];
        assert_eq!(*told, json!([{"name": "text", "description": "Text to say.", "required": true}]));
        assert!(list.result()["prompts"][1]["arguments"].is_null());
        for params in [
            json!({}),
            json!({"name": "nope"}),
            json!({"name": "greet"}),
            json!({"name": "greet", "arguments": {"text": 1}}),
        ] {
            assert_eq!(client.now(3, "prompts/get", params).error(), (-32602, ReplyStatus::Ok));
        }
        let broken = client.now(4, "prompts/get", json!({"name": "broken"}));
        assert_eq!((broken.error().0, broken.message()), (-32603, "internal error"));
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_are_completed() {
    let server = server();
    for revision in Revision::ALL.into_iter().skip(1) {
        let client = Client::connect(&server, revision);
        let complete = |reference: Value, argument: &'static str| {
            let params = json!({"ref": reference, "argument": {"name": argument, "value": "a"},
                "context": {"arguments": {"title": "t"}}});
            client.ask(1, "completion/complete", params)
        };
        let prompt = json!({"type": "ref/prompt", "name": "greet"});
        let answer = complete(prompt.clone(), "text").await;
        let told = &answer.result()["completion"];
        assert_eq!(told["values"].as_array().unwrap().len(), 100);
        assert_eq!((&told["values"][1], &told["total"], &told["hasMore"]), (&json!("a1"), &json!(150), &json!(true)));
        let template = json!({"type": "ref/resource", "uri": "note://{year}/{title}"});
        assert_eq!(complete(template.clone(), "year").await.result()["completion"]["values"], json!(["t"]));
        // Arguments without proposals have none; what doesn't exist is an error.
        assert_eq!(complete(template, "title").await.result()["completion"]["values"], json!([]));
        assert_eq!(complete(prompt, "other").await.result()["completion"]["values"], json!([]));
        for nothing in [
            json!({"type": "ref/prompt", "name": "x"}),
            json!({"type": "ref/resource", "uri": "x:"}),
            json!({"type": "ref/x"}),
            json!({}),
        ] {
            assert_eq!(complete(nothing, "text").await.error().0, -32602);
        }
    }
}

#[test]
fn mistakes_are_found_at_registration() {
    let builder = || Server::builder("x", "1");
    let resource = || Resource::new("a://b", "b").text("x");
    let template = |text: &str| ResourceTemplate::new(text, "t").handler(|_| Ok::<_, HandlerError>("x"));
    let prompt = || Prompt::new("p").handler(|_: NoArguments| Ok::<_, HandlerError>("x"));
    let completion = |of: Completion| of.handler(|_| Ok(Vec::new()));
    assert!(builder().resource(resource()).resource_template(template("a://{b}")).prompt(prompt()).build().is_ok());
    let wrong = [
        builder().resource(resource()).resource(resource()),
        builder().prompt(prompt()).prompt(prompt()),
        builder().resource_template(template("a:{b}")).resource_template(template("a:{b}")),
        builder().resource(Resource::new("a://b", "b")),
        builder().resource(Resource::new("ab", "b").text("x")),
        builder().prompt(Prompt::new("p")),
        builder().resource_template(template("a:{b}{c}")),
        builder().completion(completion(Completion::prompt("p", "a"))),
        builder()
            .resource_template(template("a:{b}"))
            .completion(completion(Completion::resource_template("a:{b}", "c"))),
        builder().prompt(prompt()).completion(Completion::prompt("p", "a")),
    ];
    for (index, builder) in wrong.into_iter().enumerate() {
        assert!(builder.build().is_err(), "{index}");
    }
    let orphan = builder().completion(completion(Completion::prompt("p", "a"))).build().map(drop);
    assert!(matches!(orphan, Err(BuildError::Orphan { .. })));
}

#[test]
fn cache_hints_of_a_result_win() {
    let server = Server::builder("x", "1")
        .resource(Resource::new("a://b", "b").handler(|_| {
            Ok::<_, HandlerError>(mcpace_wire::mcp::ReadResourceResult { ttl_ms: Some(5), ..<_>::default() })
        }))
        .build()
        .unwrap();
    let read = |revision| Client::connect(&server, revision).now(1, "resources/read", json!({"uri": "a://b"}));
    assert_eq!(read(MODERN).result()["ttlMs"], 5);
    assert_eq!(*read(Revision::V2025_11_25).result(), json!({"contents": []}));
}

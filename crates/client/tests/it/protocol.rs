//! Every request of the protocol, over each way and in each revision.

use std::sync::{Arc, Mutex};

use mcpace_client::{CallOptions, Callbacks, Client, Mode, Options, Target};
use mcpace_serve::http::ResponseMode;
use mcpace_wire::Revision;
use mcpace_wire::mcp::{CacheScope, CompletionArgument, CompletionRef, Extra, LoggingLevel};
use serde_json::json;

use crate::support::{
    callbacks, connect, everything, http_options, in_memory_http, in_memory_pipe, limited, serve, text,
};

const LEGACY: Mode = Mode::Only(Revision::V2025_11_25);

/// All that a server has, asked for once.
async fn asks_for_all(client: &Client, revision: Revision, has_progress: bool) {
    let server = client.server().unwrap();
    assert_eq!((server.revision, server.server.unwrap().name.as_str()), (revision, "everything"));
    assert_eq!(server.instructions.as_deref(), Some("Has everything."));

    let tools = client.list_tools().await.unwrap();
    assert!(tools.len() > 20 && tools.iter().any(|tool| tool.name == "echo"));
    let echo = client.call_tool("echo", &json!({"text": "hello ✓"})).await.unwrap();
    assert_eq!((text(&echo.content), echo.is_error), ("hello ✓", None));
    let failed = client.call_tool("test_error_handling", &json!(null)).await.unwrap();
    assert_eq!(failed.is_error, Some(true));
    let missing = client.call_tool("no_such_tool", &json!({})).await.unwrap_err();
    assert_eq!(missing.code(), "rpc", "{missing}");

    let heard = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&heard);
    let options = CallOptions {
        progress: Some(Arc::new(move |progress| told.lock().unwrap().push(progress.progress))),
        ..CallOptions::default()
    };
    let none = mcpace_client::Arguments::of(&json!({})).unwrap();
    client.call_tool_raw("test_tool_with_progress", &none, &options).await.unwrap();
    let expected: &[f64] = if has_progress { &[0.0, 50.0, 100.0] } else { &[] };
    assert_eq!(*heard.lock().unwrap(), expected);

    assert!(client.list_resources().await.unwrap().len() >= 3);
    assert_eq!(client.list_resource_templates().await.unwrap().len(), 1);
    let resource = client.read_resource("test://static-text").await.unwrap();
    assert!(resource.contents[0].text.as_deref().unwrap().starts_with("This is the content"));
    assert_eq!(client.read_resource("test://none").await.unwrap_err().code(), "rpc");

    assert!(client.list_prompts().await.unwrap().len() >= 4);
    let prompt = client.get_prompt("test_prompt_with_arguments", &json!({"arg1": "one", "arg2": "two"})).await.unwrap();
    assert_eq!(
        text(std::slice::from_ref(&prompt.messages[0].content)),
        "Prompt with arguments: arg1='one', arg2='two'"
    );
    if revision == Revision::V2024_11_05 {
        // Completion came with 2025-03-26's capability for it, and our server begins there.
        return;
    }
    let template = CompletionRef::Resource { uri: "test://template/{id}/data".to_owned(), extra: Extra::new() };
    let typed = CompletionArgument { name: "id".to_owned(), value: String::new(), ..CompletionArgument::default() };
    assert_eq!(client.complete(&template, &typed, None).await.unwrap().completion.values, ["1", "2", "3"]);

    if revision.is_modern() {
        assert_eq!(client.ping().await.unwrap_err().code(), "not-in-revision");
        assert_eq!(client.set_level(LoggingLevel::Info).await.unwrap_err().code(), "not-in-revision");
    } else {
        client.ping().await.unwrap();
        client.set_level(LoggingLevel::Info).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_reached_over_http_in_each_mode_and_revision() {
    for response in [ResponseMode::Auto, ResponseMode::Sse, ResponseMode::Json] {
        for stateless in [false, true] {
            let (_running, target) = serve(mcpace_serve::http::Options { response, stateless, ..http_options() });
            let modes = [
                (Mode::Auto, Revision::V2026_07_28),
                (Mode::Legacy, Revision::V2025_11_25),
                (Mode::Only(Revision::V2025_06_18), Revision::V2025_06_18),
                (Mode::Only(Revision::V2025_03_26), Revision::V2025_03_26),
            ];
            for (mode, revision) in modes {
                let client = connect(&target, mode, Callbacks::default()).await;
                let has_progress = response != ResponseMode::Json;
                limited(asks_for_all(&client, revision, has_progress)).await;
                limited(client.close()).await;
                assert_eq!(client.list_tools().await.unwrap_err().code(), "closed");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_reached_over_http_sse_of_2024_11_05() {
    let (running, _) = serve(mcpace_serve::http::Options { legacy_sse: true, ..http_options() });
    let target = Target::url(&format!("http://{}/sse", running.address())).unwrap();
    let client = connect(&target, Mode::Auto, Callbacks::default()).await;
    assert_eq!(client.server().unwrap().transport, mcpace_client::Transport::HttpSse);
    limited(asks_for_all(&client, Revision::V2024_11_05, true)).await;
    limited(client.close()).await;
}

#[tokio::test]
async fn everything_is_reached_in_memory_over_both_framings() {
    for target in [in_memory_http(everything()), in_memory_pipe(everything())] {
        for (mode, revision) in [(Mode::Auto, Revision::V2026_07_28), (Mode::Legacy, Revision::V2025_11_25)] {
            let client = connect(&target, mode, Callbacks::default()).await;
            limited(asks_for_all(&client, revision, true)).await;
            limited(client.close()).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_of_the_server_are_answered_in_both_eras() {
    let (_running, http) = serve(http_options());
    for target in [http, in_memory_pipe(everything()), in_memory_http(everything())] {
        for mode in [Mode::Auto, LEGACY] {
            let client = connect(&target, mode, callbacks().0).await;
            let call = async |tool, arguments| {
                let result = limited(client.call_tool(tool, &arguments)).await.unwrap();
                text(&result.content).to_owned()
            };
            let none = json!({});
            assert_eq!(call("test_sampling", json!({"prompt": "?"})).await, "LLM response: Paris");
            assert!(call("test_elicitation", json!({"message": "?"})).await.contains("accept"));
            if mode == Mode::Auto {
                assert_eq!(call("test_input_required_result_elicitation", none.clone()).await, "Hello, Ada!");
                assert_eq!(call("test_input_required_result_list_roots", none.clone()).await, "Found 1 root(s)");
                assert!(call("test_input_required_result_request_state", none.clone()).await.contains("state-ok"));
                assert!(call("test_input_required_result_multi_round", none.clone()).await.len() > 5);
                let prompt = client.get_prompt("test_input_required_result_prompt", &none).await.unwrap();
                assert!(text(std::slice::from_ref(&prompt.messages[0].content)).contains("tea"));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_nobody_answers_fails_the_call_in_words() {
    let (_running, target) = serve(http_options());
    let client = connect(&target, Mode::Auto, Callbacks::default()).await;
    let error = limited(client.call_tool("test_input_required_result_elicitation", &json!({}))).await.unwrap_err();
    assert!(matches!(error.code(), "input-refused" | "rpc"), "{error}");
    let client = connect(&target, LEGACY, Callbacks::default()).await;
    let result = limited(client.call_tool("test_sampling", &json!({"prompt": "?"}))).await.unwrap();
    assert_eq!(result.is_error, Some(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn log_messages_come_where_they_are_asked_for() {
    let (_running, target) = serve(http_options());
    for level in [Some(LoggingLevel::Debug), None] {
        let (callbacks, heard) = callbacks();
        let options = Options { log_level: level, callbacks, ..Options::default() };
        let client = Client::connect(target.clone(), options).await.unwrap();
        limited(client.call_tool("test_tool_with_logging", &json!({}))).await.unwrap();
        let logged = heard.lock().unwrap().iter().filter(|method| *method == "notifications/message").count();
        assert_eq!(logged, if level.is_some() { 3 } else { 0 });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_mirrored_in_headers_once_the_listing_told_so() {
    let (_running, target) = serve(http_options());
    let client = connect(&target, Mode::Auto, Callbacks::default()).await;
    // Not listed yet: the server refuses, the client lists and asks again. Then the headers are known.
    for region in ["ö west", " plain "] {
        let result = limited(client.call_tool("test_x_mcp_header", &json!({"region": region, "priority": 5}))).await;
        assert_eq!(text(&result.unwrap().content), format!("region: {region}, priority: 5"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_heard_by_who_listens_and_the_subscription_ends_with_its_owner() {
    use mcpace_client::Change;
    use mcpace_wire::mcp::SubscriptionFilter;
    let (_running, http) = serve(http_options());
    for target in [http, in_memory_pipe(everything())] {
        let client = connect(&target, Mode::Auto, Callbacks::default()).await;
        let wanted = SubscriptionFilter {
            tools_list_changed: Some(true),
            resource_subscriptions: Some(vec!["test://watched-resource".to_owned()]),
            ..SubscriptionFilter::default()
        };
        let mut subscription = limited(client.listen(&wanted)).await.unwrap();
        assert_eq!(subscription.agreed().tools_list_changed, Some(true));
        client.call_tool("test_trigger_tool_change", &json!({})).await.unwrap();
        assert_eq!(limited(subscription.next()).await.unwrap(), Some(Change::Tools));
        client.call_tool("test_trigger_resource_change", &json!({})).await.unwrap();
        let changed = Change::Resource("test://watched-resource".to_owned());
        assert_eq!(limited(subscription.next()).await.unwrap(), Some(changed));
        drop(subscription);
        assert!(limited(client.call_tool("echo", &json!({"text": ""}))).await.is_ok());
        let legacy = connect(&target, LEGACY, Callbacks::default()).await;
        assert_eq!(legacy.listen(&wanted).await.unwrap_err().code(), "not-in-revision");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_changes_are_heard_on_the_standalone_stream() {
    let (_running, target) = serve(http_options());
    let (callbacks, heard) = callbacks();
    let client = connect(&target, LEGACY, callbacks).await;
    client.subscribe_resource("test://watched-resource").await.unwrap();
    let wait = async {
        // The stream may not stand yet when the first change comes: change until one is heard.
        while !heard.lock().unwrap().iter().any(|method| method == "notifications/resources/updated") {
            client.call_tool("test_trigger_resource_change", &json!({})).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    limited(wait).await;
    client.unsubscribe_resource("test://watched-resource").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_followed_to_its_end_and_cancelled_with_its_owner() {
    let (_running, target) = serve(http_options());
    let options = || Options { tasks: true, callbacks: callbacks().0, ..Options::default() };
    let client = Client::connect(target, options()).await.unwrap();
    let done = limited(client.call_tool("slow_compute", &json!({"seconds": 0.05, "label": "x"}))).await.unwrap();
    assert_eq!(text(&done.content), "x computed for 0.05 s");
    let done = limited(client.call_tool("confirm_delete", &json!({"filename": "f"}))).await.unwrap();
    assert_eq!(text(&done.content), "f deleted");
    let done = limited(client.call_tool("multi_input", &json!({}))).await.unwrap();
    assert_eq!(text(&done.content), "2 of 2 accepted");
    let failed = limited(client.call_tool("protocol_error_job", &json!({}))).await.unwrap_err();
    assert_eq!(failed.code(), "rpc");
    assert_eq!(limited(client.task("no-such-task")).await.unwrap_err().code(), "rpc");
}

#[tokio::test]
async fn results_are_kept_as_long_as_the_server_allows_and_changes_end_that() {
    use mcpace_serve::{Resource, Server};
    use std::sync::atomic::{AtomicUsize, Ordering};
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reads);
    let resource = Resource::new("test://counted", "counted")
        .handler(move |_| Ok(counted.fetch_add(1, Ordering::Relaxed).to_string()));
    let server = Server::builder("kept", "1").cache(60_000, CacheScope::Public);
    let server = server.resource(resource).build().unwrap();
    let client = connect(&in_memory_http(server), Mode::Auto, Callbacks::default()).await;
    for _ in 0..3 {
        client.read_resource("test://counted").await.unwrap();
    }
    assert_eq!(reads.load(Ordering::Relaxed), 1);
    for cache in [mcpace_client::CacheMode::Refresh, mcpace_client::CacheMode::Bypass] {
        let options = CallOptions { cache, ..CallOptions::default() };
        client.read_resource_raw("test://counted", &options).await.unwrap();
    }
    assert_eq!(reads.load(Ordering::Relaxed), 3);
}

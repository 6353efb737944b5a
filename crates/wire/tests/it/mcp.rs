use mcpace_wire::Revision;
use mcpace_wire::mcp::{
    CallToolResult, CancelledParams, ClientCapabilities, CompleteParams, ContentBlock, CreateMessageResult,
    DiscoverResult, ElicitParams, InitializeParams, InitializeResult, InputRequiredResult, ListResourcesResult,
    ListToolsResult, LogMessageParams, LoggingLevel, Method, ParamsOutline, ProgressParams, PromptMessage,
    ReadResourceResult, ResultType, Sender, SubscriptionParams, Task, TaskIdParams, TaskStatus, UpdateTaskParams,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads `text` as `T`, writes it, and finds everything again.
#[track_caller]
fn trip<T: Serialize + DeserializeOwned>(text: &str) -> T {
    let value: T = serde_json::from_str(text).unwrap();
    let written: Value = serde_json::from_str(&serde_json::to_string(&value).unwrap()).unwrap();
    assert_eq!(written, serde_json::from_str::<Value>(text).unwrap());
    value
}

#[test]
fn known_members_may_not_come_twice_or_of_another_type() {
    for text in [r#"{"taskId":"a","taskId":"b"}"#, r#"{"taskId":1}"#, "{}", r#"{"taskId":"a","_meta":[5]}"#] {
        assert!(serde_json::from_str::<TaskIdParams>(text).is_err(), "{text}");
    }
    let outline = |text: &str| ParamsOutline::parse(Some(serde_json::from_str(text).unwrap())).map(|_| ());
    assert!(outline(r#"{"name":"a","other":{}}"#).is_ok());
    for text in [r#"{"name":"a","name":"a"}"#, r#"{"_meta":{},"_meta":{}}"#, r#"["a"]"#] {
        assert!(outline(text).is_err(), "{text}");
    }
}

#[test]
fn header_names_come_from_the_member_that_the_method_names() {
    let text = r#"{"name":"n","uri":"u","taskId":"t"}"#;
    let outline = ParamsOutline::parse(Some(serde_json::from_str(text).unwrap())).unwrap();
    let names =
        ["tools/call", "prompts/get", "resources/read", "tasks/get", "tools/list", "x"].map(|m| outline.header_name(m));
    assert_eq!(names, [Some("n"), Some("n"), Some("u"), Some("t"), None, None]);
}

#[test]
fn tools_keep_the_text_of_their_schemas() {
    let text = r#"{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"z":{},"a":{"minimum":1.0}}},"title":"T",
        "annotations":{"readOnlyHint":true,"x":1},"execution":{"taskSupport":"optional"},"icons":[{"src":"data:,","theme":"dark"}]}],
        "nextCursor":"c","ttlMs":5,"cacheScope":"private","resultType":"complete"}"#;
    let list: ListToolsResult = trip(text);
    assert_eq!(list.tools[0].input_schema.get(), r#"{"type":"object","properties":{"z":{},"a":{"minimum":1.0}}}"#);
    assert_eq!(list.ttl_ms, Some(5));
}

#[test]
fn content_is_told_by_type_and_strangers_are_kept() {
    let text = r#"{"content":[{"type":"text","text":"x","annotations":{"audience":["user"],"priority":0.5}},
        {"type":"image","data":"AA==","mimeType":"image/png"},{"type":"audio","data":"","mimeType":"a/b","_meta":{}},
        {"type":"resource_link","uri":"u","name":"n","size":3},{"type":"resource","resource":{"uri":"u","blob":""}},
        {"type":"tool_use","id":"1","name":"n","input":{}},{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":""}]},
        {"type":"hologram","depth":3}],"structuredContent":{"a":1},"isError":false,"more":1}"#;
    let result: CallToolResult = trip(text);
    assert!(matches!(&result.content[0], ContentBlock::Text(text) if text.text == "x"));
    assert!(matches!(&result.content[7], ContentBlock::Other(other) if other["depth"] == 3));
    for text in [r#"{"content":[{"text":"x"}]}"#, r#"{"content":[{"type":"text"}]}"#, r#"{"content":[{"type":1}]}"#] {
        assert!(serde_json::from_str::<CallToolResult>(text).is_err(), "{text}");
    }
    assert_eq!(
        serde_json::to_string(&CallToolResult::error("no")).unwrap(),
        r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#
    );
}

#[test]
fn both_handshakes() {
    trip::<InitializeParams>(
        r#"{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"sampling":{},"elicitation":{"url":{}},"new":{}},"clientInfo":{"name":"n","version":"1","websiteUrl":"w"}}"#,
    );
    trip::<InitializeResult>(
        r#"{"protocolVersion":"2024-11-05","capabilities":{"tools":{},"resources":{"subscribe":true},"logging":{}},"serverInfo":{"name":"n","version":"1"},"instructions":"i"}"#,
    );
    trip::<DiscoverResult>(
        r#"{"supportedVersions":["2026-07-28"],"capabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":0,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":"1"}}}"#,
    );
}

#[test]
fn elicitation_without_a_mode_is_by_form() {
    let forms = |text: &str| serde_json::from_str::<ClientCapabilities>(text).unwrap().elicits_forms();
    assert!(forms(r#"{"elicitation":{}}"#) && forms(r#"{"elicitation":{"form":{},"url":{}}}"#));
    assert!(!forms("{}") && !forms(r#"{"elicitation":{"url":{}}}"#));
}

#[test]
fn requests_in_several_rounds() {
    let text = r#"{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object"}}}},"requestState":"s"}"#;
    let result: InputRequiredResult = trip(text);
    assert_eq!(result.result_type, ResultType::InputRequired);
    let requests = result.input_requests.unwrap();
    let params: ElicitParams = requests["who"].params.as_ref().unwrap().parse().unwrap();
    assert_eq!(params.requested_schema.unwrap().get(), r#"{"type":"object"}"#);
    trip::<CreateMessageResult>(
        r#"{"role":"assistant","content":{"type":"text","text":"x"},"model":"m","stopReason":"endTurn"}"#,
    );
    let many: CreateMessageResult = trip(r#"{"role":"assistant","content":[{"type":"text","text":"x"}],"model":"m"}"#);
    assert_eq!(many.content.as_slice().len(), 1);
}

#[test]
fn tasks_of_both_kinds() {
    let extension = r#"{"resultType":"task","taskId":"t","status":"input_required","createdAt":"c","lastUpdatedAt":"l","ttlMs":null,"pollIntervalMs":5,"inputRequests":{"k":{"method":"roots/list"}}}"#;
    let task: Task = trip(extension);
    assert_eq!((task.ttl_ms, task.ttl, task.result_type), (Some(None), None, Some(ResultType::Task)));
    assert!(!task.status.is_terminal() && TaskStatus::Failed.is_terminal());
    trip::<Task>(
        r#"{"taskId":"t","status":"completed","createdAt":"c","lastUpdatedAt":"l","ttl":60000,"pollInterval":1}"#,
    );
    trip::<Task>(
        r#"{"taskId":"t","status":"completed","createdAt":"c","lastUpdatedAt":"l","ttlMs":1,"result":{"content":[]}}"#,
    );
    trip::<UpdateTaskParams>(r#"{"taskId":"t","inputResponses":{"k":{"action":"accept"}}}"#);
}

#[test]
fn notifications_and_the_rest() {
    trip::<ProgressParams>(r#"{"progressToken":"t","progress":0.5,"total":1.5,"message":"m"}"#);
    trip::<CancelledParams>(r#"{"requestId":12345678901234567890,"reason":"r"}"#);
    trip::<LogMessageParams>(r#"{"level":"emergency","logger":"l","data":[1]}"#);
    trip::<SubscriptionParams>(
        r#"{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["u"],"taskIds":["t"]},"_meta":{"io.modelcontextprotocol/subscriptionId":7}}"#,
    );
    trip::<CompleteParams>(
        r#"{"ref":{"type":"ref/prompt","name":"n","title":"t"},"argument":{"name":"a","value":"v"},"context":{"arguments":{"b":"c"}}}"#,
    );
    trip::<PromptMessage>(r#"{"role":"user","content":{"type":"text","text":"x"}}"#);
    trip::<ReadResourceResult>(
        r#"{"contents":[{"uri":"u","mimeType":"m","text":"t"}],"ttlMs":1,"cacheScope":"public"}"#,
    );
    trip::<ListResourcesResult>(r#"{"resources":[{"uri":"u","name":"n","annotations":{"lastModified":"d"}}]}"#);
    assert!(LoggingLevel::Debug < LoggingLevel::Emergency);
}

#[test]
fn the_table_of_methods_is_consistent() {
    for method in Method::ALL.iter().copied() {
        assert_eq!(Method::parse(method.as_str()), Some(method));
        let (from, to) = method.revisions();
        assert!(from <= to);
    }
    assert_eq!(Method::parse("tools/Call"), None);
    let modern = |method: Method| method.exists_in(Revision::V2026_07_28);
    let removed = [Method::Initialize, Method::Ping, Method::SetLevel, Method::ResourcesSubscribe, Method::TasksList];
    assert!(!removed.into_iter().any(modern));
    assert!(modern(Method::Discover) && !Method::Discover.exists_in(Revision::V2025_11_25));
    assert_eq!(Method::ToolsCall.sender(), Sender::Client);
}

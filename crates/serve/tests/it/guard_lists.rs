//! Lists show what the caller may use, and are otherwise as any list: in order, in whole pages, with cursors that hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use mcpace_serve::guard::{AccessRequest, Denial, Guard, RateLimit, Verdict};
use mcpace_serve::{
    HandlerError, NoArguments, Prompt, Resource, ResourceRequest, ResourceTemplate, Server, Tool, ToolError,
};
use mcpace_wire::Revision;
use mcpace_wire::mcp::CacheScope;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::core_harness::{Client, MODERN};

/// How a tool is guarded, so that it is listed or isn't.
#[derive(Clone, Copy, Debug)]
enum How {
    Open,
    Limited,
    Granted,
    Lacking,
    Agreed,
    Refused,
    AgreedLater,
    RefusedLater,
}

impl How {
    const ALL: [How; 8] = [
        How::Open,
        How::Limited,
        How::Granted,
        How::Lacking,
        How::Agreed,
        How::Refused,
        How::AgreedLater,
        How::RefusedLater,
    ];

    fn guard(self) -> Guard {
        let later = |agrees: bool| {
            move |_: &AccessRequest<'_>| {
                Verdict::Later(Box::pin(async move {
                    tokio::task::yield_now().await;
                    if agrees { Ok(()) } else { Err(Denial::default()) }
                }))
            }
        };
        match self {
            How::Open => Guard::new(),
            How::Limited => Guard::new().limit(RateLimit::new("rare", 1, Duration::from_secs(3_600))),
            How::Granted => Guard::new().scope("known"),
            How::Lacking => Guard::new().scope("unknown"),
            How::Agreed => Guard::new().permission(|_: &AccessRequest<'_>| Verdict::Allowed),
            How::Refused => Guard::new().permission(|_: &AccessRequest<'_>| Verdict::Denied(Denial::default())),
            How::AgreedLater => Guard::new().permission(later(true)),
            How::RefusedLater => Guard::new().permission(later(false)),
        }
    }

    fn is_listed(self) -> bool {
        !matches!(self, How::Lacking | How::Refused | How::RefusedLater)
    }
}

fn server(how: &[How], page_size: usize) -> Server {
    let builder = Server::builder("lists", "1").page_size(page_size).cache(60_000, CacheScope::Public);
    let tools = how.iter().enumerate().map(|(index, how)| {
        Tool::new(format!("tool-{index}")).guard(how.guard()).handler(|_: NoArguments| Ok::<_, ToolError>("done"))
    });
    tools.fold(builder, |builder, tool| builder.tool(tool)).build().unwrap()
}

/// All pages of a list.
async fn pages(client: &Client, method: &str, member: &str, key: &str) -> Vec<Vec<String>> {
    let (mut pages, mut cursor) = (Vec::new(), None::<Value>);
    loop {
        let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
        let answer = client.ask(1, method, params).await;
        let listed = answer.result()[member].as_array().unwrap();
        pages.push(listed.iter().map(|entry| entry[key].as_str().unwrap().to_owned()).collect());
        cursor = answer.result().get("nextCursor").cloned();
        if cursor.is_none() {
            return pages;
        }
        assert!(pages.len() < 1_000, "the list has no end");
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn pages_are_whole_and_hold_what_the_caller_may_use(
        how in prop::collection::vec(prop::sample::select(&How::ALL[..]), 0..24),
        page_size in 1_usize..7,
    ) {
        let server = server(&how, page_size);
        let listed: Vec<String> = (how.iter().enumerate())
            .filter(|(_, how)| how.is_listed())
            .map(|(index, _)| format!("tool-{index}"))
            .collect();
        for revision in [Revision::V2024_11_05, MODERN] {
            let client = Client::stateless(&server, revision).granted("somebody", &["known"]);
            if how.is_empty() {
                continue;
            }
            let pages = block_on(pages(&client, "tools/list", "tools", "name"));
            prop_assert_eq!(&pages.concat(), &listed);
            let (last, others) = pages.split_last().unwrap();
            prop_assert!(others.iter().all(|page| page.len() == page_size), "{:?}", pages);
            // A page after which nothing comes is empty only where there is nothing at all.
            prop_assert!(!last.is_empty() || listed.is_empty(), "{:?}", pages);
        }
    }
}

#[test]
fn a_list_of_what_everybody_may_use_is_as_it_ever_was() {
    let plain = server(&[How::Open, How::Open, How::Open], 2);
    let limited = server(&[How::Limited, How::Open, How::Limited], 2);
    for revision in Revision::ALL {
        let text = |server: &Server| Client::stateless(server, revision).now(1, "tools/list", json!({})).text;
        assert_eq!(text(&plain), text(&limited));
        assert_eq!(text(&plain).contains("\"cacheScope\":\"public\""), revision.is_modern());
    }
}

#[test]
fn a_list_that_differs_by_caller_is_for_the_caller_alone() {
    let server = server(&[How::Open, How::Granted], 10);
    let client = Client::stateless(&server, MODERN);
    for client in [client.clone(), client.granted("somebody", &["known"])] {
        let answer = client.now(1, "tools/list", json!({}));
        assert_eq!(answer.result()["cacheScope"], "private");
        assert_eq!(answer.result()["ttlMs"], 60_000);
    }
}

#[test]
fn two_callers_read_the_same_list_by_their_own_rights() {
    let server = server(&[How::Granted, How::Open, How::Granted, How::Open, How::Open], 2);
    let stranger = Client::stateless(&server, MODERN);
    let known = stranger.clone().granted("somebody", &["known"]);
    let read = |client: &Client| block_on(pages(client, "tools/list", "tools", "name"));
    assert_eq!(read(&stranger), [vec!["tool-1", "tool-3"], vec!["tool-4"]]);
    assert_eq!(read(&known), [vec!["tool-0", "tool-1"], vec!["tool-2", "tool-3"], vec!["tool-4"]]);
}

#[test]
fn a_cursor_ends_with_the_list_that_it_was_of() {
    let server = server(&[How::Granted, How::Granted, How::Granted], 1);
    let client = Client::stateless(&server, MODERN).granted("somebody", &["known"]);
    let cursor = client.now(1, "tools/list", json!({})).result()["nextCursor"].clone();
    let next = |cursor: &Value| client.now(1, "tools/list", json!({"cursor": cursor}));
    assert_eq!(next(&cursor).result()["tools"][0]["name"], "tool-1");
    server.update(|changes| changes.remove_tool("tool-2")).unwrap();
    assert_eq!(next(&cursor).error().0, -32602);
    // The last two are those of a list that everybody may see: readable, and none of this one's.
    for cursor in ["", "nonsense", "x".repeat(100).as_str(), "MC4x", "MS4x"] {
        assert_eq!(next(&json!(cursor)).error().0, -32602, "{cursor}");
    }
}

#[test]
fn all_four_lists_are_filtered() {
    let guard = || Guard::new().scope("known");
    let open = ResourceTemplate::new("open://{id}", "open").handler(|_: ResourceRequest| Ok::<_, HandlerError>("x"));
    let closed = ResourceTemplate::new("closed://{id}", "closed")
        .guard(guard())
        .handler(|_: ResourceRequest| Ok::<_, HandlerError>("x"));
    let server = Server::builder("lists", "1")
        .tool(Tool::new("open").handler(|_: NoArguments| Ok::<_, ToolError>("x")))
        .tool(Tool::new("closed").guard(guard()).handler(|_: NoArguments| Ok::<_, ToolError>("x")))
        .resource(Resource::new("x:open", "open").text("x"))
        .resource(Resource::new("x:closed", "closed").guard(guard()).text("x"))
        .resource_template(open)
        .resource_template(closed)
        .prompt(Prompt::new("open").handler(|_: NoArguments| Ok::<_, HandlerError>("x")))
        .prompt(Prompt::new("closed").guard(guard()).handler(|_: NoArguments| Ok::<_, HandlerError>("x")))
        .build()
        .unwrap();
    let lists = [
        ("tools/list", "tools"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ];
    for revision in Revision::ALL {
        let client = Client::connect(&server, revision);
        for (method, member) in lists {
            let stranger = block_on(pages(&client, method, member, "name"));
            assert_eq!(stranger, [["open"]], "{revision} {method}");
            let known = block_on(pages(&client.clone().granted("a", &["known"]), method, member, "name"));
            assert_eq!(known, [["open", "closed"]], "{revision} {method}");
        }
    }
}

/// All of them list their tools at once.
async fn all_list(clients: impl IntoIterator<Item = Client>) {
    let mut lists = tokio::task::JoinSet::new();
    for client in clients {
        lists.spawn(async move { pages(&client, "tools/list", "tools", "name").await });
    }
    lists.join_all().await;
}

/// How many things are asked about at a time: for all callers, and for one.
const AT_ONCE: u64 = 24;
const FOR_ONE: u64 = 8;

#[tokio::test(start_paused = true)]
async fn what_takes_asking_is_asked_side_by_side() {
    let asked_once = Arc::new(AtomicUsize::new(0));
    let builder = (0..50).fold(Server::builder("lists", "1"), |builder, index| {
        let asked_once = Arc::clone(&asked_once);
        let slow = move |asked: &AccessRequest<'_>| {
            assert!(asked.listing);
            asked_once.fetch_add(1, SeqCst);
            Verdict::Later(Box::pin(async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(())
            }))
        };
        let tool = Tool::new(format!("tool-{index}")).guard(Guard::new().permission(slow.clone()));
        let prompt = Prompt::new(format!("prompt-{index}")).guard(Guard::new().permission(slow));
        let prompt = prompt.handler(|_: NoArguments| Ok::<_, HandlerError>("done"));
        builder.tool(tool.handler(|_: NoArguments| Ok::<_, ToolError>("done"))).prompt(prompt)
    });
    let server = builder.build().unwrap();
    let client = Client::connect(&server, Revision::V2025_06_18);
    let begun = tokio::time::Instant::now();
    let listed = pages(&client, "tools/list", "tools", "name").await;
    assert_eq!(listed[0].len(), 50);
    // Virtual time: so many at once, and never more.
    assert_eq!(begun.elapsed(), Duration::from_secs(50_u64.div_ceil(FOR_ONE)));
    assert_eq!(asked_once.load(SeqCst), 50);
    assert_eq!(client.session().in_flight(), 0);
    // For all lists of a caller together.
    let others = [(); 2].map(|()| Client::connect(&server, Revision::V2025_06_18));
    let begun = tokio::time::Instant::now();
    let (one, two) = tokio::join!(
        pages(&others[0], "tools/list", "tools", "name"),
        pages(&others[1], "prompts/list", "prompts", "name")
    );
    assert_eq!((one[0].len(), two[0].len()), (50, 50));
    assert_eq!(begun.elapsed(), Duration::from_secs(100_u64.div_ceil(FOR_ONE)));
    // One caller's many lists don't keep another's waiting; who is alone with him has as many places as without.
    let connected = |name: &str| Client::connect(&server, Revision::V2025_06_18).granted(name, &[]);
    let (mallory, bob) = ([(); 20].map(|()| connected("mallory")), connected("bob"));
    let begun = tokio::time::Instant::now();
    let all = async {
        all_list(mallory).await;
        begun.elapsed()
    };
    let one = async {
        pages(&bob, "tools/list", "tools", "name").await;
        begun.elapsed()
    };
    let (all, one) = tokio::join!(all, one);
    assert_eq!(one, Duration::from_secs(50_u64.div_ceil(FOR_ONE)));
    assert_eq!(all, Duration::from_secs(1000_u64.div_ceil(FOR_ONE)));
    // Many callers have their turns.
    let many: Vec<_> = (0..6).map(|name| connected(&name.to_string())).collect();
    let begun = tokio::time::Instant::now();
    all_list(many).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(300_u64.div_ceil(AT_ONCE)));
}

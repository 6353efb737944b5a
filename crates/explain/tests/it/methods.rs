//! The requests of a foreign client, by method.

use mcpace_explain::{Method, explain_recording};

use crate::script::{Post, Reply, Script, call_tool, ms, request};

fn methods(script: Script) -> Vec<Method> {
    explain_recording(&script.recording(), None).methods
}

#[test]
fn requests_are_counted_and_timed_by_method_and_tool() {
    let mut script = Script::recorder();
    script.post(request(0.0, 0, "initialize", Reply::Json(400.0, 401.0)));
    for (id, took) in [(1, 10.0), (2, 30.0), (3, 20.0)] {
        let at = 1_000.0 * id as f64;
        script.post(Post { name: Some("greet"), ..call_tool(at, id, Reply::Json(at + took - 1.0, at + took)) });
    }
    script.post(Post { name: Some("other"), ..call_tool(5_000.0, 4, Reply::Silence) });
    let [initialize, greet, other] = methods(script).try_into().unwrap();
    assert_eq!((initialize.method.as_str(), initialize.requests, initialize.name), ("initialize", 1, None));
    assert_eq!((greet.name.as_deref(), greet.requests, greet.succeeded, greet.failed), (Some("greet"), 3, 3, 0));
    let [median, slowest] = [greet.median, greet.slowest].map(Option::unwrap);
    assert!(median >= ms(19.0) && median < ms(25.0) && slowest >= ms(29.0), "{median:?} {slowest:?}");
    assert!(greet.reply_bytes >= greet.largest_reply_bytes);
    assert_eq!((other.requests, other.succeeded, other.failed, other.median), (1, 0, 0, None));
}

#[test]
fn many_methods_share_the_last_row() {
    let mut script = Script::recorder();
    for id in 0..300 {
        let name: &'static str = Box::leak(format!("tool{id}").into_boxed_str());
        let at = id as f64 * 10.0;
        script.post(Post { name: Some(name), ..call_tool(at, id, Reply::Json(at + 1.0, at + 2.0)) });
    }
    let found = methods(script);
    assert_eq!(found.len(), 200);
    assert_eq!(found.iter().map(|method| method.requests).sum::<u64>(), 300);
}

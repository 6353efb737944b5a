//! Listings that nobody asked for.

use mcpace_explain::Cause;
use mcpace_record::Recording;

use crate::script::{Reply, Script, call_tool, ms, request};
use crate::{codes, found};

/// Recordings that show causes.
pub(crate) fn cases() -> Vec<Recording> {
    vec![after_the_result()]
}

/// The client lists the tools after its first result, to check it (python-sdk #3513).
pub(crate) fn after_the_result() -> Recording {
    let mut script = Script::recorder();
    script.call("call", 0.0, 210.0);
    script.post(call_tool(1.0, 1, Reply::Json(8.0, 9.0)));
    script.post(request(11.0, 2, "tools/list", Reply::Json(200.0, 208.0)));
    script.call("call", 300.0, 310.0);
    script.post(call_tool(301.0, 3, Reply::Json(308.0, 309.0)));
    script.recording()
}

#[test]
fn a_listing_after_the_result_is_named_with_its_share_of_the_call() {
    insta::assert_json_snapshot!(found(&after_the_result()));
}

#[test]
fn its_time_is_not_charged_to_late_delivery_as_well() {
    let found = found(&after_the_result());
    assert_eq!(found.len(), 1);
    let Cause::HiddenListing(context) = &found[0].cause else { panic!("{found:?}") };
    assert_eq!((context.calls, context.of_calls, context.listings), (1, 2, 1));
    // From the tool's result at the client, 9.05 ms, to the listing's, 208.05 ms.
    assert_eq!(found[0].calls[0].time, ms(199.0));
}

#[test]
fn a_listing_before_the_tool_is_called_is_another_matter() {
    let mut script = Script::recorder();
    script.call("call", 0.0, 30.0);
    script.post(request(1.0, 1, "tools/list", Reply::Json(8.0, 9.0)));
    script.post(call_tool(11.0, 2, Reply::Json(20.0, 28.0)));
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn a_listing_that_was_asked_for_is_fine() {
    let mut script = Script::recorder();
    script.call("call", 0.0, 10.0);
    script.post(call_tool(1.0, 1, Reply::Json(8.0, 9.0)));
    script.call("list", 20.0, 30.0);
    script.post(request(21.0, 2, "tools/list", Reply::Json(28.0, 29.0)));
    assert_eq!(codes(&script.recording()), [""; 0]);
}

#[test]
fn a_program_that_lists_between_two_calls_asked_for_it() {
    let mut script = Script::recorder();
    script.call("call", 0.0, 50.0);
    script.post(call_tool(1.0, 1, Reply::Json(8.0, 9.0)));
    script.post(request(11.0, 2, "tools/list", Reply::Json(20.0, 28.0)));
    script.post(call_tool(30.0, 3, Reply::Json(40.0, 48.0)));
    assert_eq!(codes(&script.recording()), [""; 0]);
}

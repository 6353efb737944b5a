"""How each finding is shown, and what looks like it and isn't named: one row each, for docs/findings.md.

A place is a file and a test in it; test_proof_table.py holds them to what is there.
"""

from __future__ import annotations

from dataclasses import dataclass

HAND = "crates/explain/tests/it/"
PROOF_TESTS = "tests/python/proof/"


@dataclass(frozen=True)
class Place:
    """A test file with the test that shows a finding, and the control that must stay silent.

    Shows and control may be one test.
    """

    file: str
    shows: str
    control: str


@dataclass(frozen=True)
class Row:
    """The tests that prove one finding."""

    code: str
    hand: Place | None
    """A recording written by hand."""
    live: Place | None
    """A program that does it, through the recorder or the command."""
    release: Place | None
    """A release that does it, in an environment of its time."""
    words: str
    """Which release and which control; or why there is none."""
    in_other_languages: tuple[Place, ...] = ()
    """Programs in other languages than that of `live`."""


def hand(file: str, shows: str, control: str) -> Place:
    return Place(f"{HAND}{file}.rs", shows, control)


def live(file: str, shows: str, control: str | None = None) -> Place:
    return Place(f"{PROOF_TESTS}test_findings_{file}.py", f"test_{shows}", f"test_{control or shows}")


def release(shows: str, control: str | None = None, file: str = "test_old_releases") -> Place:
    return Place(f"{PROOF_TESTS}{file}.py", f"test_{shows}", f"test_{control or shows}")


SCRIPTED = release("at_a_scripted_target")

IN_NODE = live("inside_node", "the_cause_inside_a_tool_of_node_is_named_and_the_change_gains_what_was_estimated")
IN_JAVA = live("inside_java", "the_cause_inside_a_java_tool_is_named_and_its_control_is_not")

ROWS = (
    Row(
        "duplicate-request",
        hand(
            "duplicate_request",
            "each_request_of_mcp_1_12_with_oauth_is_named_and_the_second_execution_counted",
            "a_resend_after_a_failure_is_a_retry",
        ),
        None,
        SCRIPTED,
        "python mcp 1.12.1, 1.13.1 (control 1.11.0, 1.14.0); fastmcp 2.11.2 (4.1.6), at profile:notion",
    ),
    Row(
        "late-delivery",
        hand(
            "late_delivery",
            "a_body_that_is_drained_first_is_named_with_what_the_client_waited_for",
            "a_client_that_needs_a_few_milliseconds_is_not_late",
        ),
        live("waits", "a_client_that_reads_a_stream_to_its_end_has_its_result_late"),
        release("python_mcp_checks_a_large_result_before_it_returns", file="test_proof_results"),
        "python mcp 1.30.0, which checks a large result by its schema first (control typescript 1.32.2); none that "
        "drains a held stream: python mcp 1.8.0 to 2.3.0, mcp-go 0.32.0 and others return at the result",
    ),
    Row(
        "hidden-listing",
        hand(
            "hidden_listing",
            "a_listing_after_the_result_is_named_with_its_share_of_the_call",
            "a_listing_that_was_asked_for_is_fine",
        ),
        live("waits", "a_listing_between_a_result_and_its_return_is_named"),
        SCRIPTED,
        "langchain-mcp-adapters 0.3.2 (control 0.1.0)",
    ),
    Row(
        "connection-per-request",
        hand(
            "transport",
            "a_connection_for_each_call_is_named_with_what_it_costs",
            "a_pool_that_opened_more_than_it_needed_and_uses_them_is_healthy",
        ),
        live("waits", "a_client_with_a_connection_for_each_request_is_named"),
        SCRIPTED,
        "python mcp 1.30.0 with replies as events (control typescript 1.32.2)",
    ),
    Row(
        "session-per-call",
        hand(
            "sessions",
            "a_session_begun_inside_each_call_is_named",
            "as_many_connects_as_calls_are_an_experiments_own_doing",
        ),
        None,
        SCRIPTED,
        "langchain-mcp-adapters 0.3.2 by `get_tools()` (control: the same in one session)",
    ),
    Row(
        "discovery-repeated",
        hand("sessions", "discovery_under_an_unchanged_token_is_named", "fresh_credentials_need_discovery"),
        live("work", "metadata_that_is_fetched_for_each_call_is_named"),
        SCRIPTED,
        "typescript 1.20.0 at profile:notion (control 1.32.2)",
    ),
    Row(
        "waits-for-get",
        hand(
            "waits_for_get",
            "a_request_that_leaves_with_the_streams_head_was_held",
            "a_request_that_leaves_before_the_head_was_not_held",
        ),
        None,
        SCRIPTED,
        "go-sdk 1.2.0 where the stream's head comes after half a second (control 1.8.0)",
    ),
    Row(
        "slow-start",
        hand(
            "slow_start",
            "a_slow_first_answer_is_named_with_what_would_tell_its_reason",
            "a_start_under_a_second_is_usual",
        ),
        live("waits", "a_server_that_takes_long_to_start_is_named"),
        None,
        "any server whose start takes a second; which servers do depends on the machine",
    ),
    Row(
        "retried-execution",
        hand(
            "retried_execution",
            "a_call_that_is_made_again_after_a_round_time_is_a_retry",
            "the_same_call_after_its_answer_is_another_call",
        ),
        live("work", "a_client_that_gives_up_and_calls_again_has_its_tool_run_twice"),
        None,
        "none: hosts retry (langflow, claude-code), not SDKs",
    ),
    Row(
        "repeated-listing",
        hand(
            "repeated_listing",
            "a_listing_before_each_call_is_named_with_its_time_and_bytes",
            "a_listing_now_and_then_among_many_calls_is_nothing",
        ),
        live("work", "a_listing_before_each_call_is_named"),
        release("openai_agents_list_the_tools_again_for_each_turn", file="test_proof_clients"),
        "openai-agents 0.0.17 (control: with `cache_tools_list`, and 0.0.16), its model a script",
    ),
    Row(
        "amplification",
        hand(
            "gateway",
            "requests_that_a_gateway_adds_are_named_with_what_they_cost",
            "a_gateway_that_passes_calls_on_adds_nothing",
        ),
        live("work", "a_gateway_that_sends_several_requests_for_one_is_named"),
        release("fastmcp_as_a_proxy_asked_several_times_for_a_call", file="test_proof_gateways"),
        "fastmcp 2.10.0 as a proxy, eleven requests for a call (control 4.1.6)",
    ),
    Row(
        "serial-fan-out",
        hand(
            "gateway",
            "servers_asked_one_after_another_are_named_with_what_asking_at_once_would_save",
            "servers_asked_at_once_are_healthy",
        ),
        live("work", "a_gateway_that_asks_one_server_after_another_is_named"),
        release("fastmcp_as_a_proxy_asked_its_servers_one_by_one", file="test_proof_gateways"),
        "fastmcp 2.11.2 as a proxy of three servers (control 4.1.6, which asks at once)",
    ),
    Row(
        "constant-cost-per-request",
        hand("constant_cost", "a_cost_that_goes_with_the_token_is_named", "a_distant_server_is_no_cost_of_its_own"),
        live("work", "a_token_that_is_looked_up_for_each_request_is_named"),
        None,
        "none: it needs an identity provider or envoy ai-gateway",
    ),
    Row(
        "auth-deadlock",
        hand(
            "auth_deadlock",
            "a_call_that_stands_still_after_the_token_is_named",
            "a_call_that_goes_on_with_its_token_is_healthy",
        ),
        live("waits", "silence_after_a_token_until_the_call_fails_is_named"),
        release("fastmcp_2_14_loses_its_lock_where_a_token_is_given_up", file="test_proof_clients"),
        "fastmcp 2.14.7 (control 3.4.11) where a connect is given up while the token is renewed",
    ),
    Row(
        "stream-not-drained",
        hand(
            "transport",
            "replies_left_early_though_others_end_promptly_are_the_clients_doing",
            "connections_left_open_and_unused_are_named_with_the_kind_of_replies",
        ),
        live("waits", "a_client_that_drops_streams_at_their_result_needs_connections_anew"),
        SCRIPTED,
        "rmcp 0.9.0 at profile:notion (control typescript 1.32.2)",
    ),
    Row(
        "get-loop",
        hand(
            "loops",
            "a_stream_that_is_opened_at_a_fixed_period_is_named",
            "streams_that_live_or_come_without_a_period_or_seldom_are_healthy",
        ),
        None,
        release("typescript_1_23_opens_the_stream_again_and_again"),
        "typescript 1.23.0 at a server that answers the GET with a text (control 1.20.0)",
    ),
    Row(
        "resume-loop",
        hand(
            "loops",
            "a_stream_that_is_resumed_after_the_same_event_in_vain_is_named",
            "coming_back_until_the_answer_is_there_is_how_resumption_works",
        ),
        live("waits", "a_stream_that_is_resumed_without_end_is_named"),
        release("mcp_1_30_asks_a_stream_to_go_on_without_end"),
        "python mcp 1.30.0 at a server that forgot the stream (control go-sdk 1.4.1)",
    ),
    Row(
        "retry-storm",
        hand(
            "loops",
            "a_client_that_asks_again_at_a_steady_pace_is_named",
            "pauses_that_grow_acquit_a_client_and_so_do_few_tries",
        ),
        live("waits", "a_refused_client_that_asks_at_a_steady_pace_is_named"),
        None,
        "none: hosts retry (LibreChat, open-webui), not SDKs",
    ),
    Row(
        "session-leak",
        hand(
            "resources",
            "memory_that_rises_with_sessions_is_named_with_what_each_takes",
            "sessions_that_nobody_ends_are_no_leak_where_memory_stays",
        ),
        live("processes", "memory_that_rises_with_sessions_that_nobody_ends_is_named"),
        release("mcp_1_9_keeps_sessions_and_a_part_of_those_that_are_ended"),
        "python mcp 1.9.4 as server, ended or not (control: 1.30.0, each session ended), by `mcpace record --watch`",
    ),
    Row(
        "task-leak",
        hand(
            "resources",
            "memory_that_rises_with_requests_of_a_stateless_server_is_named",
            "a_stateless_server_whose_memory_stays_is_healthy",
        ),
        live("processes", "memory_that_rises_with_each_request_is_named"),
        release("mcp_1_9_keeps_a_part_of_each_stateless_request"),
        "python mcp 1.9.4 as server without sessions, 45 kB a request (control 1.30.0), by `mcpace record --watch`",
    ),
    Row(
        "rebuilt-per-request",
        hand(
            "resources",
            "processor_time_that_rises_with_the_tools_is_named",
            "processor_time_that_does_not_follow_the_tools_is_another_matter",
        ),
        live("processes", "processor_time_that_grows_with_the_tools_is_named"),
        release("go_sdk_1_2_makes_schemas_anew_for_each_request"),
        "go-sdk 1.2.0 as server with 5 and with 200 tools (control 1.3.0 with its cache of schemas)",
    ),
    Row(
        "large-listing",
        hand("resources", "a_large_listing_is_named_with_its_tokens", "a_usual_listing_is_healthy"),
        live("waits", "a_listing_of_many_tools_is_named"),
        None,
        "any server of 142 tools (control: one of ten)",
    ),
    Row(
        "delayed-ack",
        hand(
            "ways",
            "pauses_of_the_kernels_size_whatever_is_asked_are_its_acknowledgements",
            "a_tool_that_takes_forty_milliseconds_is_a_tool",
        ),
        live(
            "transport",
            "a_server_whose_sockets_lack_nodelay_stalls",
            "a_server_that_takes_forty_milliseconds_itself_is_no_stall",
        ),
        release("rmcp_without_nodelay_waits_for_acknowledgements", file="test_proof_servers"),
        "rmcp 3.9.0 served as in its examples (control: with TCP_NODELAY); uvicorn with `--workers` or `--fd` "
        "(control: without)",
    ),
    Row(
        "redirect-per-request",
        hand(
            "ways",
            "a_redirect_before_each_request_is_named_with_both_paths",
            "a_client_that_remembers_where_it_was_sent_is_healthy",
        ),
        live("transport", "a_redirect_before_each_request_is_named"),
        release("fastmcp_2_11_sends_each_request_on_to_the_path_with_a_slash"),
        "fastmcp 2.11.2 as server at `/mcp` (control `/mcp/`)",
    ),
    Row(
        "address-fallback",
        hand(
            "ways", "a_dead_first_address_is_named_with_the_one_that_stands", "a_refusal_that_costs_nothing_is_healthy"
        ),
        None,
        None,
        "none: the cause is the resolver's answer, which differs between machines; crates/net has a test with sockets",
    ),
    Row(
        "transport-probing",
        hand(
            "ways",
            "a_transport_that_is_tried_out_on_each_connect_is_named",
            "a_first_connect_must_find_out_and_a_refused_token_is_no_probe",
        ),
        live("transport", "a_transport_that_is_tried_out_on_each_connect_is_named"),
        None,
        "csharp-sdk, for which mcpace has no client program",
    ),
    Row(
        "buffered-stream",
        hand(
            "streams",
            "progress_that_comes_at_once_with_the_result_was_held_back",
            "progress_that_comes_while_the_tool_works_is_healthy_packed_or_not",
        ),
        live("transport", "progress_that_something_holds_back_comes_at_once"),
        None,
        "none: proxies buffer (nginx), not SDKs",
    ),
    Row(
        "client-time-out",
        hand(
            "time_outs",
            "calls_that_end_at_one_age_before_their_head_are_timed_out",
            "a_person_who_cancels_is_no_time_out",
        ),
        live(
            "time_outs",
            "a_stdio_client_that_gives_up_at_one_age_is_timed_out",
            "a_person_who_cancels_once_is_not_timed_out",
        ),
        release(
            "releases_that_give_up_are_named",
            "releases_that_wait_long_enough_are_not_named",
            file="test_findings_time_outs",
        ),
        "python mcp 1.30.0 and typescript 1.32.2 with a time-out of 2 s (control: 20 s), at profile:limits",
    ),
    Row(
        "progress-ignored",
        hand(
            "time_outs",
            "progress_that_does_not_extend_a_time_out_is_ignored",
            "progress_that_extends_a_time_out_is_heard",
        ),
        None,
        release(
            "progress_does_not_keep_typescript_waiting",
            "typescript_that_resets_its_time_out_on_progress_waits",
            file="test_findings_time_outs",
        ),
        "typescript 1.32.2 (control: `resetTimeoutOnProgress`), at profile:limits",
    ),
    Row(
        "clustered-stream-lifetime",
        hand("streams", "who_closes_tells_a_clients_time_out_from_an_edge", "streams_of_any_age_are_healthy"),
        live(
            "transport",
            "streams_that_are_cut_at_one_age_are_told_from_those_that_clients_time_out",
            "streams_that_their_client_gives_up_at_one_age_are_its_time_out",
        ),
        release("undici_and_httpx_end_streams_that_are_silent_for_five_minutes"),
        "typescript 1.32.2 on Node's undici and python mcp 1.30.0 at 300 seconds (control: go-sdk 1.8.0, and comments)",
    ),
    Row(
        "connection-limit",
        hand(
            "streams",
            "a_request_that_leaves_as_one_of_n_replies_ends_waited_for_a_connection",
            "a_call_that_sends_at_once_beside_open_streams_is_healthy",
        ),
        live("transport", "a_client_whose_connections_are_all_taken_lets_requests_wait"),
        None,
        "none known",
    ),
    Row(
        "blocked-event-loop",
        hand(
            "concurrency",
            "a_server_that_answers_no_session_while_a_tool_runs_is_blocked",
            "a_ping_that_gets_through_acquits_the_loop",
        ),
        live(
            "concurrency",
            "a_tool_that_blocks_the_loop_holds_up_other_sessions",
            "a_tool_that_waits_holds_up_nobody",
        ),
        release("a_tool_that_blocks_pythons_event_loop_holds_up_pings", file="test_proof_servers"),
        "python mcp 1.30.0 with a tool without `async` (control: one that awaits, and fastmcp 4.1.6's threads)",
    ),
    Row(
        "serial-session",
        hand(
            "concurrency",
            "sessions_whose_own_calls_take_turns_beside_each_other_are_serial",
            "calls_that_take_longer_each_are_no_turns",
        ),
        live(
            "concurrency",
            "a_session_whose_requests_take_turns_is_told_from_a_server_that_is_blocked",
            "a_tool_that_waits_holds_up_nobody",
        ),
        release("mcp_1_2_serves_a_sessions_requests_one_after_another", file="test_proof_sessions"),
        "python mcp 1.2.0 over stdio behind supergateway 3.4.3, which starts one for each session (control 1.30.0)",
    ),
    Row(
        "completion-waves",
        hand("concurrency", "equal_calls_that_end_in_waves_name_the_cap", "equal_calls_that_end_together_are_healthy"),
        live("concurrency", "a_cap_on_the_tools_threads_is_named_by_its_size", "a_tool_that_waits_holds_up_nobody"),
        release("javas_pool_runs_ten_tools_a_core", file="test_proof_servers"),
        "java 2.1.0: ten tools a core (control typescript 2.4.0)",
    ),
    Row(
        "thread-pool-saturation",
        hand(
            "concurrency",
            "where_pings_wait_too_it_is_the_pool_for_all_requests",
            "equal_calls_that_end_in_waves_name_the_cap",
        ),
        live("concurrency", "a_pool_for_all_requests_holds_up_pings_too", "a_tool_that_waits_holds_up_nobody"),
        release("a_call_in_java_holds_one_of_tomcats_threads", file="test_proof_servers"),
        "java 2.1.0: each call keeps one of Tomcat's 200 threads (java-sdk #859), where the pool for tools is larger, "
        "as on twenty cores and more (control typescript 2.4.0)",
    ),
    Row(
        "head-of-line",
        hand(
            "concurrency",
            "replies_that_were_ready_and_come_with_a_slow_one_are_held",
            "replies_that_come_together_because_they_were_asked_together_fill_no_buffer",
        ),
        live("concurrency", "replies_that_wait_for_a_full_buffer_of_stdout_are_named"),
        release("mcp_1_25_holds_a_sessions_replies_behind_one_that_is_not_begun", file="test_proof_sessions"),
        "python mcp 1.25.0 as server whose store of events is slow for one stream (control 1.30.0); any program whose "
        "stdout isn't flushed",
    ),
    Row(
        "superlinear-line",
        hand(
            "measurement",
            "a_client_whose_time_grows_with_the_square_of_the_size_is_named",
            "time_in_proportion_to_the_size_is_healthy",
        ),
        live("measurement", "a_client_that_joins_a_line_anew_with_each_piece_is_named"),
        None,
        "not shown: the time of typescript 1.10.0 to 2.4.0 grows in proportion to lines of up to 8 MB here",
    ),
    Row(
        "recorder-limited",
        hand(
            "measurement",
            "a_recorder_that_works_when_it_is_late_limits_what_it_measures",
            "a_little_lateness_and_lateness_between_calls_are_healthy",
        ),
        live("measurement", "a_recorder_that_has_too_much_to_read_limits_what_it_measures"),
        None,
        "none: the cause is mcpace itself",
    ),
    Row(
        "blocking-call-in-event-loop",
        hand(
            "inside",
            "a_wait_on_the_event_loops_thread_is_named_also_below_a_span",
            "requests_that_overlap_are_no_cause",
        ),
        live(
            "inside",
            "the_cause_inside_a_tool_is_named_and_its_control_is_not",
            "the_cause_inside_a_tool_is_named_and_its_control_is_not",
        ),
        None,
        "none: the cause is in tools, not in SDKs",
    ),
    Row(
        "client-built-per-call",
        hand(
            "inside",
            "a_client_that_each_call_builds_is_named_with_its_line_and_its_gain",
            "requests_that_overlap_are_no_cause",
        ),
        live(
            "inside",
            "the_cause_inside_a_tool_is_named_and_its_control_is_not",
            "the_cause_inside_a_tool_is_named_and_its_control_is_not",
        ),
        None,
        "none: the cause is in tools, not in SDKs",
        (IN_JAVA,),
    ),
    Row(
        "repeated-dependency-call",
        hand("inside", "one_pattern_many_times_in_a_call_is_named_once", "requests_that_overlap_are_no_cause"),
        live(
            "inside",
            "the_cause_inside_a_tool_is_named_and_its_control_is_not",
            "the_cause_inside_a_tool_is_named_and_its_control_is_not",
        ),
        None,
        "none: the cause is in tools, not in SDKs",
        (IN_NODE, IN_JAVA),
    ),
    Row(
        "serial-dependencies",
        hand(
            "inside",
            "requests_one_after_another_are_named_with_what_all_but_the_longest_take",
            "requests_that_overlap_are_no_cause",
        ),
        live(
            "inside",
            "the_cause_inside_a_tool_is_named_and_its_control_is_not",
            "the_cause_inside_a_tool_is_named_and_its_control_is_not",
        ),
        None,
        "none: the cause is in tools, not in SDKs",
        (IN_NODE, IN_JAVA),
    ),
    Row(
        "slow-dependency",
        hand(
            "inside",
            "one_request_that_takes_most_of_a_call_is_a_slow_dependency",
            "one_request_that_takes_most_of_a_call_is_a_slow_dependency",
        ),
        live(
            "inside",
            "the_cause_inside_a_tool_is_named_and_its_control_is_not",
            "the_cause_inside_a_tool_is_named_and_its_control_is_not",
        ),
        None,
        "none: the cause is the dependency",
        (live("inside_node", "a_slow_dependency_of_node_is_named"), IN_JAVA),
    ),
    Row(
        "costly-library",
        hand(
            "inside_processor",
            "a_library_with_a_quicker_one_is_named_with_its_line_and_the_measured_gain",
            "a_library_that_takes_little_or_that_another_one_calls_is_no_cause",
        ),
        live(
            "processor",
            "a_cost_of_processor_time_is_named_and_the_advised_change_gains_the_estimate",
        ),
        None,
        "none: the cause is in tools, not in SDKs",
    ),
    Row(
        "validation-cost",
        hand(
            "inside_processor",
            "checks_of_values_are_named_and_models_that_are_built_are_told_apart",
            "a_part_of_the_processor_time_below_a_fifth_is_no_cause",
        ),
        live(
            "processor",
            "a_cost_of_processor_time_is_named_and_the_advised_change_gains_the_estimate",
        ),
        None,
        "none: the cause is in tools, not in SDKs",
    ),
    Row(
        "serialization-cost",
        hand(
            "inside_processor",
            "values_into_text_are_named_once_where_no_quicker_library_is_known",
            "a_part_of_the_processor_time_below_a_fifth_is_no_cause",
        ),
        None,
        None,
        "not shown end to end yet",
    ),
    Row(
        "import-in-call",
        hand(
            "inside_processor",
            "an_import_in_each_call_is_named_with_its_line",
            "an_import_in_the_first_call_is_told_apart",
        ),
        None,
        None,
        "not shown end to end yet",
    ),
    Row(
        "gc-pauses",
        hand(
            "inside_processor",
            "pauses_of_the_runtime_are_named_with_their_time_and_the_line",
            "pauses_of_the_runtime_are_named_with_their_time_and_the_line",
        ),
        None,
        None,
        "not shown end to end yet",
    ),
    Row(
        "dependency-connection-per-call",
        hand(
            "inside_connections",
            "a_connection_that_each_call_opens_is_named_with_the_time_that_it_takes",
            "connections_that_no_earlier_one_could_replace_are_no_cause",
        ),
        live(
            "connections",
            "a_connection_in_each_call_is_named_and_a_connection_that_is_kept_is_not",
            "a_connection_in_each_call_is_named_and_a_connection_that_is_kept_is_not",
        ),
        None,
        "none: the cause is in tools, not in SDKs",
    ),
    Row(
        "pool-wait",
        hand(
            "inside_contention",
            "threads_that_wait_for_a_pool_are_named_with_what_each_call_waits",
            "waits_for_no_pool_and_waits_for_no_lock_are_no_cause",
        ),
        live(
            "connections",
            "threads_that_wait_for_each_other_are_named_and_their_control_is_not",
            "threads_that_wait_for_each_other_are_named_and_their_control_is_not",
        ),
        None,
        "none: the cause is in tools, not in SDKs",
    ),
    Row(
        "lock-wait",
        hand(
            "inside_contention",
            "threads_that_wait_for_a_lock_are_named_with_the_line_that_holds_it",
            "waits_for_no_pool_and_waits_for_no_lock_are_no_cause",
        ),
        live(
            "connections",
            "threads_that_wait_for_each_other_are_named_and_their_control_is_not",
            "threads_that_wait_for_each_other_are_named_and_their_control_is_not",
        ),
        None,
        "none: the cause is in tools, not in SDKs",
    ),
    Row(
        "timer-wait",
        hand(
            "inside_timers",
            "a_tool_that_waits_for_a_timer_is_named_with_the_line_that_set_it",
            "timers_in_the_background_are_no_waits_of_a_call",
        ),
        live("inside", "the_cause_inside_a_tool_is_named_and_its_control_is_not"),
        None,
        "none: the cause is in tools, not in SDKs",
        (IN_NODE,),
    ),
    Row(
        "packet-loss",
        hand(
            "network",
            "calls_that_wait_for_a_segment_to_be_sent_again_are_named",
            "segments_that_are_sent_again_without_a_pause_are_no_loss",
        ),
        live(
            "network",
            "requests_that_the_network_loses_are_named",
            "a_tool_that_pauses_as_long_as_a_lost_segment_loses_none",
        ),
        None,
        "none: the cause is the network",
    ),
    Row(
        "slow-reader",
        hand(
            "network",
            "replies_that_wait_for_a_client_to_read_are_named",
            "a_moment_for_which_a_large_reply_waits_is_no_slow_reader",
        ),
        live(
            "network",
            "a_client_that_reads_slowly_is_named",
            "large_results_over_a_narrow_road_have_no_slow_reader",
        ),
        None,
        "none known",
    ),
    Row(
        "distant-server",
        hand(
            "network",
            "a_round_trip_that_is_a_notable_part_of_each_call_is_named",
            "a_near_server_whose_acknowledgements_are_delayed_is_not_distant",
        ),
        live(
            "network",
            "a_server_at_a_distance_is_named_with_its_round_trip",
            "a_near_server_that_takes_as_long_itself_is_not_distant",
        ),
        None,
        "none: the cause is the network",
    ),
    Row(
        "noisy-run",
        hand(
            "measurement",
            "a_recorder_that_is_kept_from_running_is_on_a_noisy_machine",
            "a_little_lateness_and_lateness_between_calls_are_healthy",
        ),
        live("measurement", "a_recorder_that_is_kept_from_running_says_that_the_machine_was_busy"),
        None,
        "none: the cause is the machine",
    ),
    Row(
        "verbose-tool",
        None,
        live("tokens", "a_tool_of_many_tokens_is_named"),
        None,
        "firecrawl-mcp and @brave/brave-search-mcp-server; the cause is in servers, not in SDKs",
    ),
    Row(
        "huge-result",
        None,
        live("tokens", "a_result_of_many_tokens_is_named"),
        None,
        "none: the cause is in servers, not in SDKs",
    ),
    Row(
        "duplicate-schema",
        None,
        live("tokens", "a_schema_that_tools_repeat_is_named"),
        None,
        "none: the cause is in servers, not in SDKs",
    ),
    Row(
        "generator-limited",
        None,
        live("measurement", "a_load_that_is_kept_from_running_is_its_generators"),
        None,
        "none: the cause is mcpace itself",
    ),
)


def table() -> str:
    """Renders the table of docs/findings.md."""
    lines = ["| finding | by hand | end to end | release that shows it (control), or why none |", "|---|---|---|---|"]
    for row in sorted(ROWS, key=lambda row: row.code):
        tested = f"{row.words} **tested**" if row.release else row.words
        programs = ", ".join(linked(place) for place in (row.live, *row.in_other_languages) if place is not None)
        lines.append(f"| {row.code} | {linked(row.hand)} | {programs} | {tested} |")
    return "\n".join(lines)


def linked(place: Place | None) -> str:
    return "" if place is None else f"[{place.file.rpartition('/')[2]}](../{place.file})"

//! Every reported case, with the tests that answer it or the reason why it is
//! not answered yet. New cases of the data file fail here until they are placed.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

const CASES: &str = include_str!("../../data/field-cases.json");

/// What answers a case.
struct Place {
    id: &'static str,
    /// Names of test functions, which exist.
    tests: &'static [&'static str],
    /// What is decided otherwise, or is left for later.
    note: &'static str,
}

const fn tested(id: &'static str, tests: &'static [&'static str]) -> Place {
    Place { id, tests, note: "" }
}

/// Tested, but in one point not as the report asks, or not in whole.
const fn partly(id: &'static str, tests: &'static [&'static str], note: &'static str) -> Place {
    Place { id, tests, note }
}

const fn later(id: &'static str, note: &'static str) -> Place {
    Place { id, tests: &[], note }
}

const REPLICAS: &str = "needs wake-ups between server processes";
const MCP: &str = "needs tool servers (MCP)";

const PLACES: &[Place] = &[
    tested(
        "FC-001",
        &["fc_001_a_stream_that_was_cut_opens_again_as_long_as_the_turn_runs"],
    ),
    tested("FC-002", &["fc_002_what_happened_while_nobody_listened_is_replayed"]),
    tested(
        "FC-004",
        &["fc_004_a_stream_opened_after_the_end_replays_the_turn_and_ends"],
    ),
    tested(
        "FC-005",
        &["fc_005_a_turn_goes_on_when_the_client_that_asked_for_it_leaves"],
    ),
    partly(
        "FC-007",
        &["fc_007_a_silent_tool_leaves_no_silent_stream"],
        "heartbeats are named events, not comments: clients that see no comments notice them too",
    ),
    tested(
        "FC-008",
        &["fc_008_heartbeats_keep_a_connection_through_a_proxy_that_cuts_idle_ones"],
    ),
    tested(
        "FC-010",
        &[
            "fc_010_011_016_viewers_that_are_cut_anywhere_rebuild_the_same",
            "a_streamed_turn_can_be_read_again_from_any_frame",
        ],
    ),
    tested(
        "FC-011",
        &["fc_010_011_016_viewers_that_are_cut_anywhere_rebuild_the_same"],
    ),
    tested("FC-013", &["fc_013_polling_alone_sees_all_that_a_stream_sees"]),
    tested("FC-014", &["fc_014_a_stopped_turn_says_who_stopped_it"]),
    tested(
        "FC-016",
        &["fc_010_011_016_viewers_that_are_cut_anywhere_rebuild_the_same"],
    ),
    tested(
        "FC-017",
        &["fc_017_a_refusal_of_the_model_server_is_no_answer_of_the_model"],
    ),
    tested("FC-019", &["fc_019_a_call_that_was_written_twice_runs_at_most_once"]),
    partly(
        "FC-020",
        &["fc_020_a_call_inside_of_text_is_text"],
        "there is no mode that repairs such text into calls",
    ),
    tested(
        "FC-022",
        &["fc_022_reasoning_that_is_repeated_as_the_answer_is_no_answer"],
    ),
    tested(
        "FC-023",
        &[
            "fc_023_an_approval_is_asked_in_the_stream_which_goes_on_after_the_decision",
            "fc_023_an_approval_is_an_item_and_the_stream_stays_open",
            "fc_040_a_call_that_needs_nobody_does_not_wait_for_its_sibling",
            "fc_034_once_is_once",
        ],
    ),
    tested(
        "FC-025",
        &["fc_025_decisions_bind_to_ids_and_not_to_the_order_of_asking"],
    ),
    tested(
        "FC-026",
        &["fc_026_an_answer_after_the_time_gets_the_final_state_and_nothing_runs"],
    ),
    tested(
        "FC-028",
        &["fc_028_a_message_that_withdraws_the_request_decides_nothing"],
    ),
    tested("FC-029", &["fc_029_a_message_that_agrees_decides_nothing"]),
    tested("FC-031", &["killed_while_an_approval_pends"]),
    tested("FC-032", &["stopped_while_an_approval_pends"]),
    tested("FC-034", &["fc_034_once_is_once"]),
    tested(
        "FC-035",
        &["fc_035_a_choice_that_is_not_offered_is_refused_and_leaves_it_pending"],
    ),
    tested(
        "FC-037",
        &[
            "fc_037_an_expired_approval_halts_the_turn_where_that_is_the_policy",
            "fc_037_an_expired_approval_is_a_denial_that_the_model_hears_of",
            "fc_037_an_approval_without_a_limit_waits_across_a_restart",
        ],
    ),
    later("FC-038", "needs the mode `smart`, in which a model decides"),
    tested(
        "FC-040",
        &["fc_040_a_call_that_needs_nobody_does_not_wait_for_its_sibling"],
    ),
    tested("FC-041", &["fc_041_an_unattended_turn_is_refused_and_never_waits"]),
    tested("FC-043", &["fc_043_an_approval_shows_everything_that_is_decided_on"]),
    tested(
        "FC-044",
        &["fc_044_who_may_write_may_not_decide_and_the_decider_is_recorded"],
    ),
    tested(
        "FC-046",
        &["fc_046_a_decision_runs_nothing_again_and_is_not_asked_for_again"],
    ),
    partly(
        "FC-047",
        &["fc_047_a_grant_without_a_rule_is_the_exact_text"],
        "no policy asks for everything; commands that cannot be read are granted by their exact text",
    ),
    later("FC-049", REPLICAS),
    later("FC-050", "needs compaction"),
    tested(
        "FC-052",
        &["fc_052_a_conversation_that_is_sent_whole_each_time_is_one_session"],
    ),
    tested(
        "FC-053",
        &[
            "fc_053_a_long_history_is_read_in_pages_without_a_gap_or_a_repeat",
            "large_inputs_make_short_pages_and_nobody_misses_an_event",
        ],
    ),
    tested(
        "FC-055",
        &["fc_055_neither_a_title_nor_an_id_opens_a_session_of_another_tenant"],
    ),
    tested(
        "FC-056",
        &["fc_056_outside_messages_are_stored_once_in_order_and_no_model_is_asked"],
    ),
    tested(
        "FC-058",
        &["fc_058_of_three_messages_that_interrupt_only_the_last_completes"],
    ),
    tested("FC-059", &["killed_during_a_command"]),
    tested(
        "FC-061",
        &["killed_during_a_command", "killed_in_the_middle_of_an_answer"],
    ),
    partly(
        "FC-062",
        &[
            "fc_062_what_a_frozen_server_held_goes_on_elsewhere_and_its_waking_changes_nothing",
            "a_takeover_beside_the_owners_commits_repeats_nothing",
        ],
        "the turn is not lost but goes on on the server that took it over",
    ),
    partly(
        "FC-064",
        &[
            "fc_064_a_turn_that_is_posted_twice_runs_once",
            "a_key_is_the_callers_own_and_the_routes_own",
        ],
        "another body under the key is 422, so that 409 says only that the first request is under way",
    ),
    tested(
        "FC-065",
        &[
            "fc_065_at_the_cap_a_replay_gets_its_turn_and_not_429",
            "fc_065_to_stop_a_finished_turn_changes_nothing",
        ],
    ),
    tested(
        "FC-067",
        &[
            "fc_067_a_lock_that_another_program_holds_for_a_while_is_waited_for",
            "a_disk_that_stays_full_for_too_long_fails_the_turn_and_keeps_its_results",
        ],
    ),
    tested(
        "FC-068",
        &["fc_068_a_call_that_cannot_be_made_is_answered_and_the_turn_goes_on"],
    ),
    tested(
        "FC-070",
        &[
            "fc_070_a_full_server_starts_nothing_by_any_way",
            "fc_070_a_full_server_starts_nothing_for_clients_of_other_surfaces",
        ],
    ),
    tested(
        "FC-071",
        &["fc_071_a_tenant_at_its_limit_is_no_ones_business_but_its_own"],
    ),
    tested(
        "FC-073",
        &["fc_073_a_body_over_the_limit_is_refused_alike_however_it_comes"],
    ),
    tested(
        "FC-074",
        &["fc_074_a_session_tells_its_tools_and_why_others_are_absent"],
    ),
    tested(
        "FC-076",
        &["fc_076_a_keys_ceiling_holds_for_what_is_offered_and_for_what_runs"],
    ),
    tested(
        "FC-077",
        &[
            "a_call_is_handed_over_and_its_result_goes_to_the_model",
            "a_function_of_the_client_is_left_to_it_and_its_output_goes_to_the_model",
        ],
    ),
    later("FC-079", "needs the backend `ssh`"),
    later("FC-080", "needs the backend `docker`"),
    partly(
        "FC-082",
        &["fc_082_a_command_that_would_leave_a_process_behind_is_answered_at_once"],
        "a command in the foreground leaves no process behind, so there is none to track",
    ),
    tested(
        "FC-083",
        &[
            "a_process_goes_on_after_its_turn_and_its_end_begins_one",
            "a_session_sees_its_own_processes_only",
            "a_process_ends_with_its_server_and_is_told_as_lost",
        ],
    ),
    later("FC-085", "needs `execute_code`; commands have their allow-list already"),
    partly(
        "FC-086",
        &["fc_086_a_server_that_starts_leaves_the_commands_of_another_alone"],
        "there are no containers yet",
    ),
    partly(
        "FC-088",
        &["an_address_beyond_this_machine_needs_a_credential"],
        "there is no mode without a key, so no flag for one: the first start makes a key",
    ),
    partly(
        "FC-089",
        &["fc_089_a_foreign_page_reaches_nothing"],
        "an origin that is not allowed is refused with 403, before the key is looked at",
    ),
    tested("FC-091", &["fc_091_to_another_tenant_a_running_turn_does_not_exist"]),
    tested(
        "FC-092",
        &[
            "fc_092_ids_that_are_none_reach_no_file_and_break_nothing",
            "fc_092_names_that_are_none_reach_nothing_on_any_surface",
        ],
    ),
    tested("FC-094", &["files_of_the_data_directory_are_their_owners_alone"]),
    tested("FC-095", &["the_log_and_errors_hold_no_key_and_no_prompt"]),
    later("FC-097", REPLICAS),
    partly(
        "FC-098",
        &["a_second_process_on_the_same_embedded_database_is_refused"],
        "one process to an embedded database: the second is refused; Postgres is for many",
    ),
    tested(
        "FC-100",
        &[
            "the_document_is_the_same_each_time",
            "the_committed_document_is_what_the_code_says",
        ],
    ),
    tested("FC-101", &["fc_101_every_feature_that_is_told_of_works"]),
    later("FC-103", MCP),
    later("FC-104", MCP),
];

#[test]
fn every_case_has_its_place_once() {
    let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
    let ids: Vec<&str> = cases.iter().map(|case| case["id"].as_str().unwrap()).collect();
    let placed: Vec<&str> = PLACES.iter().map(|place| place.id).collect();
    assert_eq!(placed, ids);
    for place in PLACES {
        assert!(!place.tests.is_empty() || !place.note.is_empty(), "{}", place.id);
    }
}

#[test]
fn every_named_test_exists_and_every_test_of_a_case_is_named() {
    let functions = functions(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"));
    for place in PLACES {
        for test in place.tests {
            assert!(functions.contains(*test), "{}: `{test}` does not exist", place.id);
        }
    }
    let named: BTreeSet<&str> = PLACES.iter().flat_map(|place| place.tests.iter().copied()).collect();
    for function in functions.iter().filter(|function| function.starts_with("fc_")) {
        assert!(
            named.contains(function.as_str()),
            "`{function}` is in no row of the table"
        );
    }
}

/// The names of all functions under a directory of sources that are tests.
fn functions(directory: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(functions(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.extend(tests_in(&std::fs::read_to_string(path).unwrap()));
        }
    }
    found
}

/// Functions right behind a `#[test]`.
fn tests_in(source: &str) -> Vec<String> {
    let mut lines = source.lines().map(str::trim);
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if !["#[test]", "#[tokio::test"].iter().any(|mark| line.starts_with(mark)) {
            continue;
        }
        let head = lines.by_ref().find(|line| !line.starts_with("#[")).unwrap_or_default();
        let head = head.trim_start_matches("pub ").trim_start_matches("async ");
        let name = head.strip_prefix("fn ").and_then(|rest| rest.split('(').next());
        found.extend(name.map(str::to_owned));
    }
    found
}

#[test]
fn functions_that_are_no_tests_do_not_count() {
    let source =
        "fn a() {}\n#[test]\nfn b() {}\n#[tokio::test(flavor = \"x\")]\n#[ignore]\nasync fn c() {}\n// fn d() {}";
    assert_eq!(tests_in(source), ["b", "c"]);
}

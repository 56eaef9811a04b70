//! Programs where they run, what they read of results, and who decides on their
//! calls when no person does.

use hermes_server::config::{CodeMode, Mode};
use serde_json::{Value, json};

use super::{decide, nested, pending, program, run, trusted};
use crate::api_rest::{Talk, decision_of};
use crate::cases::{count, ended, events, messages, results};
use crate::harness::model_server::{ModelServer, Reply};
use crate::harness::{lines, on_both};

#[test]
fn a_program_reads_results_whole_that_the_model_would_see_the_beginning_of() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = trusted(&web, &web.owner().await).await;
        let code = r#"
from hermes_tools import search_files
with open("many.txt", "w") as many:
    for number in range(1000): many.write(f"needle {number:05} " + "x" * 150 + "\n")
found = search_files("needle", limit=1000)
text = found.get("matches_text") or "".join(match["content"] for match in found["matches"])
print(type(found).__name__, found["total_count"], len(text) > 150_000, "needle 00999" in text, "persisted" in text)
"#;
        let told = run(&talk, code).await;
        assert_eq!(told["output"], "dict 1000 True True False\n", "{told}");
        // The log has what the program had.
        let log = events(&talk).await;
        let done = nested(&log, "tool_call.completed");
        assert!(done[0]["result"].as_str().unwrap().contains("needle 00999"));
        let kept = talk.client.get(&talk.path("/artifacts")).await.expect(200);
        let kinds: Vec<&Value> = kept["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|kept| &kept["kind"])
            .collect();
        assert_eq!(
            kinds,
            ["file"],
            "nothing had to be put aside; the program left its file"
        );
        web.stop().await;
    });
}

const WHERE: &str =
    "import os\nprint(os.path.basename(os.getcwd()), os.environ.get('OWN_PYTHON'), os.path.exists('here.txt'))";

/// An interpreter of the workspace's own, which says that it is one.
const OWN: &str = r##"open("here.txt", "w").close()
os.makedirs(".venv/bin")
with open(".venv/bin/python", "w") as own: own.write("#!/bin/sh\nexport OWN_PYTHON=yes\nexec python3 \"$@\"\n")
os.chmod(".venv/bin/python", 0o755)
"##;

#[test]
fn a_program_runs_in_the_sessions_directory_with_its_interpreter_or_apart_from_both() {
    on_both(async |mut place| {
        for (mode, expected) in [(CodeMode::Project, "yes True"), (CodeMode::Strict, "None False")] {
            place.config.code_execution.mode = mode;
            let web = place.serve().await;
            let talk = trusted(&web, &web.owner().await).await;
            let workspace = web.server.workspace(talk.session.parse().unwrap());
            let prepare =
                format!("import os\nos.makedirs({workspace:?}, exist_ok=True)\nos.chdir({workspace:?})\n{OWN}");
            assert_eq!(run(&talk, &prepare).await["status"], "success");
            let told = run(&talk, WHERE).await;
            let output = told["output"].as_str().unwrap();
            assert!(output.contains(expected), "{mode:?}: {told}");
            assert_eq!(output.starts_with("work "), mode == CodeMode::Project, "{told}");
            // Both call tools, and those stand in the session's directory.
            let code = "from hermes_tools import read_file\nprint(read_file('here.txt')['total_lines'])";
            assert_eq!(run(&talk, code).await["output"], "0\n", "{mode:?}");
            web.stop().await;
        }
    });
}

/// Asks about one command and says what came of it.
const ASKS: &str = "from hermes_tools import terminal\nprint(terminal('rm -rf never-there && echo ran >> asked'))";

#[test]
fn arguments_of_a_programs_call_are_edited_as_a_person_says() {
    on_both(async |mut place| {
        place.config.command_allowlist = vec!["execute_code".to_owned()];
        let web = place.serve().await;
        let mut talk = Talk::new(&web, &web.owner().await, &json!({})).await;
        let turn = talk.say(&program(ASKS)).await;
        let approval = pending(&mut talk).await;
        let floor = json!({"choice": "once", "arguments": {"command": "rm -rf /"}});
        let refused = talk.client.post(&decision_of(&approval), &floor).await;
        assert_eq!(refused.status, 422, "{}", refused.body);
        let command = "rm -rf also-never-there && echo ran >> edited";
        let edited = json!({"choice": "once", "arguments": {"command": command}});
        let decided = talk.client.post(&decision_of(&approval), &edited).await.expect(200);
        assert_eq!(decided["decision"]["edited"], true);
        ended(&talk, &talk.path(&format!("/turns/{turn}"))).await;
        let workspace = web.server.workspace(talk.session.parse().unwrap());
        assert_eq!(["asked", "edited"].map(|file| lines(&workspace.join(file))), [0, 1]);
        let said = messages(&talk).await;
        let told: Value = serde_json::from_str(results(&said).last().unwrap()).unwrap();
        let output = told["output"].as_str().unwrap();
        assert!(output.contains("'arguments_changed_by': 'user'"), "{told}");
        let log = events(&talk).await;
        let done = nested(&log, "tool_call.completed");
        assert_eq!(done[0]["arguments"], json!({"command": command}), "{done:?}");
        web.stop().await;
    });
}

#[test]
fn where_nobody_is_there_a_programs_dangerous_call_is_refused_and_it_goes_on() {
    on_both(async |mut place| {
        place.config.command_allowlist = vec!["execute_code".to_owned()];
        let web = place.serve().await;
        let talk = Talk::new(&web, &web.owner().await, &json!({"approvals": {"on_ask": "deny"}})).await;
        let told = run(&talk, &format!("{ASKS}\nprint(terminal('echo fine')['output'])")).await;
        let output = told["output"].as_str().unwrap();
        assert!(
            output.contains("nobody is there to give it") && output.contains("fine"),
            "{told}"
        );
        assert!(
            !web.server
                .workspace(talk.session.parse().unwrap())
                .join("asked")
                .exists()
        );
        let log = events(&talk).await;
        assert_eq!(
            (
                nested(&log, "tool_call.denied").len(),
                count(&log, "approval.requested")
            ),
            (1, 0)
        );
        web.stop().await;
    });
}

#[test]
fn a_reviewer_decides_on_each_call_of_a_program_and_leaves_a_person_what_it_does_not() {
    on_both(async |mut place| {
        let code = "from hermes_tools import terminal\nfor name in ('a', 'b'):\n    \
            print(terminal(f'rm -rf never-there && echo ran >> {name}').get('status'))";
        let function = json!({"name": "execute_code", "arguments": json!({"code": code}).to_string()});
        let call = json!({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]});
        let replies = vec![
            Reply::stream(&[call], "tool_calls"),
            Reply::say("APPROVE"),
            Reply::say("DENY"),
            Reply::say("done"),
        ];
        let model = ModelServer::start(replies).await;
        place.config.openai.base_url = Some(model.base_url.clone());
        place.config.model = Some("scripted".to_owned());
        place.config.approvals.mode = Mode::Smart;
        place.config.command_allowlist = vec!["execute_code".to_owned()];
        let web = place.serve().await;
        let mut talk = Talk::new(&web, &web.owner().await, &json!({})).await;
        let turn = talk.say("go").await;
        // The reviewer's no leaves the question to a person.
        let asked = loop {
            let approval = pending(&mut talk).await;
            if approval["reviewer"] == "human" {
                break approval;
            }
        };
        assert_eq!(asked["choices"], json!(["once", "deny"]), "{asked}");
        decide(&talk, &asked, "deny").await;
        ended(&talk, &talk.path(&format!("/turns/{turn}"))).await;
        let workspace = web.server.workspace(talk.session.parse().unwrap());
        assert_eq!(["a", "b"].map(|file| lines(&workspace.join(file))), [1, 0]);
        let said = messages(&talk).await;
        let told: Value = serde_json::from_str(results(&said).last().unwrap()).unwrap();
        assert_eq!(told["output"], "None\ndenied\n", "{told}");
        web.stop().await;
    });
}

#[test]
fn what_is_no_request_is_answered_in_words_and_the_program_goes_on() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = trusted(&web, &web.owner().await).await;
        let code = r#"
import hermes_tools, json
ask = lambda line: json.loads(json.loads(hermes_tools._exchange(line)))["error"]
print(ask(b"not json\n"))
print(ask(b"[1, 2]\n"))
print(ask(b"x" * (17 << 20) + b"\n"))
token = hermes_tools._TOKEN
print(ask(json.dumps({"tool": "terminal", "args": [1], "token": token}).encode() + b"\n"))
print(hermes_tools.terminal("echo fine")["output"].strip())
"#;
        let told = run(&talk, code).await;
        let output: Vec<&str> = told["output"].as_str().unwrap().lines().collect();
        assert_eq!(
            output,
            [
                "Invalid JSON: a request is one object on one line",
                "Invalid JSON: a request is one object on one line",
                "the request is too long",
                "`args` must be an object",
                "fine"
            ],
            "{told}"
        );
        assert_eq!(told["tool_calls_made"], 1);
        web.stop().await;
    });
}

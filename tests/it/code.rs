//! `execute_code`: programs of the model that call tools. Their calls stand in
//! the log, are judged and stored like the model's own, and are over when the
//! program is.

mod inside;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hermes_server::model::principal::Scope;
use hermes_server::store::Fate;
use serde_json::{Value, json};

use crate::api_rest::{Talk, decision_of};
use crate::cases::{count, ended, events, messages, results, text};
use crate::harness::client::{Client, NewKey};
use crate::harness::http::Web;
use crate::harness::script::terminal;
use crate::harness::{lines, on_both, probe};

fn program(code: &str) -> String {
    format!("/tool execute_code {}", json!({"code": code}))
}

/// A session in which programs begin without being asked about.
async fn trusted(web: &Web, client: &Client) -> Talk {
    Talk::new(web, client, &json!({"approvals": {"mode": "off"}})).await
}

/// What the program came to, once its turn is over.
async fn run(talk: &Talk, code: &str) -> Value {
    let turn = talk.path(&format!("/turns/{}", talk.say(&program(code)).await));
    assert_eq!(ended(talk, &turn).await["status"], "completed");
    let said = messages(talk).await;
    serde_json::from_str(results(&said).last().unwrap()).unwrap()
}

/// Calls in the log as of an event, those of programs only.
fn nested<'a>(log: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let calls = log.iter().filter(|event| event["type"] == kind);
    let calls = calls.map(|event| &event["data"]["tool_call"]);
    calls.filter(|call| call["parent_call_id"].is_string()).collect()
}

#[test]
fn a_program_calls_tools_and_the_model_sees_what_it_prints() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = trusted(&web, &web.owner().await).await;
        let code = r#"
from hermes_tools import read_file, write_file, patch, search_files, terminal, json_parse, shell_quote, retry
write_file("a.txt", "one\ntwo\n")
first = read_file("a.txt")
again = read_file("a.txt")
assert first["content"] == again["content"], again
patch("a.txt", "two", "2\nthree")
found = search_files("three")
counted = terminal("wc -l < " + shell_quote("a.txt"))
print("lines:", counted["output"].strip(), "found:", found["total_count"])
print(json_parse('{"a": "b\tc"}'), retry(lambda: 7))
"#;
        let told = run(&talk, code).await;
        assert_eq!(
            (&told["status"], &told["exit_code"], &told["tool_calls_made"]),
            (&json!("success"), &json!(0), &json!(6)),
            "{told}"
        );
        assert_eq!(told["output"], "lines: 3 found: 1\n{'a': 'b\\tc'} 7\n");
        assert_eq!(told["stdout_bytes_total"], told["stdout_bytes_captured"]);

        let log = events(&talk).await;
        let own: Vec<&Value> = log
            .iter()
            .filter(|event| event["type"] == "tool_call.proposed")
            .map(|event| &event["data"]["tool_call"])
            .filter(|call| call["parent_call_id"].is_null())
            .collect();
        assert_eq!(own.len(), 1, "{own:?}");
        for kind in ["tool_call.proposed", "tool_call.started", "tool_call.completed"] {
            let calls = nested(&log, kind);
            let names: Vec<&str> = calls.iter().map(|call| call["name"].as_str().unwrap()).collect();
            let expected = [
                "write_file",
                "read_file",
                "read_file",
                "patch",
                "search_files",
                "terminal",
            ];
            assert_eq!(names, expected, "{kind}");
            assert!(calls.iter().all(|call| call["parent_call_id"] == own[0]["id"]));
        }
        let done = nested(&log, "tool_call.completed");
        assert!(done.iter().all(|call| call["status"] == "succeeded"), "{done:?}");
        assert!(done[1]["result"].as_str().unwrap().contains("one"), "{}", done[1]);
        // The transcript has the program alone.
        let said = messages(&talk).await;
        let calls: usize = said
            .iter()
            .map(|message| message["tool_calls"].as_array().map_or(0, Vec::len))
            .sum();
        assert_eq!((calls, results(&said).len()), (1, 1));
        web.stop().await;
    });
}

#[test]
fn calls_output_and_time_of_a_program_are_bounded() {
    on_both(async |mut place| {
        place.config.code_execution.timeout = Duration::from_secs(3);
        place.config.code_execution.max_tool_calls = 2;
        let web = place.serve().await;
        let talk = trusted(&web, &web.owner().await).await;
        let code = "from hermes_tools import terminal\nfor n in range(3): print(terminal('echo ran >> f'))";
        let told = run(&talk, code).await;
        assert_eq!(told["tool_calls_made"], 2);
        assert!(
            told["output"].as_str().unwrap().contains("Tool call limit reached (2)"),
            "{told}"
        );
        assert_eq!(lines(&web.server.workspace(talk.session.parse().unwrap()).join("f")), 2);

        let told = run(&talk, "print('begin'); print('x' * 200_000); print('end')").await;
        assert_eq!(
            (&told["status"], &told["stdout_truncated"]),
            (&json!("success"), &json!(true))
        );
        assert_eq!(
            (
                &told["stdout_bytes_total"],
                &told["stdout_bytes_captured"],
                &told["stdout_bytes_omitted"]
            ),
            (&json!(200_011), &json!(50_000), &json!(150_011))
        );
        let output = told["output"].as_str().unwrap();
        assert!(output.starts_with("begin\n") && output.ends_with("end\n"));

        let told = run(
            &talk,
            "import sys\nprint('out')\nprint('why', file=sys.stderr)\nsys.exit(3)",
        )
        .await;
        assert_eq!((&told["status"], &told["exit_code"]), (&json!("error"), &json!(3)));
        assert_eq!(told["output"], "out\n\n--- stderr ---\nwhy\n");

        let told = run(&talk, "print('now', flush=True)\nwhile True: pass").await;
        assert_eq!((&told["status"], &told["output"]), (&json!("timeout"), &json!("now\n")));
        assert!(told["error"].as_str().unwrap().contains("3 seconds"), "{told}");
        let told = run(&talk, " ").await;
        assert_eq!(told["status"], "error", "{told}");
        web.stop().await;
    });
}

#[test]
fn a_program_has_no_other_tools_and_sees_no_secrets() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = trusted(&web, &web.owner().await).await;
        let code = r#"
import os, hermes_tools
print(hermes_tools._call("todo", {}))
print(hermes_tools._call("memory", {"target": "user"}))
print(hermes_tools._call("delegate_task", {"goal": "x"}))
print(hermes_tools._call("execute_code", {"code": "print(1)"}))
print(hermes_tools._call("read_file", {}))
print("inside:", hermes_tools._call("terminal", {"command": "echo hi", "background": True})["output"])
known = ("PATH HOME USER LANG LC_ TERM TMPDIR SHELL LOGNAME PWD OLDPWD PYTHON HERMES_RPC_ SHLVL _").split()
print("others:", [name for name in os.environ if not name.startswith(tuple(known))])
hermes_tools._TOKEN = "guessed"
print(hermes_tools._call("terminal", {"command": "echo ran >> f"}))
"#;
        let told = run(&talk, code).await;
        let output: Vec<&str> = told["output"].as_str().unwrap().lines().collect();
        assert_eq!(told["status"], "success", "{told}");
        for (line, name) in output.iter().zip(["todo", "memory", "delegate_task"]) {
            assert_eq!(
                *line,
                format!("{{'error': '{name} must be handled by the agent loop'}}")
            );
        }
        assert!(
            output[3].contains("not available in a program; available: read_file"),
            "{}",
            output[3]
        );
        assert!(output[4].contains("missing required argument `path`"), "{}", output[4]);
        assert!(output[5].starts_with("inside: hi"), "{}", output[5]);
        assert!(output.contains(&"others: []"), "{output:?}");
        assert!(
            output.last().unwrap().contains("Unauthorized RPC request"),
            "{output:?}"
        );
        assert_eq!(told["tool_calls_made"], 2);
        assert!(!web.server.workspace(talk.session.parse().unwrap()).join("f").exists());
        web.stop().await;
    });
}

/// The newest approval that waits.
async fn pending(talk: &mut Talk) -> Value {
    let frame = talk.events.until("approval.requested").await;
    frame.data["data"]["approval"].clone()
}

async fn decide(talk: &Talk, approval: &Value, choice: &str) {
    let answer = json!({"choice": choice});
    talk.client.post(&decision_of(approval), &answer).await.expect(200);
}

#[test]
fn a_program_is_asked_about_and_so_is_each_dangerous_command_in_it() {
    on_both(async |mut place| {
        place.config.code_execution.timeout = Duration::from_secs(4);
        let web = place.serve().await;
        let mut talk = Talk::new(&web, &web.owner().await, &json!({})).await;
        let approval = talk.ask(&program("print('never')")).await;
        assert_eq!(
            (&approval["findings"][0]["key"], &approval["arguments"]),
            (&json!("execute_code"), &json!({"code": "print('never')"}))
        );
        decide(&talk, &approval, "deny").await;
        talk.events.until("turn.completed").await;
        assert_eq!(count(&events(&talk).await, "tool_call.denied"), 1);

        let code = r#"
from hermes_tools import terminal
print(terminal("rm -rf never-there && echo ran >> f")["exit_code"])
print(terminal("rm -rf never-there && echo ran >> f")["status"])
print(terminal("rm -rf /")["status"])
"#;
        talk.say(&program(code)).await;
        let approval = pending(&mut talk).await;
        decide(&talk, &approval, "session").await;
        let first = pending(&mut talk).await;
        assert_eq!(first["tool"], "terminal");
        let session = talk.client.get(&talk.path("")).await.expect(200);
        assert_eq!(session["status"], "requires_action");
        let turn = first["turn_id"].as_str().unwrap();
        let turn = talk.client.get(&talk.path(&format!("/turns/{turn}"))).await.expect(200);
        assert_eq!(turn["status"], "running");
        // Longer than the program may run: meanwhile its time stands still.
        tokio::time::sleep(Duration::from_secs(5)).await;
        decide(&talk, &first, "once").await;
        let second = pending(&mut talk).await;
        decide(&talk, &second, "deny").await;
        talk.events.until("turn.completed").await;
        let said = messages(&talk).await;
        let told: Value = serde_json::from_str(results(&said).last().unwrap()).unwrap();
        assert_eq!(
            (&told["status"], &told["output"]),
            (&json!("success"), &json!("0\ndenied\ndenied\n"))
        );
        assert_eq!(lines(&web.server.workspace(talk.session.parse().unwrap()).join("f")), 1);
        // The answer for the session covers the next program.
        let told = run(&talk, "print('again')").await;
        assert_eq!(told["output"], "again\n");
        web.stop().await;
    });
}

#[test]
fn a_question_of_a_program_that_ended_is_void() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let mut talk = Talk::new(&web, &web.owner().await, &json!({})).await;
        let code = r#"
import os, threading, time
from hermes_tools import terminal
threading.Thread(target=terminal, args=("rm -rf never-there && echo ran >> f",), daemon=True).start()
while not os.path.exists("go"): time.sleep(0.02)
os._exit(0)
"#;
        let approval = talk.ask(&program(code)).await;
        decide(&talk, &approval, "once").await;
        let asked = pending(&mut talk).await;
        let workspace = web.server.workspace(talk.session.parse().unwrap());
        std::fs::write(workspace.join("go"), "").unwrap();
        talk.events.until("turn.completed").await;
        let late = talk.client.post(&decision_of(&asked), &json!({"choice": "once"})).await;
        assert_eq!(late.status, 409, "{}", late.body);
        let log = events(&talk).await;
        assert_eq!(
            (
                count(&log, "approval.superseded"),
                nested(&log, "tool_call.cancelled").len()
            ),
            (1, 1)
        );
        assert!(!workspace.join("f").exists());
        web.stop().await;
    });
}

#[test]
fn a_cancel_ends_the_program_and_its_call() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let mut talk = trusted(&web, &web.owner().await).await;
        let code = "from hermes_tools import terminal\nimport subprocess\nsubprocess.Popen(['sleep', '300'])\n\
                    terminal('sleep 300')";
        let turn = talk.path(&format!("/turns/{}", talk.say(&program(code)).await));
        for _ in 0..2 {
            talk.events.until("tool_call.started").await;
        }
        talk.client.post(&format!("{turn}/cancel"), &json!({})).await;
        assert_eq!(ended(&talk, &turn).await["status"], "cancelled");
        let log = events(&talk).await;
        assert_eq!(
            (
                count(&log, "tool_call.cancelled"),
                nested(&log, "tool_call.cancelled").len()
            ),
            (2, 1)
        );
        web.stop().await;
    });
}

#[test]
fn a_program_that_a_crash_interrupted_is_unknown_and_never_run_again() {
    on_both(async |mut place| {
        let dead = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&dead);
        let dies = probe(move |_| match seen.load(Ordering::SeqCst) {
            true => Fate::FailBefore,
            false => Fate::Go,
        });
        let web = place.serve_probed(dies).await;
        let owner = web.owner().await;
        let mut talk = trusted(&web, &owner).await;
        let code = "from hermes_tools import terminal\nterminal('echo ran >> f')\nterminal('echo ran >> g; sleep 300')";
        talk.say(&program(code)).await;
        for _ in 0..3 {
            talk.events.until("tool_call.started").await;
        }
        let session = talk.session.clone();
        dead.store(true, Ordering::SeqCst);
        web.crash().await;
        let web = place.serve().await;
        let talk = Talk::of(&web, &web.owner().await, &session).await;
        let turn = events(&talk).await[0..]
            .iter()
            .find_map(|event| event["turn_id"].as_str().map(str::to_owned))
            .unwrap();
        assert_eq!(
            ended(&talk, &talk.path(&format!("/turns/{turn}"))).await["status"],
            "completed"
        );
        let log = events(&talk).await;
        let unknown = nested(&log, "tool_call.unknown");
        assert_eq!((count(&log, "tool_call.unknown"), unknown.len()), (2, 1), "{log:?}");
        let done = nested(&log, "tool_call.completed");
        assert_eq!((done.len(), &done[0]["status"]), (1, &json!("succeeded")));
        let workspace = web.server.workspace(session.parse().unwrap());
        assert!(lines(&workspace.join("f")) == 1 && lines(&workspace.join("g")) <= 1);
        let said = messages(&talk).await;
        let told = said.iter().find(|message| message["role"] == "tool").unwrap();
        assert!(text(told).contains("Interrupted"), "{told}");
        web.stop().await;
    });
}

#[test]
fn programs_of_two_tenants_do_not_meet() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = trusted(&web, &web.owner().await).await;
        let told = run(&owner, "open('mine', 'w').write('secret')").await;
        assert_eq!(told["status"], "success", "{told}");
        let elsewhere = NewKey {
            tenant: web.tenant("elsewhere").await,
            user: "ada",
            scopes: &[
                Scope::SessionsRead,
                Scope::SessionsWrite,
                Scope::TurnsWrite,
                Scope::ApprovalsDecide,
            ],
            tools: None,
        };
        let other = trusted(&web, &web.with_key(elsewhere).await).await;
        let mine = web.server.workspace(owner.session.parse().unwrap()).join("mine");
        let code = format!(
            "from hermes_tools import read_file, terminal\nprint(read_file({mine:?}))\nprint(terminal('cat {}'))\n\
             try: print(open({mine:?}).read())\nexcept OSError: print('denied')",
            mine.display()
        );
        let told = run(&other, &code).await;
        let output = told["output"].as_str().unwrap();
        assert!(!output.contains("secret") && output.contains("denied"), "{told}");
        other.client.get(&owner.path("/events")).await.problem(404, "not_found");
        web.stop().await;
    });
}

#[test]
fn what_a_program_may_call_is_what_the_session_has() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let settings = json!({"approvals": {"mode": "off"}, "toolsets": {"disabled": ["terminal"]}});
        let talk = Talk::new(&web, &owner, &settings).await;
        let offered = owner.get(&talk.path("/tools")).await.expect(200);
        let tools = offered["offered"].as_array().unwrap();
        let tool = tools.iter().find(|tool| tool["name"] == "execute_code").unwrap();
        let description = tool["description"].as_str().unwrap();
        assert!(
            description.contains("read_file(path") && !description.contains("terminal("),
            "{description}"
        );
        let code = format!(
            "import hermes_tools\nprint(hasattr(hermes_tools, 'terminal'))\nprint(hermes_tools._call('terminal', {}))",
            json!({"command": "echo ran >> f"})
        );
        let told = run(&talk, &code).await;
        let output = told["output"].as_str().unwrap();
        assert!(
            output.starts_with("False\n") && output.contains("not available"),
            "{told}"
        );
        assert!(!web.server.workspace(talk.session.parse().unwrap()).join("f").exists());
        // Beside a program nothing else runs, and what comes behind it comes after it.
        let turn = format!("{}\n{}", program("open('a', 'w').write('x')"), terminal("cat a"));
        let plain = trusted(&web, &owner).await;
        let turn = plain.path(&format!("/turns/{}", plain.say(&turn).await));
        assert_eq!(ended(&plain, &turn).await["status"], "completed");
        let said = messages(&plain).await;
        assert!(results(&said)[1].contains("\"output\":\"x\""), "{:?}", results(&said));
        web.stop().await;
    });
}

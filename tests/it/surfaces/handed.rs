//! Calls that the client carries out and questions of the model: what a client of
//! each surface sees of them, and how the turn goes on.

use reqwest::Method;
use serde_json::{Value, json};

use super::wire::{Frame, Stream};
use crate::harness::client::Client;
use crate::harness::http::Answer;
use crate::harness::on_both;

const LOOK_UP: &str = "/say I look.\n/tool look_up {\"order\": \"7\"}\n/then\n/say done";
const ASK: &str = "/tool clarify {\"question\": \"Which one?\", \"choices\": [\"a\", \"b\"]}\n/then\n/say done";

fn function() -> Value {
    json!({"type": "function", "name": "look_up", "description": "Looks an order up", "strict": false,
        "parameters": {"type": "object", "properties": {"order": {"type": "string"}}}})
}

fn nested() -> Value {
    json!({"type": "function", "function": {"name": "look_up",
        "parameters": {"type": "object", "properties": {"order": {"type": "string"}}}}})
}

fn items<'a>(response: &'a Value, kind: &str) -> Vec<&'a Value> {
    let output = response["output"].as_array().unwrap().iter();
    output.filter(|item| item["type"] == kind).collect()
}

fn output(call: &Value, text: &str) -> Value {
    json!({"type": "function_call_output", "call_id": call["call_id"], "output": text})
}

/// What the model was given as results in the only session.
async fn results(client: &Client) -> Vec<String> {
    let sessions = client.get("/v1/sessions").await.expect(200);
    let path = format!("/v1/sessions/{}/messages", sessions["data"][0]["id"].as_str().unwrap());
    let messages = client.get(&path).await.expect(200);
    let of_tools = messages["data"].as_array().unwrap().iter();
    let of_tools = of_tools.filter(|message| message["role"] == "tool");
    of_tools
        .map(|message| message["content"][0]["text"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_function_of_the_client_is_left_to_it_and_its_output_goes_to_the_model() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let body = json!({"input": LOOK_UP, "tools": [function(), {"type": "web_search"}]});
        let asked = client.post("/v1/responses", &body).await.expect(200);
        assert_eq!(
            (&asked["status"], &asked["hermes"]["status"], &asked["tools"][0]["name"]),
            (&json!("completed"), &json!("waiting_for_input"), &json!("look_up"))
        );
        let calls = items(&asked, "function_call");
        assert_eq!((calls.len(), items(&asked, "function_call_output").len()), (1, 0));
        assert_eq!(
            (&calls[0]["name"], &calls[0]["status"]),
            (&json!("look_up"), &json!("completed"))
        );
        let arguments: Value = serde_json::from_str(calls[0]["arguments"].as_str().unwrap()).unwrap();
        assert_eq!(arguments, json!({"order": "7"}));
        let path = format!("/v1/responses/{}", asked["id"].as_str().unwrap());

        let next = json!({"previous_response_id": asked["id"], "input": [output(calls[0], "sent")]});
        let done = client.post("/v1/responses", &next).await.expect(200);
        assert_eq!(items(&done, "message")[0]["content"][0]["text"], "done");
        assert_eq!(done["output"].as_array().unwrap().len(), 1, "{done}");
        assert_ne!(done["id"], asked["id"]);
        assert_eq!(results(&client).await, ["sent"]);
        // The first response is what it was.
        assert_eq!(client.get(&path).await.expect(200), asked);
        let again = client.get_stream(&format!("{path}?stream=true")).await.rest().await;
        assert_eq!(again.last().unwrap().json()["response"], asked);
        // The same output again is no error, another is one.
        let same = client.post("/v1/responses", &next).await.expect(200);
        assert_eq!((&same["id"], &same["output"]), (&done["id"], &done["output"]));
        let other = json!({"input": [output(calls[0], "lost")]});
        let refused = client.post("/v1/responses", &other).await;
        assert_eq!(
            (refused.status, &refused.body["error"]["code"]),
            (409, &json!("tool_call_settled"))
        );
        let chained = json!({"previous_response_id": done["id"], "input": "/say on"});
        let chained = client.post("/v1/responses", &chained).await.expect(200);
        assert_eq!(items(&chained, "message")[0]["content"][0]["text"], "on");
        web.stop().await;
    });
}

#[test]
fn a_stream_ends_with_the_clients_call_and_another_is_what_follows() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let two = format!(
            "/tool look_up {{\"order\": \"6\"}}\n{}",
            LOOK_UP.replace("/say I look.\n", "")
        );
        let body = json!({"input": two, "tools": [function()], "stream": true});
        let frames = client.post_stream("/v1/responses", &body).await.rest().await;
        let names: Vec<String> = frames.iter().map(Frame::named).collect();
        assert_eq!(
            names
                .iter()
                .filter(|name| *name == "response.function_call_arguments.done")
                .count(),
            2
        );
        let asked = frames.last().unwrap().json()["response"].clone();
        assert_eq!(names.last().unwrap(), "response.completed");
        let calls = items(&asked, "function_call");
        // Behind its last number there is no more.
        let number = &frames.last().unwrap().json()["sequence_number"];
        let path = format!("/v1/responses/{}", asked["id"].as_str().unwrap());
        let rest = client
            .get_stream(&format!("{path}?stream=true&starting_after={number}"))
            .await;
        assert_eq!(rest.rest().await, []);

        let one = json!({"input": [output(calls[0], "six")]});
        let refused = client.post("/v1/responses", &one).await;
        assert_eq!(
            (refused.status, &refused.body["error"]["code"]),
            (400, &json!("missing_tool_output"))
        );
        let unknown = json!({"input": [{"type": "function_call_output", "call_id": "call_0", "output": "x"}]});
        let refused = client.post("/v1/responses", &unknown).await;
        assert_eq!(
            (refused.status, &refused.body["error"]["code"]),
            (400, &json!("tool_call_not_found"))
        );
        let stranger = web
            .user("colleague", &hermes_server::model::principal::Scope::ALL[..6])
            .await;
        let both = json!([output(calls[0], "six"), output(calls[1], "seven")]);
        assert_eq!(
            stranger.post("/v1/responses", &json!({"input": both})).await.status,
            400
        );

        // As clients do that send the whole conversation each time.
        let mut all = vec![json!({"role": "user", "content": two})];
        all.extend(calls.iter().map(|call| (*call).clone()));
        all.extend(both.as_array().unwrap().clone());
        let body = json!({"input": all, "tools": [function()], "stream": true});
        let rest = client.post_stream("/v1/responses", &body).await.rest().await;
        let done = rest.last().unwrap().json()["response"].clone();
        assert_eq!(items(&done, "message")[0]["content"][0]["text"], "done");
        assert_eq!(results(&client).await, ["six", "seven"]);
        web.stop().await;
    });
}

#[test]
fn a_function_with_the_name_of_a_servers_tool_is_refused_by_its_place() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let terminal = json!({"type": "function", "name": "terminal", "parameters": {"type": "object"}});
        let input = "/tool terminal {\"command\": \"echo here\"}\n/then\n/say done";
        let responses = json!({"input": input, "tools": [{"type": "web_search"}, function(), terminal]});
        let parts = json!([{"role": "user", "parts": [{"type": "text", "text": input}]}]);
        let nested = json!({"type": "function", "function": {"name": "terminal"}});
        let page = json!({"id": "page", "messages": parts, "tools": [nested]});
        for (path, body, param) in [
            ("/v1/responses", &responses, "tools[2].name"),
            ("/v1/ui/chat", &page, "tools[0].function.name"),
        ] {
            let refused = client.post(path, body).await;
            let error = &refused.body["error"];
            assert_eq!((refused.status, &error["param"]), (400, &json!(param)), "{path}");
            assert!(
                error["message"].as_str().unwrap().contains("tool of the server"),
                "{error}"
            );
        }
        let sessions = json!({"external_id": "own", "tools": [nested]});
        let refused = client
            .post("/v1/sessions", &sessions)
            .await
            .problem(400, "invalid_request");
        assert_eq!(refused["errors"][0]["pointer"], "/tools/0/function/name");
        let none = client.get("/v1/sessions").await.expect(200);
        assert_eq!(none["data"], json!([]), "nothing was made");
        // Chat completions take no tools at all, and leave them unread.
        let body = json!({"messages": [{"role": "user", "content": "/say hi"}], "tools": [nested, 5]});
        client.post("/v1/chat/completions", &body).await.expect(200);
        for (tools, choice) in [
            (json!([{"type": "function", "name": "a b"}]), json!("auto")),
            (json!([function(), function()]), json!("auto")),
            (json!([function()]), json!("any")),
            (json!([function()]), json!({"type": "function", "name": "nothing"})),
        ] {
            let body = json!({"input": "x", "tools": tools, "tool_choice": choice});
            assert_eq!(client.post("/v1/responses", &body).await.status, 400, "{body}");
        }
        web.stop().await;
    });
}

/// A session of that name with the client's tool and the model's question.
async fn session(client: &Client, name: &str) -> String {
    let body = json!({"external_id": name, "tools": [nested()], "toolsets": {"enabled": ["clarify"]}});
    let made = client.post("/v1/sessions", &body).await.expect(201);
    made["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_tells_what_its_client_has_to_do_and_takes_it() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        session(&client, "talk").await;
        let begun = client
            .post("/v1/runs", &json!({"input": LOOK_UP, "session_id": "talk"}))
            .await
            .expect(202);
        let run = format!("/v1/runs/{}", begun["run_id"].as_str().unwrap());
        let mut events = client.get_stream(&format!("{run}/events")).await;
        let handed = events.until(|frame| frame.named() == "tool.handed_over").await;
        let call = handed.last().unwrap().json();
        assert_eq!(
            (&call["tool"], &call["arguments"]),
            (&json!("look_up"), &json!({"order": "7"}))
        );
        let status = waiting(&client, &run).await;
        assert_eq!(status["tool_calls"][0]["tool_call_id"], call["tool_call_id"]);
        let wrong = json!({"results": [{"tool_call_id": "call_0", "output": "x"}]});
        let refused = client.post(&format!("{run}/tool-results"), &wrong).await;
        assert_eq!(
            (refused.status, &refused.body["error"]["code"]),
            (400, &json!("tool_call_not_found"))
        );
        let results = json!({"results": [{"tool_call_id": call["tool_call_id"], "output": "sent"}]});
        let taken = client.post(&format!("{run}/tool-results"), &results).await.expect(200);
        assert_eq!(taken["accepted"], 1);
        let rest = events.rest().await;
        let completed = rest.iter().rfind(|frame| frame.comment.is_none()).unwrap().json();
        assert_eq!(
            (&completed["event"], &completed["output"]),
            (&json!("run.completed"), &json!("done"))
        );
        web.stop().await;
    });
}

/// The run once it waits for its client.
async fn waiting(client: &Client, run: &str) -> Value {
    for _ in 0..2_000 {
        let status = client.get(run).await.expect(200);
        if status["status"] == "waiting_for_input" {
            return status;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("the run waits for nothing");
}

#[test]
fn a_question_of_a_run_is_answered_by_its_id() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        session(&client, "talk").await;
        let begun = client
            .post("/v1/runs", &json!({"input": ASK, "session_id": "talk"}))
            .await
            .expect(202);
        let run = format!("/v1/runs/{}", begun["run_id"].as_str().unwrap());
        let mut events = client.get_stream(&format!("{run}/events")).await;
        let asked = events.until(|frame| frame.named() == "clarify.request").await;
        let question = asked.last().unwrap().json();
        assert_eq!(
            (&question["question"], &question["choices"]),
            (&json!("Which one?"), &json!(["a", "b"]))
        );
        let status = waiting(&client, &run).await;
        assert_eq!(status["clarification"]["question_id"], question["question_id"]);
        let path = format!(
            "{run}/clarifications/{}/respond",
            question["clarification_id"].as_str().unwrap()
        );
        assert_eq!(client.post(&path, &json!({"answer": " "})).await.status, 400);
        let unknown = format!("{run}/clarifications/qst_0/respond");
        assert_eq!(client.post(&unknown, &json!({"answer": "b"})).await.status, 404);
        let answered = client.post(&path, &json!({"response": "b"})).await.expect(200);
        assert_eq!(
            (&answered["status"], &answered["answer"]),
            (&json!("answered"), &json!("b"))
        );
        let late = client.post(&path, &json!({"answer": "a"})).await;
        assert_eq!(
            (late.status, &late.body["error"]["code"]),
            (409, &json!("clarification_not_pending"))
        );
        let rest = events.rest().await;
        assert!(rest.iter().any(|frame| frame.data.contains("clarify.responded")));
        let completed = rest.iter().rfind(|frame| frame.comment.is_none()).unwrap().json();
        assert_eq!(completed["event"], "run.completed");
        web.stop().await;
    });
}

async fn asked(client: &Client, text: &str, stream: bool) -> reqwest::RequestBuilder {
    let body = json!({"messages": [{"role": "user", "content": text}], "stream": stream});
    client
        .request(Method::POST, "/v1/chat/completions")
        .json(&body)
        .header("x-hermes-session-id", "talk")
}

#[test]
fn a_chat_names_what_it_waits_for_and_its_stream_stays_open() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let session = session(&client, "talk").await;
        let said = Answer::of(asked(&client, ASK, false).await.send().await.unwrap()).await;
        let said = said.expect(200);
        assert_eq!(said["hermes"]["error_code"], "answer_required");
        let question = &said["hermes"]["questions"][0];
        let content = said["choices"][0]["message"]["content"].as_str().unwrap();
        assert!(content.contains("Which one?") && content.contains(question["href"].as_str().unwrap()));
        let answer = json!({"answer": "a"});
        client
            .post(question["href"].as_str().unwrap(), &answer)
            .await
            .expect(200);
        let mut events = client.stream(&web, &format!("/v1/sessions/{session}/stream")).await;
        events.until("turn.completed").await;

        for (script, what) in [(ASK, "question"), (LOOK_UP, "tool_call")] {
            let mut stream = Stream::open(asked(&client, script, true).await).await;
            let frames = stream
                .until(|frame| frame.data.contains(&format!("{{\"{what}\":")) && frame.event.is_none())
                .await;
            let told = frames.last().unwrap().json()["hermes"][what].clone();
            let (path, body) = match what {
                "question" => (&told["href"], json!({"answer": "a"})),
                _ => (
                    &told["href"],
                    json!({"results": [{"tool_call_id": told["tool_call_id"], "output": "sent"}]}),
                ),
            };
            client.post(path.as_str().unwrap(), &body).await.expect(200);
            let rest = stream.rest().await;
            assert_eq!(rest.last().unwrap().data, "[DONE]");
            assert!(rest.iter().any(|frame| frame.data.contains("done")));
            // A strict client knows one named event and takes one choice in each chunk.
            for frame in frames
                .iter()
                .chain(&rest)
                .filter(|frame| frame.data != "[DONE]" && frame.comment.is_none())
            {
                assert!(frame.event.as_deref().is_none_or(|name| name == "hermes.tool.progress"));
                assert_eq!(frame.json()["choices"].as_array().unwrap().len(), 1);
            }
        }
        web.stop().await;
    });
}

#[test]
fn a_session_chat_tells_questions_and_calls_in_its_events() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let session = session(&client, "talk").await;
        let body = json!({"message": LOOK_UP});
        let waits = client.post("/api/sessions/talk/chat", &body).await.expect(200);
        assert_eq!(
            (&waits["status"], &waits["error_code"]),
            (&json!("waiting_for_input"), &json!("tool_results_required"))
        );
        let call = &waits["tool_calls"][0];
        let results = json!({"results": [{"tool_call_id": call["tool_call_id"], "output": "sent"}]});
        client.post(call["href"].as_str().unwrap(), &results).await.expect(200);
        let mut events = client.stream(&web, &format!("/v1/sessions/{session}/stream")).await;
        events.until("turn.completed").await;

        let mut stream = client
            .post_stream("/api/sessions/talk/chat/stream", &json!({"message": ASK}))
            .await;
        let frames = stream
            .until(|frame| frame.event.as_deref() == Some("clarify.request"))
            .await;
        let question = frames.last().unwrap().json();
        let answer = json!({"answer": "a"});
        client
            .post(question["href"].as_str().unwrap(), &answer)
            .await
            .expect(200);
        let rest = stream.rest().await;
        assert!(
            rest.iter()
                .any(|frame| frame.event.as_deref() == Some("clarify.responded"))
        );
        assert_eq!(rest.last().unwrap().event.as_deref(), Some("done"));
        web.stop().await;
    });
}

#[test]
fn a_page_executes_its_tool_and_puts_questions_to_its_user() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        session(&client, "asks").await;
        for (chat, script, tool, text) in [("runs", LOOK_UP, "look_up", "sent"), ("asks", ASK, "clarify", "b")] {
            let user = json!({"role": "user", "parts": [{"type": "text", "text": script}]});
            let body = json!({"id": chat, "messages": [user], "tools": [nested()]});
            let frames = client.post_stream("/v1/ui/chat", &body).await.rest().await;
            let call = frames
                .iter()
                .filter(|frame| frame.data != "[DONE]")
                .map(Frame::json)
                .find(|part| part["type"] == "tool-input-available")
                .unwrap();
            assert_eq!(
                (&call["toolName"], &call["providerExecuted"]),
                (&json!(tool), &json!(false))
            );
            assert!(frames.iter().any(|frame| frame.data.contains("\"type\":\"finish\"")));
            let part = json!({"type": "dynamic-tool", "toolName": tool, "toolCallId": call["toolCallId"],
                "state": "output-available", "input": call["input"], "output": text});
            let message = json!({"role": "assistant", "id": "m1", "parts": [part]});
            let body = json!({"id": chat, "messages": [user, message]});
            let rest = client.post_stream("/v1/ui/chat", &body).await.rest().await;
            let parts: Vec<Value> = rest
                .iter()
                .filter(|frame| frame.data != "[DONE]")
                .map(Frame::json)
                .collect();
            assert_eq!(
                (&parts[0]["type"], &parts[0]["messageId"]),
                (&json!("start"), &json!("m1"))
            );
            let said: String = parts.iter().filter_map(|part| part["delta"].as_str()).collect();
            assert_eq!(said, "done");
            // The output is the page's own, and nothing is left to execute.
            let again = client.post("/v1/ui/chat", &body).await;
            assert_eq!(again.status, 404, "{}", again.body);
        }
        web.stop().await;
    });
}

//! Budgets as a client meets them: the call that would cross a line is not sent
//! before somebody answered, whatever the line is drawn around, and the sums
//! hold while many turns spend at once.

mod session;

use hermes_server::model::approval::{Approval, ApprovalStatus, Choice};
use hermes_server::model::budget::{BudgetScope, BudgetUnit};
use hermes_server::model::event::EventBody;
use hermes_server::model::id::SessionId;
use hermes_server::model::principal::Scope;
use hermes_server::model::turn::StopReason;
use hermes_server::model::usage::{Price, UsageGroup};
use hermes_server::store::Fate;
use hermes_server::store::usage::UsageFilter;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::api_rest::{Talk, decision_of};
use crate::harness::http::Web;
use crate::harness::model_server::{ModelServer, Reply};
use crate::harness::script::{answer, check_log, check_transcript, mark};
use crate::harness::{Place, Server, name, on_both, probe};

/// What the tenant spent: by the rows of calls, and by the sums.
pub struct Spending {
    pub calls: u64,
    pub tokens: u64,
    pub tenant: u64,
}

pub async fn spent(server: &Server) -> Spending {
    let read = server.scope.read(|mut rows| {
        Box::pin(async move {
            let filter = UsageFilter::default();
            let rows_by_day = rows.usage_by(UsageGroup::Day, &filter, None, 1000).await?;
            let sums = rows.subject_sums(&["tenant".to_owned()]).await?;
            Ok((rows_by_day, sums))
        })
    });
    let (days, sums) = read.await.unwrap();
    Spending {
        calls: days.iter().map(|day| day.calls).sum(),
        tokens: days.iter().map(|day| day.input_tokens + day.output_tokens).sum(),
        tenant: sums.first().map_or(0, |sum| sum.spent(BudgetUnit::Tokens)),
    }
}

fn look() -> Value {
    let function = json!({"name": "read_file", "arguments": "{\"path\": \"x\"}"});
    json!({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]})
}

fn looks(input: u64, output: u64) -> Reply {
    Reply::stream(&[look()], "tool_calls").taking(input, output)
}

async fn scripted(place: &mut Place, replies: Vec<Reply>) -> ModelServer {
    let model = ModelServer::start(replies).await;
    place.config.openai.base_url = Some(model.base_url.clone());
    place.config.model = Some("scripted".to_owned());
    model
}

async fn begin(talk: &Talk, limits: Value) -> String {
    let new = json!({"input": "go", "limits": limits});
    let turn = talk.client.post(&talk.path("/turns"), &new).await.expect(202);
    turn["id"].as_str().unwrap().to_owned()
}

async fn turn_of(talk: &Talk, id: &str) -> Value {
    talk.client.get(&talk.path(&format!("/turns/{id}"))).await.expect(200)
}

async fn talk(web: &Web) -> Talk {
    Talk::new(web, &web.owner().await, &json!({})).await
}

#[test]
fn the_call_that_would_cross_the_line_is_sent_once_and_only_after_more_was_granted() {
    on_both(async |mut place| {
        let replies = vec![looks(600, 10), Reply::say("done").taking(700, 1)];
        let model = scripted(&mut place, replies).await;
        let web = place.serve().await;
        let mut talk = talk(&web).await;
        let turn = begin(&talk, json!({"max_tokens": 1000})).await;
        let approval = talk.asked().await.remove(0);
        assert_eq!(approval["kind"], "budget");
        assert_eq!(approval["choices"], json!(["grant_more", "stop"]));
        let stated = json!({"scope": "turn", "unit": "tokens", "limit": 1000, "spent": 610, "add": 710});
        assert_eq!(approval["arguments"]["budgets"], json!([stated]));
        assert!(web.server.is_left().await, "what waits for a person executes nothing");
        assert_eq!(model.asked().len(), 1);
        let session = talk.client.get(&talk.path("")).await.expect(200);
        assert_eq!(session["status"], "requires_action");
        assert_eq!(session["required_actions"][0]["id"], approval["id"]);
        web.stop().await;

        // Another process knows as much.
        let web = place.serve().await;
        let talk = Talk {
            client: web.owner().await,
            ..talk
        };
        let path = decision_of(&approval);
        talk.client
            .post(&path, &json!({"choice": "once"}))
            .await
            .problem(400, "choice_not_offered");
        let answer = json!({"choice": "grant_more", "digest": approval["digest"]});
        let decided = talk.client.post(&path, &answer).await.expect(200);
        assert_eq!(
            (&decided["status"], &decided["arguments"]),
            (&json!("allowed"), &approval["arguments"])
        );
        let events = talk
            .client
            .stream(&web, &talk.path(&format!("/turns/{turn}/stream")))
            .await;
        let names: Vec<String> = events.rest().await.into_iter().map(|frame| frame.event).collect();
        assert_eq!(names.last().unwrap(), "turn.completed");
        assert!(names.contains(&"budget.exceeded".to_owned()), "{names:?}");
        let turn = turn_of(&talk, &turn).await;
        assert_eq!(
            (&turn["stop_reason"], &turn["usage"]["input_tokens"]),
            (&json!("end_turn"), &json!(1300))
        );
        assert_eq!(model.asked().len(), 2);
        web.stop().await;
    });
}

#[test]
fn a_ceiling_of_cost_warns_first_and_stop_ends_the_turn() {
    on_both(async |mut place| {
        let replies = vec![looks(100, 60), looks(100, 70), Reply::say("never")];
        let model = scripted(&mut place, replies).await;
        // 1 for a million tokens sent, 10 for a million received.
        let price = Price {
            input: 1_000_000_000,
            cached_input: 100_000_000,
            output: 10_000_000_000,
            reasoning: 10_000_000_000,
        };
        place.config.usage.prices.0.insert("scripted".to_owned(), price);
        let web = place.serve().await;
        let mut talk = talk(&web).await;
        let turn = begin(&talk, json!({"max_cost_nanos": 850_000})).await;
        let warning = talk.events.until("budget.warning").await.data;
        let told = json!({"scope": "turn", "unit": "cost_nanos", "limit": 850_000, "spent": 700_000});
        assert_eq!(warning["data"]["budget"], told);
        let exceeded = talk.events.until("budget.exceeded").await.data;
        assert_eq!(exceeded["data"]["budget"]["spent"], 1_500_000);
        let approval = talk.asked().await.remove(0);
        let title = "budget: turn used 0.001500000 of 0.000850000, grant 0.001085000 more?";
        assert_eq!(approval["title"], title);
        // Several answers at once, of which this is one.
        let decisions = json!({"mode": "atomic", "decisions": [{"approval_id": approval["id"], "choice": "stop"}]});
        let outcomes = talk
            .client
            .post(&talk.path("/approvals/decisions"), &decisions)
            .await
            .expect(200);
        assert_eq!(outcomes["outcomes"][0]["approval"]["status"], "denied");
        let turn = turn_of(&talk, &turn).await;
        assert_eq!(
            (&turn["status"], &turn["stop_reason"]),
            (&json!("completed"), &json!("budget"))
        );
        assert_eq!(turn["usage"]["cost_nanos"], 1_500_000);
        assert_eq!(
            talk.client.get(&talk.path("")).await.expect(200)["usage"]["cost_nanos"],
            1_500_000
        );
        let messages = talk.client.get(&talk.path("/messages")).await.expect(200);
        let last = messages["data"].as_array().unwrap().last().unwrap().clone();
        assert!(
            last["content"][0]["text"].as_str().unwrap().contains("budget"),
            "{last}"
        );
        assert_eq!(model.asked().len(), 2);
        web.stop().await;
    });
}

#[test]
fn nobody_is_asked_about_an_unattended_turn() {
    on_both(async |mut place| {
        let model = scripted(&mut place, vec![looks(100, 1), Reply::say("never")]).await;
        let web = place.serve().await;
        let mut talk = talk(&web).await;
        let new = json!({"input": "go", "limits": {"max_tokens": 100}, "approvals": {"on_ask": "deny"}});
        talk.client.post(&talk.path("/turns"), &new).await.expect(202);
        let ended = talk.events.until("turn.completed").await.data;
        assert_eq!(ended["data"]["turn"]["stop_reason"], "budget");
        assert_eq!(model.asked().len(), 1);
        let approvals = talk.client.get("/v1/approvals").await.expect(200);
        assert_eq!(approvals["data"], json!([]));
        web.stop().await;
    });
}

#[test]
fn a_budget_question_expires_like_others() {
    on_both(async |mut place| {
        let _model = scripted(&mut place, vec![looks(100, 1)]).await;
        place.config.approvals.timeout = Some(Duration::from_secs(1));
        let web = place.serve().await;
        let mut talk = talk(&web).await;
        begin(&talk, json!({"max_tokens": 100})).await;
        talk.events.until("approval.expired").await;
        let ended = talk.events.until("turn.completed").await.data;
        assert_eq!(ended["data"]["turn"]["stop_reason"], "budget");
        web.stop().await;
    });
}

#[test]
fn ceilings_that_are_none_are_refused() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = talk(&web).await;
        for limits in [
            json!({"max_tokens": 0}),
            json!({"max_cost_nanos": 0}),
            json!({"max_tokens": 1_000_000_000_000_001_u64}),
        ] {
            let new = json!({"input": "go", "limits": limits});
            let problem = talk
                .client
                .post(&talk.path("/turns"), &new)
                .await
                .problem(400, "invalid_request");
            assert!(
                problem["errors"][0]["pointer"]
                    .as_str()
                    .unwrap()
                    .starts_with("/limits/max_"),
                "{problem}"
            );
        }
        web.stop().await;
    });
}

/// The same line around more and more: who spends beside it, and whether that
/// counts.
#[test]
fn a_line_is_drawn_around_sessions_users_tenants_and_days() {
    use BudgetScope::{Day, Session, Tenant, User};
    for scope in [Session, User, Tenant, Day] {
        on_both(async |mut place| {
            place.config.budgets.narrow(scope, Some(60), None);
            place.config.budgets.grant_percent = 1000;
            let web = place.serve().await;
            let every = [
                Scope::SessionsRead,
                Scope::SessionsWrite,
                Scope::TurnsWrite,
                Scope::ApprovalsDecide,
            ];
            let (alice, bob) = (web.user("alice", &every).await, web.user("bob", &every).await);
            let mut first = Talk::new(&web, &alice, &json!({})).await;
            // A first call may overshoot: nothing is known of what it takes.
            first.say(&format!("/tokens 200\n{}", mark("a"))).await;
            let approval = first.asked().await.remove(0);
            assert_eq!(approval["arguments"]["budgets"][0]["scope"], json!(scope));
            for (other, counts) in [(&alice, scope != Session), (&bob, scope != Session && scope != User)] {
                let mut talk = Talk::new(&web, other, &json!({})).await;
                talk.say("/say hi").await;
                if !counts {
                    talk.events.until("turn.completed").await;
                    continue;
                }
                let asked = talk.asked().await.remove(0);
                assert_eq!(
                    asked["arguments"]["budgets"][0]["spent"],
                    approval["arguments"]["budgets"][0]["spent"]
                );
                let stopped = talk.client.post(&decision_of(&asked), &json!({"choice": "stop"})).await;
                assert_eq!(stopped.expect(200)["status"], "denied", "everybody may stop");
                let ended = talk.events.until("turn.completed").await.data;
                assert_eq!(ended["data"]["turn"]["stop_reason"], "budget");
            }
            let more = json!({"choice": "grant_more"});
            if scope != Session {
                alice
                    .post(&decision_of(&approval), &more)
                    .await
                    .problem(403, "forbidden");
            }
            let whole = web.user("treasurer", &[Scope::TenantAll, Scope::ApprovalsDecide]).await;
            whole.post(&decision_of(&approval), &more).await.expect(200);
            first.events.until("turn.completed").await;
            // What was granted is for all that the line is around.
            let mut talk = Talk::new(&web, &alice, &json!({})).await;
            talk.say("/say hi").await;
            talk.events.until("turn.completed").await;
            // Another tenant has a line of its own.
            let tenant = web.tenant("other").await;
            let other = crate::harness::client::NewKey {
                tenant,
                user: "alice",
                scopes: &every,
                tools: None,
            };
            let mut talk = Talk::new(&web, &web.with_key(other).await, &json!({})).await;
            talk.say("/say hi").await;
            talk.events.until("turn.completed").await;
            web.stop().await;
        });
    }
}

async fn pending(server: &Server, session: SessionId) -> Approval {
    let read = server.scope.read(move |mut rows| {
        Box::pin(async move {
            rows.approvals(Some(session), Some(ApprovalStatus::Pending), None, 2)
                .await
        })
    });
    let mut found = read.await.unwrap();
    assert_eq!(found.len(), 1);
    found.remove(0)
}

/// Sixteen sessions of one tenant spend at once, all on the same day's line.
#[test]
fn many_turns_overshoot_by_a_step_each_at_most_and_every_call_is_in_the_sums() {
    const SESSIONS: u64 = 16;
    const LIMIT: u64 = 3_000;
    on_both(async |mut place| {
        place.config.budgets.narrow(BudgetScope::Day, Some(LIMIT), None);
        place
            .config
            .budgets
            .narrow(BudgetScope::User, Some(u64::MAX >> 1), None);
        place.config.approvals.on_ask = hermes_server::config::OnAsk::Deny;
        let server = place.start().await;
        let rounds: Vec<String> = (0..20)
            .map(|number| format!("/tool read_file {{\"path\": \"{number}\"}}\n/then"))
            .collect();
        let script = rounds.join("\n");
        let turns = (0..SESSIONS).map(async |_| {
            let session = server.session().await.id;
            let turn = server.turn(session, &script).await.turn.id;
            let frames = server.frames(session, turn).await;
            let end = frames.into_iter().next_back().unwrap().event.body;
            let EventBody::TurnCompleted(end) = end else {
                panic!("{end:?}")
            };
            assert_eq!(end.turn.stop_reason, Some(StopReason::Budget));
            check_log(&server.log(session).await);
            check_transcript(&server.messages(session).await);
            let usage = end.turn.usage;
            // The last step is the largest: the conversation grew.
            (
                usage.of(BudgetUnit::Tokens),
                u64::from(usage.steps),
                server.session_now(session).await.usage == usage,
            )
        });
        let ended = futures::future::join_all(turns).await;
        let spent = spent(&server).await;
        let by_turns: u64 = ended.iter().map(|(tokens, ..)| tokens).sum();
        assert_eq!((spent.tokens, spent.tenant), (by_turns, by_turns));
        assert_eq!(spent.calls, ended.iter().map(|(_, steps, _)| steps).sum::<u64>());
        assert!(ended.iter().all(|(.., same)| *same));
        // A step of this script takes under 250 words.
        assert!(
            LIMIT / 2 < spent.tokens && spent.tokens < LIMIT + SESSIONS * 250,
            "{}",
            spent.tokens
        );
        server.stop().await;
    });
}

#[test]
fn a_budget_adds_no_commit_but_the_decision() {
    on_both(async |mut place| {
        place.config.budgets.narrow(BudgetScope::Turn, Some(60), None);
        place.config.budgets.narrow(BudgetScope::Day, Some(1_000_000), None);
        let seen: Arc<Mutex<Vec<&'static str>>> = Arc::default();
        let sink = Arc::clone(&seen);
        let counted = probe(move |label| {
            sink.lock().unwrap().push(label);
            Fate::Go
        });
        let server = place.start_probed(counted).await;
        let session = server.session().await.id;
        seen.lock().unwrap().clear();
        let turn = server
            .turn(session, &format!("{}\n/then\n/say done", mark("a")))
            .await
            .turn;
        server
            .wait_for(session, |body| matches!(body, EventBody::TurnWaiting(_)))
            .await;
        let asked = pending(&server, session).await;
        server
            .engine
            .decide(&server.scope, asked.id, answer(Choice::GrantMore))
            .await
            .unwrap();
        let frames = server.frames(session, turn.id).await;
        assert_eq!(name(&frames.last().unwrap().event), "turn.completed");
        let labels: Vec<_> = seen
            .lock()
            .unwrap()
            .iter()
            .copied()
            // What other tasks of the server commit comes when it comes.
            .filter(|label| !label.starts_with("process") && *label != "audit.chained")
            .collect();
        assert_eq!(labels, ["create_turn", "answer", "results", "decide", "answer"]);
        server.stop().await;
    });
}

#[test]
fn a_turn_that_waits_behind_one_that_spent_the_rest_asks_when_it_begins() {
    on_both(async |mut place| {
        place.config.budgets.narrow(BudgetScope::Day, Some(60), None);
        let server = place.start().await;
        let session = server.session().await.id;
        let first = server.turn(session, "/tokens 100\n/sleep 100").await.turn;
        let second = server.enqueue(session, "/say two").await.turn;
        let frames = server.frames(session, first.id).await;
        assert_eq!(name(&frames.last().unwrap().event), "turn.completed");
        server
            .wait_for(session, |body| matches!(body, EventBody::TurnWaiting(_)))
            .await;
        let asked = pending(&server, session).await;
        assert_eq!(asked.turn_id, second.id);
        assert!(server.is_left().await);
        server
            .engine
            .decide(&server.scope, asked.id, answer(Choice::GrantMore))
            .await
            .unwrap();
        let frames = server.frames(session, second.id).await;
        assert_eq!(name(&frames.last().unwrap().event), "turn.completed");
        check_log(&server.log(session).await);
        server.stop().await;
    });
}

#[test]
fn answers_that_cannot_be_used_are_paid_for() {
    on_both(async |mut place| {
        let replies = (0..3).map(|_| Reply::say(" ").taking(100, 0)).collect();
        let model = scripted(&mut place, replies).await;
        let web = place.serve().await;
        let mut talk = talk(&web).await;
        let turn = begin(&talk, json!({"max_tokens": 250})).await;
        let asked = talk.asked().await.remove(0);
        assert_eq!(asked["arguments"]["budgets"][0]["spent"], 200);
        assert_eq!(model.asked().len(), 2, "a third try would cross the line");
        assert_eq!(turn_of(&talk, &turn).await["usage"]["steps"], 2);
        talk.client
            .post(&talk.path(&format!("/turns/{turn}/cancel")), &json!({}))
            .await
            .expect(200);
        let turn = turn_of(&talk, &turn).await;
        assert_eq!(
            (&turn["status"], &turn["usage"]["input_tokens"]),
            (&json!("cancelled"), &json!(200))
        );
        assert_eq!(spent(&web.server).await.calls, 2);
        web.stop().await;
    });
}

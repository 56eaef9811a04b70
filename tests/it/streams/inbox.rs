//! The inbox: what is pending, then what becomes of it.

use serde_json::json;

use super::{approval, through, types};
use crate::api_rest::{Talk, decision_of};
use crate::harness::on_both;
use crate::harness::script::guarded;
use hermes_server::model::principal::Scope;

const PATH: &str = "/v1/approvals/stream";

#[test]
fn everything_pending_comes_first_and_then_what_changes() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let mut first = Talk::new(&web, &client, &json!({})).await;
        let mut second = Talk::new(&web, &client, &json!({})).await;
        // A call that waits for its turn is asked about at once with the others.
        let script = format!("{}\n{}\n/then\n/say done", guarded("a"), guarded("b"));
        first.say(&script).await;
        let asked = first.asked().await;
        assert_eq!(asked.len(), 2);

        let mut inbox = client.stream(&web, PATH).await;
        let shown = through(&mut inbox, "stream.ready").await;
        assert_eq!(
            types(&shown),
            [
                "stream.hello",
                "approval.requested",
                "approval.requested",
                "stream.ready"
            ]
        );
        let pending = json!({"pending": 2});
        assert_eq!(shown[0].data["data"]["counts"], pending);
        assert_eq!(shown[3].data["data"]["counts"], pending);
        assert_eq!(shown[0].retry.as_deref(), Some("1000"));
        assert!(shown.iter().all(|frame| frame.id.is_none()), "there is no cursor");
        for (frame, asked) in shown[1..3].iter().zip(&asked) {
            assert_eq!(approval(frame), asked);
            assert_eq!(frame.data["session_id"], json!(first.session));
        }
        let listed = client.get("/v1/approvals?status=pending&limit=1").await.expect(200);
        assert_eq!((&listed["counts"], &listed["has_more"]), (&pending, &json!(true)));

        // In the order in which they are committed, whatever session they are of.
        client
            .post(&decision_of(&asked[1]), &json!({"choice": "deny"}))
            .await
            .expect(200);
        let resolved = inbox.until("approval.resolved").await;
        assert_eq!(approval(&resolved)["id"], asked[1]["id"]);
        assert_eq!(approval(&resolved)["status"], "denied");
        let other = second.ask(&guarded("c")).await;
        let requested = inbox.until("approval.requested").await;
        assert_eq!(approval(&requested), &other);
        assert!(requested.data["seq"].is_i64());
        let turn = other["turn_id"].as_str().unwrap();
        client
            .post(&second.path(&format!("/turns/{turn}/cancel")), &json!({}))
            .await
            .expect(200);
        let cancelled = inbox.until("approval.cancelled").await;
        assert_eq!(approval(&cancelled)["id"], other["id"]);
        client.delete(&first.path("")).await;
        let deleted = inbox.until("session.deleted").await;
        assert_eq!(deleted.data["data"]["session_id"], json!(first.session));
        let again = through(&mut client.stream(&web, PATH).await, "stream.ready").await;
        assert_eq!(types(&again), ["stream.hello", "stream.ready"]);
        assert_eq!(again[0].data["data"]["counts"]["pending"], 0);
        web.stop().await;
    });
}

#[test]
fn a_long_inbox_comes_whole() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let mut talk = Talk::new(&web, &client, &json!({})).await;
        let lines: Vec<String> = (0..40).map(|n| guarded(&format!("f{n}"))).collect();
        talk.say(&lines.join("\n")).await;
        let asked = talk.asked().await;
        let mut inbox = client.stream(&web, PATH).await;
        let shown = through(&mut inbox, "stream.ready").await;
        let ids: Vec<_> = shown[1..shown.len() - 1]
            .iter()
            .map(|frame| &approval(frame)["id"])
            .collect();
        let expected: Vec<_> = asked.iter().map(|asked| &asked["id"]).collect();
        assert_eq!(ids, expected);
        assert!(expected.len() > 32, "several pages: {}", expected.len());
        web.stop().await;
    });
}

#[test]
fn filters_leave_only_what_is_asked_for() {
    on_both(async |mut place| {
        place.config.server.heartbeat = std::time::Duration::from_millis(200);
        let web = place.serve().await;
        let client = web.owner().await;
        let mut first = Talk::new(&web, &client, &json!({})).await;
        let mut second = Talk::new(&web, &client, &json!({})).await;
        let one = first.ask(&guarded("a")).await;
        let two = second.ask(&guarded("b")).await;

        let mut of_session = client
            .stream(&web, &format!("{PATH}?session_id={}", second.session))
            .await;
        let shown = through(&mut of_session, "stream.ready").await;
        assert_eq!(approval(&shown[1])["id"], two["id"]);
        assert_eq!(
            (shown.len(), &shown[0].data["data"]["counts"]["pending"]),
            (3, &json!(1))
        );
        let mut denied = client.stream(&web, &format!("{PATH}?status=denied")).await;
        assert_eq!(
            types(&through(&mut denied, "stream.ready").await),
            ["stream.hello", "stream.ready"]
        );
        let mut requests = client
            .stream(&web, &format!("{PATH}?types=approval.requested&deltas=off"))
            .await;
        assert_eq!(through(&mut requests, "stream.ready").await.len(), 4);

        client
            .post(&decision_of(&one), &json!({"choice": "once"}))
            .await
            .expect(200);
        client
            .post(&decision_of(&two), &json!({"choice": "deny"}))
            .await
            .expect(200);
        let frame = of_session.until("approval.resolved").await;
        assert_eq!(approval(&frame)["id"], two["id"], "nothing of the other session");
        let frame = denied.until("approval.resolved").await;
        assert_eq!(approval(&frame)["id"], two["id"], "nothing that was allowed");
        let frames = through(&mut requests, "heartbeat").await;
        assert_eq!(types(&frames), ["heartbeat"], "nothing that was resolved");

        for (query, parameter) in [
            ("types=turn.started", "types"),
            ("types=", "types"),
            ("status=done", "status"),
            ("after=1.0", "after"),
        ] {
            let problem = client
                .get(&format!("{PATH}?{query}"))
                .await
                .problem(400, "invalid_request");
            assert_eq!(problem["errors"][0]["pointer"], parameter, "{problem}");
        }
        let problem = client
            .get(&format!("{PATH}?types=approval.done"))
            .await
            .problem(400, "invalid_request");
        let detail = problem["errors"][0]["detail"].as_str().unwrap();
        assert!(
            detail.contains("`approval.done`") && detail.contains("approval.expired"),
            "{detail}"
        );
        web.stop().await;
    });
}

/// A heartbeat carries the count, so that a badge is right without any change.
#[test]
fn a_colleague_sees_nothing_and_whoever_sees_the_tenant_sees_all() {
    on_both(async |mut place| {
        place.config.server.heartbeat = std::time::Duration::from_millis(100);
        let web = place.serve().await;
        let rights = [
            Scope::SessionsRead,
            Scope::SessionsWrite,
            Scope::TurnsWrite,
            Scope::ApprovalsDecide,
        ];
        let ada = web.user("ada", &rights).await;
        let colleague = web.user("bob", &rights).await;
        let manager = web.user("eve", &[Scope::SessionsRead, Scope::TenantAll]).await;
        let mut theirs = colleague.stream(&web, PATH).await;
        let mut all = manager.stream(&web, PATH).await;
        let mut lists = colleague.stream(&web, "/v1/stream").await;
        for events in [&mut theirs, &mut all] {
            through(events, "stream.ready").await;
        }
        let mut talk = Talk::new(&web, &ada, &json!({"title": "private"})).await;
        let asked = talk.ask(&guarded("a")).await;
        ada.post(&decision_of(&asked), &json!({"choice": "deny"}))
            .await
            .expect(200);
        assert_eq!(approval(&all.until("approval.requested").await)["id"], asked["id"]);
        assert_eq!(approval(&all.until("approval.resolved").await)["id"], asked["id"]);
        talk.events.until("turn.completed").await;
        let mut again = talk.ask(&guarded("b")).await;
        all.until("approval.requested").await;
        loop {
            let beat = all.until("heartbeat").await;
            if beat.data["data"]["counts"]["pending"] == 1 {
                break;
            }
        }
        // Something of their own comes, and nothing came before it.
        let mut own = Talk::new(&web, &colleague, &json!({})).await;
        let mine = own.ask(&guarded("c")).await;
        let frames = through(&mut theirs, "approval.requested").await;
        assert_eq!(types(&frames), ["approval.requested"]);
        assert_eq!(approval(&frames[0])["id"], mine["id"]);
        let frames = through(&mut lists, "approval.requested").await;
        assert!(
            frames.iter().all(|frame| !frame.data.to_string().contains("private")),
            "{frames:?}"
        );
        assert_eq!(types(&frames)[..2], ["stream.hello", "session.created"]);
        again["status"].take();
        web.stop().await;
    });
}

//! Field cases about where commands run.

use serde_json::json;

use super::{ended, messages, results, talk};
use crate::harness::on_both;
use crate::harness::script::terminal;

/// The case wants the grandchild tracked. A command in the foreground leaves
/// nothing behind here, so it is refused before it starts, with the reason.
#[test]
fn fc_082_a_command_that_would_leave_a_process_behind_is_answered_at_once() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = talk(&web, json!({})).await;
        let left = "setsid sh -c 'echo $$ > pid; sleep 300' > o.log 2>&1 < /dev/null & disown";
        let script = format!("{}\n/then\n/say started", terminal(left));
        let turn = talk.path(&format!("/turns/{}", talk.say(&script).await));
        // It is waited for far less long than the 300 s.
        assert_eq!(ended(&talk, &turn).await["status"], "completed");
        let messages = messages(&talk).await;
        let told = results(&messages)[0];
        assert!(told.contains("detaches a process by itself"), "{told}");
        assert!(!web.server.workspace(talk.session.parse().unwrap()).join("pid").exists());
        web.stop().await;
    });
}

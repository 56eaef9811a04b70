//! The walk-through with curl.

use std::path::Path;

use tokio::process::Command;

use super::super::program::{Program, err, out};
use super::workshop::{is_here, talk};
use crate::harness::Place;

#[tokio::test]
async fn the_curl_walk_through_does_the_main_job() {
    if !is_here("curl", "curl", &["--version"]).await || !is_here("bash", "bash", &["--version"]).await {
        return;
    }
    let place = Place::sqlite();
    let server = Program::start(&place).await;
    for (choice, outcome) in [("once", "tool_call.completed"), ("deny", "tool_call.denied")] {
        let mut script = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/curl.sh"));
        script.current_dir(&place.directory).arg(choice);
        let walked = talk(&server, script, "").await;
        let said = out(&walked);
        assert!(walked.status.success(), "{said}{}", err(&walked));
        assert_eq!(err(&walked), "");
        let steps = [
            "\nses_",
            "\nHello from the model.\n",
            " waits for apr_",
            "== the decision\n{\"id\":\"apr_",
            "\nevent: approval.requested\n",
            &format!("\nevent: {outcome}\n"),
            "\nevent: turn.completed\n",
            "== the transcript\n{\"data\":[{\"id\":\"msg_",
            "That was all.",
        ];
        let mut rest = said;
        for step in steps {
            let Some((_, behind)) = rest.split_once(step) else {
                panic!("no {step:?} where it should be in {said}");
            };
            rest = behind;
        }
    }
    server.stop().await;
}

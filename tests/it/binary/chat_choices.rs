//! What `chat` asks beside calls: more for a budget that is used up, and what
//! becomes of a call whose outcome nobody knows.

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::chat::{chat, session};
use super::program::{Program, all_die, child_runs, err, lasting, mark, out, through, workspace};
use crate::harness::{Place, lines};

#[tokio::test]
async fn more_for_a_budget_is_asked_in_the_terminal() {
    let place = Place::sqlite();
    let server = Program::start_with(&place, &[("HERMES__BUDGETS__SESSION__TOKENS", "1")]).await;
    let to = (server.base.as_str(), server.key.as_str());
    let typed = "/say one\n/say two\nonce\ngrant_more\n/say three\nstop\n";
    let said = chat(&place, to, &[], typed).await;
    assert_eq!(said.status.code(), Some(0), "{}", err(&said));
    let ended = "[The turn ended here: its budget is used up.]";
    assert_eq!(out(&said), format!("one\ntwo\n{ended}\n"), "{}", err(&said));
    assert!(err(&said).contains("budget: session used "), "{}", err(&said));
    assert_eq!(err(&said).matches("grant_more / stop?").count(), 3, "{}", err(&said));

    let id = session(&said);
    let left = chat(&place, to, &["--session", &id, "-q", "/say four"], "").await;
    assert_eq!((left.status.code(), out(&left)), (Some(3), ""), "{}", err(&left));
    assert!(err(&left).contains("{\"choice\": \"grant_more\"}"), "{}", err(&left));
    server.stop().await;
}

/// Passes connections on to whatever server there is at the time.
async fn passed_on(listener: TcpListener, target: watch::Receiver<String>) {
    loop {
        let (mut client, _) = listener.accept().await.unwrap();
        let address = target.borrow().clone();
        tokio::spawn(async move {
            // Where nobody listens the client is told by the end of the connection.
            if let Ok(mut server) = TcpStream::connect(address).await {
                let _ended = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            }
        });
    }
}

#[tokio::test]
async fn what_becomes_of_a_call_that_a_crash_broke_off_is_asked_in_the_terminal() {
    let place = Place::sqlite();
    let ask = [("HERMES__APPROVALS__RECOVERY", "ask")];
    let dying = Program::start_with(&place, &ask).await;
    let id = dying.session().await;
    let address = |server: &Program| server.base.trim_start_matches("http://").to_owned();
    let (targets, target) = watch::channel(address(&dying));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (base, key) = (format!("http://{}", listener.local_addr().unwrap()), dying.key.clone());
    let proxy = tokio::spawn(passed_on(listener, target));
    let mark = mark(&place);
    let command = format!("echo ran >> runs; {}", lasting(&mark));
    let typed = format!("/tool terminal {{\"command\": \"{command}\"}}\\\n/then\\\n/say went on\nskip\n");
    let args = ["--session", id.as_str()];
    let talking = chat(&place, (&base, &key), &args, &typed);
    let dying = async {
        let mut events = dying.follow(&id, "0.0").await;
        through(&mut events, "tool_call.output_delta").await;
        let _input = child_runs(&place, &id, &mark).await;
        dying.kill().await;
        all_die(&mark).await;
        let next = Program::start_with(&place, &ask).await;
        targets.send(address(&next)).unwrap();
        next
    };
    let (said, server) = tokio::join!(talking, dying);
    assert_eq!(said.status.code(), Some(0), "{}", err(&said));
    assert_eq!(out(&said), "went on\n", "{}", err(&said));
    assert!(err(&said).contains("retry / skip / mark_done?"), "{}", err(&said));
    assert_eq!(lines(&workspace(&place, &id).join("runs")), 1, "it is not run again");
    proxy.abort();
    server.stop().await;
}

//! Starts that must not happen, and what they say.

use std::process::Output;

use super::program::{Program, binary, data_dir, err, finished, run};
use crate::harness::{Place, on_both};

#[tokio::test]
async fn a_second_process_on_the_same_embedded_database_is_refused() {
    let place = Place::sqlite();
    let program = Program::start(&place).await;
    let second = run(&place, &["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"]).await;
    assert_eq!(second.status.code(), Some(1));
    let said = err(&second);
    assert!(
        said.contains("data/hermes.db.lock` is in use by another process"),
        "{said}"
    );
    assert!(
        said.contains(&format!("(process {})", program.pid().as_raw_nonzero())),
        "{said}"
    );
    assert_eq!(program.get("/health/ready").await.status, 200);
    program.stop().await;
}

/// FC-088. The case also wants an explicit flag for a start on loopback without
/// a key; here there is no start without a key at all: the first one makes it.
#[tokio::test]
async fn an_address_beyond_this_machine_needs_a_credential() {
    let place = Place::sqlite();
    let args = ["serve", "--listen", "0.0.0.0:0", "--data-dir", "data"];
    let refused = run(&place, &args).await;
    assert_eq!(refused.status.code(), Some(2));
    let said = err(&refused);
    assert!(
        said.contains("`server.listen`") && said.contains("HERMES_API_KEY") && said.contains("`auth.jwt`"),
        "{said}"
    );
    assert!(!data_dir(&place).exists());
}

#[tokio::test]
async fn a_wrong_configuration_names_every_key_its_value_and_what_is_allowed() {
    let place = Place::sqlite();
    std::fs::write(
        place.directory.join("hermes.yaml"),
        "log:\n  level: loud\nserver:\n  heartbeat_seconds: 99\n  lisen: x\n",
    )
    .unwrap();
    let refused = run(&place, &["--data-dir", "data"]).await;
    assert_eq!(refused.status.code(), Some(2));
    let said = err(&refused);
    for part in [
        "`log.level`: `loud` is not allowed; allowed: error, warn, info, debug, trace (hermes.yaml:2:",
        "`server.heartbeat_seconds`: `99` is not allowed; allowed: a whole number from 2 to 30 (hermes.yaml:4:",
        "`server.lisen`",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert!(!data_dir(&place).exists());
}

#[tokio::test]
async fn a_port_that_is_taken_stops_the_start_before_the_store_is_touched() {
    let place = Place::sqlite();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = run(&place, &["--listen", &address, "--data-dir", "data"]).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        err(&refused).starts_with(&format!("hermes-server: cannot listen on `{address}`: ")),
        "{}",
        err(&refused)
    );
    assert!(!data_dir(&place).exists());
}

#[tokio::test]
async fn a_database_that_cannot_be_reached_is_named_without_its_password() {
    let place = Place::sqlite();
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for url in [
        format!("postgres://ada:s3cret@{free}/hermes"),
        "postgres://ada:s3cret@[/hermes".to_owned(),
        "mysql://ada:s3cret@localhost/hermes".to_owned(),
    ] {
        let refused = started_with_database(&place, &url).await;
        let said = err(&refused);
        assert!(!refused.status.success() && !said.is_empty());
        assert!(!said.contains("s3cret"), "{said}");
    }
}

async fn started_with_database(place: &Place, url: &str) -> Output {
    let mut command = binary();
    command
        .current_dir(&place.directory)
        .args(["--listen", "127.0.0.1:0", "--data-dir", "data"]);
    finished(command.env("DATABASE_URL", url)).await
}

#[test]
fn keys_of_the_original_that_mean_nothing_here_are_named_at_the_start() {
    on_both(|place| async move {
        std::fs::write(place.directory.join("hermes.yaml"), "display:\n  skin: dark\n").unwrap();
        Program::start(&place).await.stop().await;
        let log = super::program::log(&place);
        assert!(log.contains("mean nothing here") && log.contains("display"), "{log}");
    });
}

#[tokio::test]
async fn a_database_that_is_not_there_is_named_by_its_key() {
    let place = Place::sqlite();
    let url = "postgres://nobody:secret@127.0.0.1:1/none";
    let refused = run(&place, &["serve", "--listen", "127.0.0.1:0", "--database-url", url]).await;
    assert_eq!(refused.status.code(), Some(1));
    let said = err(&refused);
    assert!(
        said.contains("`store.url` (DATABASE_URL)") && !said.contains("secret"),
        "{said}"
    );
}

#[tokio::test]
async fn a_key_set_that_cannot_be_used_stops_the_start_before_anything_is_made() {
    let place = Place::sqlite();
    let mut command = binary();
    command
        .current_dir(&place.directory)
        .env("HERMES__AUTH__JWT__JWKS_FILE", "nowhere.json")
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"]);
    let refused = finished(&mut command).await;
    assert_ne!(refused.status.code(), Some(0));
    assert!(err(&refused).contains("`auth.jwt.jwks_file`"), "{}", err(&refused));
    assert!(!data_dir(&place).join("hermes.db").exists());
}

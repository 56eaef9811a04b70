//! The least that can be had: a server on the same framework that streams the
//! same words and does nothing else, and single commits of one row.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use anyhow::Result;
use axum::Router;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use bytes::Bytes;
use futures::{StreamExt, stream};
use hermes_server::base::Clock;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Executor};

use crate::server::Place;

const ROW: usize = 400;
const COMMITS: usize = 200;

/// Streams as many words as `/tokens` asks for as so many events, at once.
pub(crate) async fn serve(address: &str) -> Result<()> {
    let routes = Router::new()
        .route("/health/ready", get(async || "ok"))
        .route("/v1/sessions", post(session))
        .route("/v1/sessions/{id}/turns", post(turn));
    let listener = tokio::net::TcpListener::bind(address).await?.tap_io(|stream| {
        // Small frames leave at once; a socket that refuses the option still works.
        let _refused = stream.set_nodelay(true);
    });
    Ok(axum::serve(listener, routes).await?)
}

async fn session() -> axum::Json<serde_json::Value> {
    axum::Json(serde_json::json!({"id": format!("{:032x}", Clock::system().uuid())}))
}

async fn turn(body: Bytes) -> impl axum::response::IntoResponse {
    let asked = std::str::from_utf8(&body)
        .ok()
        .and_then(|text| text.split_once("/tokens "));
    let asked = asked.and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    let words = (1..=asked.unwrap_or(50_u32)).map(|number| frame("message.delta", &format!("word{number} ")));
    let all = words.chain([frame("turn.completed", "")]);
    let body = Body::from_stream(stream::iter(all).map(Ok::<_, Infallible>));
    ([(CONTENT_TYPE, "text/event-stream")], body)
}

fn frame(event: &str, text: &str) -> String {
    let data = serde_json::json!({"type": event, "data": {"text": text}});
    format!("event: {event}\ndata: {data}\n\n")
}

/// The time from the start of a shell to its end, without any wall around it.
pub(crate) async fn shells() -> Result<Vec<Duration>> {
    let mut took = Vec::with_capacity(COMMITS);
    for _ in 0..COMMITS {
        let began = Instant::now();
        let mut shell = tokio::process::Command::new("/bin/bash");
        shell.args(["-c", "true"]).stdin(std::process::Stdio::null());
        shell.output().await?;
        took.push(began.elapsed());
    }
    Ok(took)
}

/// The time of one commit of one row, each synced to the disk.
pub(crate) async fn commits(place: &Place) -> Result<Vec<Duration>> {
    match &place.url {
        None => {
            let options = SqliteConnectOptions::new()
                .filename(place.directory.join("floor.db"))
                .create_if_missing(true)
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Full);
            let mut link = options.connect().await?;
            link.execute("create table floor (row text not null)").await?;
            let mut took = Vec::with_capacity(COMMITS);
            for _ in 0..COMMITS {
                let began = Instant::now();
                sqlx::query("insert into floor (row) values ($1)")
                    .bind("x".repeat(ROW))
                    .execute(&mut link)
                    .await?;
                took.push(began.elapsed());
            }
            link.close().await?;
            Ok(took)
        }
        Some(url) => {
            let mut link = sqlx::PgConnection::connect(url).await?;
            link.execute("create table floor (row text not null)").await?;
            let mut took = Vec::with_capacity(COMMITS);
            for _ in 0..COMMITS {
                let began = Instant::now();
                sqlx::query("insert into floor (row) values ($1)")
                    .bind("x".repeat(ROW))
                    .execute(&mut link)
                    .await?;
                took.push(began.elapsed());
            }
            link.execute("drop table floor").await?;
            link.close().await?;
            Ok(took)
        }
    }
}

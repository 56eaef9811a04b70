//! What is held costs: streams of sessions at rest, turns that wait for the model,
//! turns that wait for a person.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::probe;
use crate::report::millis;
use crate::scenes::{SETTLE, Scene};
use crate::server::{Database, Place, Server};
use crate::tools::ASKS;

const HELD: &str = "/sleep 600000";

impl Scene<'_> {
    /// What is held costs; each in a server of its own, after as many that
    /// warmed it up.
    pub(crate) async fn memory(&mut self) -> Result<()> {
        let held = self.size.held;
        let server = Server::start(self.binary, self.place).await?;
        let sessions = server.client.sessions(held).await?;
        let mut streams = Vec::new();
        for session in sessions.iter().take(held / 10) {
            streams.push(server.client.idle_stream(session).await?);
        }
        let before = self.settled(&server).await?;
        for session in sessions.iter().skip(held / 10) {
            streams.push(server.client.idle_stream(session).await?);
        }
        self.per_one("idle stream", &server, before, held - held / 10).await?;
        let cpu = probe::cpu(server.pid())?;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let cpu = millis(probe::cpu(server.pid())?.saturating_sub(cpu));
        self.add(format!("CPU of {held} idle streams"), "% of one", cpu / 100.0);
        drop(streams);
        server.stop().await?;

        let server = Server::start(self.binary, self.place).await?;
        let mut turns = Vec::new();
        for session in sessions.iter().take(held / 10) {
            turns.push(server.client.held_turn(session, HELD).await?);
        }
        let before = self.settled(&server).await?;
        for session in sessions.iter().skip(held / 10) {
            turns.push(server.client.held_turn(session, HELD).await?);
        }
        self.per_one("held turn with its stream", &server, before, held - held / 10)
            .await?;
        server.stop().await?;
        drop(turns);
        self.parked().await
    }

    async fn parked(&mut self) -> Result<()> {
        // The held turns above are taken over by the next start; a place of its
        // own keeps them out of the figures.
        let place = Place::new(&match &self.place.url {
            None => Database::Sqlite,
            Some(url) => Database::Postgres(url.clone()),
        })
        .await?;
        let held = self.size.held;
        let server = Server::start(self.binary, &place).await?;
        let sessions = server.client.sessions(2 * held).await?;
        let (warm, rest) = sessions.split_at(held);
        for (sessions, counts) in [(warm, false), (rest, true)] {
            let before = self.settled(&server).await?;
            for session in sessions {
                let status = server.client.rest(session, ASKS).await?;
                if status != "waiting" {
                    bail!("a turn that asks is `{status}`");
                }
            }
            if counts {
                self.per_one("parked approval", &server, before, held).await?;
            }
        }
        server.stop().await
    }

    async fn settled(&self, server: &Server) -> Result<f64> {
        tokio::time::sleep(SETTLE).await;
        probe::memory(server.pid())
    }

    async fn per_one(&mut self, what: &str, server: &Server, before: f64, count: usize) -> Result<()> {
        let after = self.settled(server).await?;
        self.add(
            format!("memory per {what}"),
            "kB",
            (after - before) / count as f64 / 1e3,
        );
        Ok(())
    }
}

//! What is measured, in order: the start, one turn at a time, many at once,
//! tools, and what streams, held turns and parked approvals cost in memory.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::report::{Report, millis, quantile};
use crate::server::{Database, Place, Server};
use crate::{commits, floor, probe};

/// How much of everything.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// Turns of a scene with one turn at a time.
    alone: usize,
    /// Turns of a scene with several at once.
    together: usize,
    starts: usize,
    /// Streams, held turns and approvals that are there at once.
    held: usize,
}

impl Size {
    pub(crate) const FULL: Self = Self {
        alone: 200,
        together: 2000,
        starts: 7,
        held: 500,
    };
    pub(crate) const QUICK: Self = Self {
        alone: 20,
        together: 200,
        starts: 3,
        held: 50,
    };
}

const MIB: f64 = 1024.0 * 1024.0;
/// Until memory that a burst needed is given back.
const SETTLE: Duration = Duration::from_millis(1500);
const TEXT: &str = "/tokens 50 0";
/// Five rounds of one command each.
const ROUNDS: usize = 5;
const TOOLS: &str = "/tool terminal {\"command\": \"echo 1\"}\n/then\n/tool terminal {\"command\": \"echo 2\"}\n/then\n\
    /tool terminal {\"command\": \"echo 3\"}\n/then\n/tool terminal {\"command\": \"echo 4\"}\n/then\n\
    /tool terminal {\"command\": \"echo 5\"}\n/then\n/say done";
const HELD: &str = "/sleep 600000";
const ASKS: &str = "/tool terminal {\"command\": \"rm -rf build\"}";

/// One store's server, where it stands, and where its figures go.
struct Scene<'a> {
    binary: &'a Path,
    place: &'a Place,
    store: &'static str,
    size: Size,
    report: &'a mut Report,
}

pub(crate) async fn all(binary: &Path, database: &Database, size: Size, report: &mut Report) -> Result<()> {
    let place = Place::new(database).await?;
    let mut scene = Scene {
        binary,
        place: &place,
        store: database.name(),
        size,
        report,
    };
    scene.starts().await?;
    scene.turns().await?;
    scene.memory().await?;
    scene.commits(database).await
}

impl Scene<'_> {
    fn add(&mut self, measure: impl Into<String>, unit: &'static str, value: f64) {
        self.report.add(self.store, measure, unit, value);
    }

    async fn starts(&mut self) -> Result<()> {
        let first = Server::start(self.binary, self.place).await?;
        self.add("start to healthy, first start", "ms", millis(first.healthy_after));
        first.stop().await?;
        let mut took = Vec::new();
        for _ in 0..self.size.starts {
            let server = Server::start(self.binary, self.place).await?;
            took.push(server.healthy_after);
            server.stop().await?;
        }
        self.add("start to healthy, p50", "ms", quantile(took.into_iter(), 0.5));
        Ok(())
    }

    async fn turns(&mut self) -> Result<()> {
        let server = Server::start(self.binary, self.place).await?;
        let floor = Server::start_floor(self.place).await?;
        tokio::time::sleep(SETTLE).await;
        self.add("memory idle (PSS)", "MiB", probe::memory(server.pid())? / MIB);
        self.add("threads idle", "", probe::threads(server.pid())? as f64);
        self.alone(&server, &floor).await?;
        for at_once in [1, 8, 64, 256] {
            self.together(&server, &floor, at_once).await?;
        }
        self.tools(&server).await?;
        tokio::time::sleep(SETTLE).await;
        self.add(
            "memory after these turns (PSS)",
            "MiB",
            probe::memory(server.pid())? / MIB,
        );
        server.stop().await?;
        floor.stop().await
    }

    /// One turn at a time: what the server adds to a model that takes no time.
    async fn alone(&mut self, server: &Server, floor: &Server) -> Result<()> {
        let count = self.size.alone;
        let [mut ours, mut least] = [Vec::new(), Vec::new()];
        // In turn, so that a noisy moment hits both; the first round is warm-up.
        for round in 0..5 {
            for (process, turns) in [(floor, &mut least), (server, &mut ours)] {
                let sessions = process.client.sessions(count / 4).await?;
                let load = process.client.load(TEXT, 1, sessions).await?;
                if 0 < round {
                    turns.extend(load.turns);
                }
            }
        }
        let commits = floor::commits(self.place).await?;
        self.add(
            "floor: one commit of one row, p50",
            "ms",
            quantile(commits.into_iter(), 0.5),
        );
        let first_event = quantile(ours.iter().map(|turn| turn.first_event), 0.5);
        self.add("POST to first event, p50", "ms", first_event);
        let first_delta = quantile(ours.iter().map(|turn| turn.first_delta), 0.5);
        self.add("POST to first delta, p50", "ms", first_delta);
        for (name, part) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
            let [ours, least] = [&ours, &least].map(|turns| quantile(turns.iter().map(|turn| turn.whole), part));
            self.report
                .against(self.store, format!("whole turn, {name}"), "ms", ours, Some(least));
        }
        Ok(())
    }

    async fn together(&mut self, server: &Server, floor: &Server, at_once: usize) -> Result<()> {
        let count = if at_once == 1 {
            self.size.alone
        } else {
            self.size.together
        };
        let mut figures = Vec::new();
        for process in [floor, server] {
            let sessions = process.client.sessions(count).await?;
            let before = probe::cpu(process.pid())?;
            let load = process.client.load(TEXT, at_once, sessions).await?;
            let cpu = probe::cpu(process.pid())?.saturating_sub(before);
            figures.push([
                count as f64 / load.took.as_secs_f64(),
                quantile(load.turns.iter().map(|turn| turn.whole), 0.5),
                quantile(load.turns.iter().map(|turn| turn.whole), 0.99),
                millis(cpu) / count as f64,
            ]);
        }
        let [floor, ours] = figures.as_slice() else {
            bail!("two servers")
        };
        let names = [
            ("turns", "1/s"),
            ("turn p50", "ms"),
            ("turn p99", "ms"),
            ("CPU per turn", "ms"),
        ];
        for ((name, unit), (ours, floor)) in names.into_iter().zip(ours.iter().zip(floor)) {
            let measure = format!("{at_once} at once: {name}");
            self.report.against(self.store, measure, unit, *ours, Some(*floor));
        }
        Ok(())
    }

    async fn tools(&mut self, server: &Server) -> Result<()> {
        let count = (self.size.alone / 4).max(8);
        for at_once in [1, 8] {
            let sessions = server.client.sessions(count).await?;
            let load = server.client.load(TOOLS, at_once, sessions).await?;
            let rounds = (count * ROUNDS) as f64 / load.took.as_secs_f64();
            self.add(format!("{at_once} at once: tool rounds (shell command)"), "1/s", rounds);
        }
        Ok(())
    }

    /// What is held costs; each in a server of its own, after as many that
    /// warmed it up.
    async fn memory(&mut self) -> Result<()> {
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

    async fn commits(&mut self, database: &Database) -> Result<()> {
        let place = Place::new(database).await?;
        let text = commits::of_turn(self.binary, &place, TEXT).await?;
        self.add("commits of a text turn", "", text as f64);
        let tools = commits::of_turn(self.binary, &place, TOOLS).await?;
        self.add("commits of a turn with five tool rounds", "", tools as f64);
        Ok(())
    }
}

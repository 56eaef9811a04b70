//! What is measured, in order: the start, one turn at a time, many at once;
//! then tools and memory, which have files of their own.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::drive::Timed;
use crate::report::{Report, millis, quantile};
use crate::server::{Database, Place, Server};
use crate::{commits, floor, probe, tools};

/// How much of everything.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// Turns of a scene with one turn at a time.
    pub(crate) alone: usize,
    /// Turns of a scene with several at once.
    together: usize,
    starts: usize,
    /// Streams, held turns and approvals that are there at once.
    pub(crate) held: usize,
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

pub(crate) const MIB: f64 = 1024.0 * 1024.0;
/// Until memory that a burst needed is given back.
pub(crate) const SETTLE: Duration = Duration::from_millis(1500);
pub(crate) const TEXT: &str = "/tokens 50 0";
const LONG: &str = "/tokens 1000 0";
/// Five seconds of 20 words a second.
const PACED: &str = "/tokens 100 20";

/// One store's server, where it stands, and where its figures go.
pub(crate) struct Scene<'a> {
    pub binary: &'a Path,
    pub place: &'a Place,
    pub store: &'static str,
    pub size: Size,
    pub report: &'a mut Report,
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
    pub(crate) fn add(&mut self, measure: impl Into<String>, unit: &'static str, value: f64) {
        self.report.add(self.store, measure, unit, value);
    }

    pub(crate) fn against(&mut self, measure: impl Into<String>, unit: &'static str, ours: f64, floor: f64) {
        self.report.against(self.store, measure, unit, ours, Some(floor));
    }

    async fn starts(&mut self) -> Result<()> {
        let first = Server::start(self.binary, self.place).await?;
        self.add("start to healthy, first start", "ms", millis(first.healthy_after));
        first.stop().await?;
        let [mut healthy, mut least, mut finished] = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..self.size.starts {
            let floor = Server::start_floor(self.place).await?;
            least.push(floor.healthy_after);
            floor.stop().await?;
            let server = Server::start(self.binary, self.place).await?;
            healthy.push(server.healthy_after);
            let session = server.client.session().await?;
            server.client.turn(&session, TEXT).await?;
            finished.push(server.began.elapsed());
            server.stop().await?;
        }
        let [healthy, least, finished] = [healthy, least, finished].map(|all| quantile(all.into_iter(), 0.5));
        self.against("start to healthy, p50", "ms", healthy, least);
        self.add("start to first finished turn, p50", "ms", finished);
        Ok(())
    }

    async fn turns(&mut self) -> Result<()> {
        let server = Server::start(self.binary, self.place).await?;
        let floor = Server::start_floor(self.place).await?;
        tokio::time::sleep(SETTLE).await;
        let [ours, least] = [probe::memory(server.pid())?, probe::memory(floor.pid())?];
        self.against("memory idle (PSS)", "MiB", ours / MIB, least / MIB);
        let [ours, least] = [probe::resident(server.pid())?, probe::resident(floor.pid())?];
        self.against("memory idle (resident)", "MiB", ours / MIB, least / MIB);
        self.add("threads idle", "", probe::threads(server.pid())? as f64);
        let commit = self.alone(&server, &floor).await?;
        for at_once in [1, 8, 64, 256] {
            self.together(&server, &floor, at_once).await?;
        }
        self.long(&server, &floor).await?;
        self.paced(&server).await?;
        self.tools(&server, commit).await?;
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
    /// Answers what one commit takes.
    async fn alone(&mut self, server: &Server, floor: &Server) -> Result<f64> {
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
        let commit = quantile(floor::commits(self.place).await?.into_iter(), 0.5);
        self.add("floor: one commit of one row, p50", "ms", commit);
        type First = fn(&Timed) -> Duration;
        let firsts: [(&str, First); 2] = [
            ("event", |turn: &Timed| turn.first_event),
            ("delta", |turn: &Timed| turn.first_delta),
        ];
        for (name, first) in firsts {
            let [ours, least] = [&ours, &least].map(|turns| quantile(turns.iter().map(first), 0.5));
            self.against(format!("POST to first {name}, p50"), "ms", ours, least);
        }
        for (name, part) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
            let [ours, least] = [&ours, &least].map(|turns| quantile(turns.iter().map(|turn| turn.whole), part));
            self.against(format!("whole turn, {name}"), "ms", ours, least);
        }
        let whole = quantile(ours.iter().map(|turn| turn.whole), 0.5);
        self.against("whole turn, p50, beside its two commits", "ms", whole, 2.0 * commit);
        Ok(commit)
    }

    async fn together(&mut self, server: &Server, floor: &Server, at_once: usize) -> Result<()> {
        let count = if at_once == 1 {
            self.size.alone
        } else {
            self.size.together
        };
        let mut figures = Vec::new();
        for process in [floor, server] {
            let began = Instant::now();
            let sessions = process.client.sessions(count).await?;
            let made = count as f64 / began.elapsed().as_secs_f64();
            let before = probe::cpu(process.pid())?;
            let load = process.client.load(TEXT, at_once, sessions).await?;
            let cpu = probe::cpu(process.pid())?.saturating_sub(before);
            figures.push([
                count as f64 / load.took.as_secs_f64(),
                quantile(load.turns.iter().map(|turn| turn.whole), 0.5),
                quantile(load.turns.iter().map(|turn| turn.whole), 0.99),
                millis(cpu) / count as f64,
                made,
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
            self.against(format!("{at_once} at once: {name}"), unit, *ours, *floor);
        }
        if let ([.., ours], [.., floor], 64) = (ours, floor, at_once) {
            self.against("sessions created (16 at once)", "1/s", *ours, *floor);
        }
        Ok(())
    }

    /// A thousand words at once.
    async fn long(&mut self, server: &Server, floor: &Server) -> Result<()> {
        let count = (self.size.alone / 4).max(8);
        let mut figures = Vec::new();
        for process in [floor, server] {
            let sessions = process.client.sessions(count).await?;
            let before = probe::cpu(process.pid())?;
            let load = process.client.load(LONG, 1, sessions).await?;
            let cpu = probe::cpu(process.pid())?.saturating_sub(before);
            let whole = quantile(load.turns.iter().map(|turn| turn.whole), 0.5);
            figures.push([whole, 1e3 * millis(cpu) / count as f64 / 1e3]);
        }
        if let [[least, least_cpu], [ours, cpu]] = figures.as_slice() {
            self.against("1000 words at once: whole turn, p50", "ms", *ours, *least);
            self.against("1000 words at once: CPU per delta", "µs", *cpu, *least_cpu);
        }
        Ok(())
    }

    /// Many streams of 20 words a second: whether each word comes when it should.
    async fn paced(&mut self, server: &Server) -> Result<()> {
        let count = self.size.held;
        let sessions = server.client.sessions(count).await?;
        let before = probe::cpu(server.pid())?;
        let streams = sessions.iter().map(|session| server.client.gaps(session, PACED));
        let gaps = futures::future::try_join_all(streams).await?.concat();
        let cpu = millis(probe::cpu(server.pid())?.saturating_sub(before));
        let name = format!("{count} streams of 20 words/s");
        self.add(
            format!("{name}: gap p50 (50 meant)"),
            "ms",
            quantile(gaps.iter().copied(), 0.5),
        );
        self.add(format!("{name}: gap p99"), "ms", quantile(gaps.iter().copied(), 0.99));
        self.add(format!("{name}: CPU per delta"), "µs", 1e3 * cpu / (count * 100) as f64);
        Ok(())
    }

    async fn commits(&mut self, database: &Database) -> Result<()> {
        let place = Place::new(database).await?;
        let text = commits::of_turn(self.binary, &place, TEXT).await?;
        let rounds = commits::of_turn(self.binary, &place, tools::ROUNDS).await?;
        for (what, cost) in [("a text turn", text), ("a turn with five tool rounds", rounds)] {
            self.add(format!("commits of {what}"), "", cost.commits as f64);
            self.add(
                format!("round trips to the database of {what}"),
                "",
                cost.round_trips as f64,
            );
        }
        Ok(())
    }
}

//! How many COMMITs and round trips a turn costs: the server inside this process,
//! where the store can be asked.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hermes_server::app::{App, Surroundings};
use hermes_server::base::{Clock, Secret};
use hermes_server::config::{Config, Sources};
use hermes_server::live::cursor::Cursor;
use hermes_server::live::follow::Follow;
use hermes_server::model::event::EventBody;
use hermes_server::model::message::Part;
use hermes_server::model::turn::{OnBusy, TurnOptions};
use hermes_server::turn::requests::{CreateSession, NewTurn};

use crate::server::Place;

/// What a turn asked of the store.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub commits: u64,
    pub round_trips: u64,
}

/// The cost of one turn with this input.
pub(crate) async fn of_turn(binary: &Path, place: &Place, input: &str) -> Result<Cost> {
    let mut config = Config::load(&Sources::default())?;
    config.server.data_dir = place.directory.join("data");
    config.store.url = place.url.clone().map(Secret::new);
    let around = Surroundings {
        clock: Clock::system(),
        probe: None,
        exec_program: PathBuf::from(binary),
        environment: Vec::new(),
    };
    let app = App::start(&config, around).await?;
    let counted = counted(&app, input).await;
    app.shutdown(Duration::from_secs(5)).await;
    counted
}

async fn counted(app: &App, input: &str) -> Result<Cost> {
    let engine = app.engine();
    let scope = engine.store().scope(app.default_tenant());
    let session = engine.create_session(&scope, session()).await?.id;
    // What the process does on its own, renewing its lease say, comes rarely;
    // the lowest of a few turns has none of it.
    let mut least = Cost {
        commits: u64::MAX,
        round_trips: u64::MAX,
    };
    for _ in 0..5 {
        let store = engine.store();
        let before = (store.commits(), store.round_trips());
        // As a request that streams does: who listens before need not read.
        let bell = store.bell().subscribe(session);
        let new = NewTurn {
            user_id: "bench".to_owned(),
            input: vec![Part::text(input)],
            on_busy: OnBusy::Reject,
            options: TurnOptions::default(),
        };
        let made = engine.create_turn(&scope, session, new).await?;
        let follow = Follow {
            scope: scope.clone(),
            hub: engine.hub().clone(),
            session,
            turn: Some(made.turn.id),
            cursor: Cursor {
                seq: made.first_seq - 1,
                d: 0,
            },
            heartbeat: Duration::from_secs(10),
            shown: Default::default(),
        };
        let mut follower = follow.start_with(bell, engine.clock().clone());
        let mut last = None;
        while let Some(frame) = follower.next().await {
            last = Some(frame?.event.body);
        }
        if !matches!(last.context("a turn without events")?, EventBody::TurnCompleted(_)) {
            bail!("the turn did not complete");
        }
        least.commits = least.commits.min(store.commits() - before.0);
        least.round_trips = least.round_trips.min(store.round_trips() - before.1);
    }
    Ok(least)
}

fn session() -> CreateSession {
    CreateSession {
        user_id: "bench".to_owned(),
        external_id: None,
        title: None,
        model: None,
        instructions: None,
        preset: "hermes-api-server".to_owned(),
        toolsets: Default::default(),
        environment: Default::default(),
        approvals: Default::default(),
        sampling: Default::default(),
        metadata: Default::default(),
    }
}

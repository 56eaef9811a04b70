//! A server without its HTTP side, on either database, in a directory of its
//! own: started, crashed and started again by the tests.

pub mod client;
pub mod http;
pub mod model_server;
pub mod script;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hermes_server::app::{App, Surroundings};
use hermes_server::base::{Clock, Secret};
use hermes_server::config::{Config, Sources};
use hermes_server::live::cursor::Cursor;
use hermes_server::live::follow::{Follow, Follower, Frame, Shown};
use hermes_server::model::event::{Event, EventBody};
use hermes_server::model::id::{SessionId, TurnId};
use hermes_server::model::message::{Message, Part};
use hermes_server::model::session::{ApprovalPolicy, EnvironmentSpec, Session, ToolsetSelection};
use hermes_server::model::turn::{OnBusy, TurnOptions};
use hermes_server::store::{Probe, Scope};
use hermes_server::turn::engine::Engine;
use hermes_server::turn::requests::{CreateSession, CreatedTurn, EngineError, NewTurn};
use sqlx::{AssertSqlSafe, Connection, Executor};

/// Nothing that a test waits for takes this long.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A place to start servers in.
pub struct Place {
    pub directory: PathBuf,
    database: Option<String>,
    pub clock: Clock,
    pub config: Config,
    /// The server's own variables.
    pub environment: Vec<(String, String)>,
}

/// A running server.
pub struct Server {
    pub app: App,
    pub engine: Engine,
    pub scope: Scope,
}

/// Runs a test on SQLite, and on Postgres where `TEST_DATABASE_URL` names one.
pub fn on_both<F: Future<Output = ()>>(test: impl Fn(Place) -> F) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        test(Place::sqlite()).await;
        match Place::postgres().await {
            Some(place) => test(place).await,
            None => eprintln!("skipped on Postgres: TEST_DATABASE_URL is not set"),
        }
    });
}

impl Place {
    pub fn sqlite() -> Self {
        Self::new(None)
    }

    pub async fn postgres() -> Option<Self> {
        let server = std::env::var("TEST_DATABASE_URL").ok()?;
        Some(Self::on_postgres(&server).await)
    }

    /// A database of its own on this server.
    pub async fn on_postgres(server: &str) -> Self {
        let name = format!("it_{:032x}", Clock::system().uuid());
        let mut link = sqlx::PgConnection::connect(server).await.unwrap();
        // The name is made of hexadecimal digits.
        link.execute(AssertSqlSafe(format!("create database {name}")))
            .await
            .unwrap();
        link.close().await.unwrap();
        Self::new(Some(with_database(server, &name)))
    }

    fn new(database: Option<String>) -> Self {
        let clock = Clock::system();
        let directory = std::env::temp_dir().join(format!("hermes-it-{:032x}", clock.uuid()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut config = Config::load(&Sources::default()).unwrap();
        config.server.data_dir = directory.join("data");
        config.store.url = database.clone().map(Secret::new);
        config.lease.duration = Duration::from_secs(10);
        config.agent.retry_base = Duration::from_millis(10);
        Self {
            directory,
            database,
            clock,
            config,
            environment: Vec::new(),
        }
    }

    /// Where the rows are, unless they are in the data directory.
    pub fn postgres_url(&self) -> Option<&str> {
        self.database.as_deref()
    }

    pub fn is_postgres(&self) -> bool {
        self.database.is_some()
    }

    pub async fn start(&self) -> Server {
        self.start_probed(None).await
    }

    pub async fn start_probed(&self, probe: Option<Probe>) -> Server {
        let around = Surroundings {
            clock: self.clock.clone(),
            probe,
            exec_program: PathBuf::from(env!("CARGO_BIN_EXE_hermes-server")),
            environment: self.environment.clone(),
        };
        let app = App::start(&self.config, around).await.unwrap();
        let engine = app.engine().clone();
        let scope = engine.store().scope(app.default_tenant());
        Server { app, engine, scope }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.directory);
    }
}

fn with_database(server: &str, name: &str) -> String {
    let mut url = url::Url::parse(server).unwrap();
    url.set_path(name);
    url.to_string()
}

pub fn new_session() -> CreateSession {
    CreateSession {
        user_id: "tester".to_owned(),
        external_id: None,
        title: None,
        model: None,
        instructions: None,
        preset: "hermes-api-server".to_owned(),
        toolsets: ToolsetSelection::default(),
        environment: EnvironmentSpec::default(),
        approvals: ApprovalPolicy::default(),
        sampling: Default::default(),
        tools: Vec::new(),
        budget: Default::default(),
        metadata: Default::default(),
    }
}

pub fn new_turn(text: &str) -> NewTurn {
    NewTurn {
        user_id: "tester".to_owned(),
        input: vec![Part::text(text)],
        on_busy: OnBusy::Reject,
        options: TurnOptions::default(),
    }
}

impl Server {
    pub async fn session(&self) -> Session {
        self.engine.create_session(&self.scope, new_session()).await.unwrap()
    }

    /// The session as it is now.
    pub async fn session_now(&self, session: SessionId) -> Session {
        let read = self
            .scope
            .read(move |mut rows| Box::pin(async move { rows.session(session).await }));
        read.await.unwrap().unwrap()
    }

    pub async fn turn(&self, session: SessionId, text: &str) -> CreatedTurn {
        self.engine
            .create_turn(&self.scope, session, new_turn(text))
            .await
            .unwrap()
    }

    pub async fn try_turn(&self, session: SessionId, text: &str) -> Result<CreatedTurn, EngineError> {
        self.engine.create_turn(&self.scope, session, new_turn(text)).await
    }

    pub async fn enqueue(&self, session: SessionId, text: &str) -> CreatedTurn {
        let new = NewTurn {
            on_busy: OnBusy::Enqueue,
            ..new_turn(text)
        };
        self.engine.create_turn(&self.scope, session, new).await.unwrap()
    }

    pub fn follow(&self, session: SessionId, turn: Option<TurnId>, cursor: Cursor) -> Follower {
        let follow = Follow {
            scope: self.scope.clone(),
            hub: self.engine.hub().clone(),
            session,
            turn,
            cursor,
            shown: Shown::default(),
            heartbeat: Duration::from_secs(2),
        };
        follow.start(self.engine.clock().clone())
    }

    /// All frames of a turn to its end.
    pub async fn frames(&self, session: SessionId, turn: TurnId) -> Vec<Frame> {
        self.frames_within(PATIENCE, session, turn).await
    }

    /// The same for a turn that has much to do.
    pub async fn frames_within(&self, patience: Duration, session: SessionId, turn: TurnId) -> Vec<Frame> {
        let mut follower = self.follow(session, Some(turn), Cursor::default());
        let mut frames = Vec::new();
        let all = async {
            while let Some(frame) = follower.next().await {
                frames.push(frame.unwrap());
            }
        };
        if tokio::time::timeout(patience, all).await.is_err() {
            panic!("the turn does not end; so far: {}", names(&frames).join(" "));
        }
        frames
    }

    /// Waits until the session's log holds an event that `picks`.
    pub async fn wait_for(&self, session: SessionId, picks: impl Fn(&EventBody) -> bool) -> Event {
        let mut follower = self.follow(session, None, Cursor::default());
        until(&mut follower, picks).await.pop().unwrap().event
    }

    /// Whether every owner has left; one whose last commit was just seen is still
    /// on its way out.
    pub async fn is_left(&self) -> bool {
        let left = async {
            while self.engine.executing() != 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, left).await.is_ok()
    }

    /// Durable events of the session, all of them.
    pub async fn log(&self, session: SessionId) -> Vec<Event> {
        let read = self
            .scope
            .read(move |mut rows| Box::pin(async move { rows.events(session, None, 0, 10_000).await }));
        read.await.unwrap().unwrap().items
    }

    pub async fn messages(&self, session: SessionId) -> Vec<Message> {
        let read = self
            .scope
            .read(move |mut rows| Box::pin(async move { rows.messages(session, -1, 1000).await }));
        read.await
            .unwrap()
            .items
            .into_iter()
            .map(|(_, message)| message)
            .collect()
    }

    pub fn workspace(&self, session: SessionId) -> PathBuf {
        self.engine.workspace_path(self.scope.tenant(), session)
    }

    /// The process dies: nothing is handed over, nothing signed off. Commands
    /// die with it.
    pub async fn crash(self) {
        self.engine.stop().await;
        self.app.crash().await;
    }

    pub async fn stop(self) {
        self.app.shutdown(Duration::from_secs(5)).await;
    }
}

/// Frames up to the one that `picks`.
pub async fn until(follower: &mut Follower, picks: impl Fn(&EventBody) -> bool) -> Vec<Frame> {
    let mut frames = Vec::new();
    let found = async {
        loop {
            let frame = follower.next().await.expect("the stream goes on").unwrap();
            let last = picks(&frame.event.body);
            frames.push(frame);
            if last {
                return;
            }
        }
    };
    if tokio::time::timeout(PATIENCE, found).await.is_err() {
        panic!("the event does not come; so far: {}", names(&frames).join(" "));
    }
    frames
}

/// The event names of frames, for messages and comparisons.
pub fn names(frames: &[Frame]) -> Vec<String> {
    frames.iter().map(|frame| name(&frame.event)).collect()
}

pub fn name(event: &Event) -> String {
    serde_json::to_value(&event.body).unwrap()["type"]
        .as_str()
        .unwrap()
        .to_owned()
}

pub fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// A probe from a closure.
pub fn probe(of: impl Fn(&'static str) -> hermes_server::store::Fate + Send + Sync + 'static) -> Option<Probe> {
    Some(Arc::new(of))
}

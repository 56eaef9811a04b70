//! A server's life: bind, start, greet, serve until a signal, hand over, end.
//! Nobody can connect before everything is ready.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::auth::jwt::Verifier;
use crate::api::state::ApiState;
use crate::api::{self, listen};
use crate::app::App;
use crate::config::Config;

use super::error::CliError;
use super::greeting::{self, Facts};
use super::load::load;
use super::signals::Signals;
use super::{ServeArgs, first_key, log, print, resident};

/// Connections the kernel keeps for us while we are busy.
const BACKLOG: u32 = 1024;
/// How long turns may take to reach a stored step: below the 30 s that
/// container runtimes wait between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(25);
/// Commands that are killed at the end are waited for this long.
const LAST_KILLS: Duration = Duration::from_secs(2);

pub(super) async fn run(args: ServeArgs) -> Result<(), CliError> {
    let loaded = load(args)?;
    let config = loaded.config;
    config.check()?;
    log::start(config.log, config.known_secrets());
    if !config.ignored.is_empty() {
        tracing::warn!(
            keys = config.ignored.join(", "),
            "these keys of the configuration mean nothing here"
        );
    }
    // A key set that cannot be used is found before anything is begun.
    Verifier::new(&config.auth.jwt, loaded.around.clock.now(), &TaskTracker::new())?;
    let address = config.server.listen;
    let socket = bound(address)?;
    let mut signals = Signals::listen().map_err(CliError::System)?;
    let app = App::start(&config, loaded.around).await?;
    let done = serve(&app, &config, socket, &mut signals).await;
    if !matches!(done, Err(CliError::StoppedAtOnce)) {
        app.shutdown(Duration::ZERO).await;
        tracing::info!("stopped");
    }
    done
}

/// Takes the address without listening: who connects now is refused, and a
/// taken port is found before the store is touched.
fn bound(address: SocketAddr) -> Result<TcpSocket, CliError> {
    let bind = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // A restarted server takes its port back while old connections linger.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(socket)
    };
    bind().map_err(|source| CliError::Listen { address, source })
}

async fn serve(app: &App, config: &Config, socket: TcpSocket, signals: &mut Signals) -> Result<(), CliError> {
    let engine = app.engine();
    let store = engine.store();
    let data_dir = &config.server.data_dir;
    let first_key = if config.auth.is_configured() {
        None
    } else {
        first_key::make(store, app.default_tenant(), data_dir).await?
    };
    let (tasks, closing) = (TaskTracker::new(), CancellationToken::new());
    let state = ApiState::new(config, engine.clone(), tasks.clone(), closing.clone())?;
    let registry = engine.registry(app.default_tenant());
    let listener = listening(socket, config.server.listen)?;
    let facts = Facts {
        address: listener.local_addr().map_err(CliError::System)?,
        store: store.kind(),
        isolation: engine.host().environment().isolation(),
        has_terminal: registry
            .get("terminal")
            .is_some_and(|tool| tool.unavailable(engine.host()).is_none()),
        first_key,
        key_file_works: first_key::is_valid(store, data_dir).await?,
    };
    if let Err(error) = print::out(&greeting::text(config, &facts)) {
        tracing::warn!(%error, "nobody reads the output");
    }
    tracing::info!(address = %facts.address, "ready");
    let unread = config.server.write_timeout;
    let serving = tokio::spawn(listen::serve(listener, api::router(state), closing.clone(), unread));
    resident::let_start_go();
    signals.next().await;
    tracing::info!("stopping: turns are handed over at their next stored step; a second signal stops at once");
    let handed_over = async {
        // Requests are still answered: who asks is told that we leave.
        engine.drain(GRACE).await;
        closing.cancel();
        tasks.close();
        // A panic in the accept loop is in the log already.
        let _ended = serving.await;
        tasks.wait().await;
    };
    tokio::select! {
        () = handed_over => Ok(()),
        () = signals.next() => {
            let _late = tokio::time::timeout(LAST_KILLS, engine.stop()).await;
            Err(CliError::StoppedAtOnce)
        }
    }
}

fn listening(socket: TcpSocket, address: SocketAddr) -> Result<TcpListener, CliError> {
    socket
        .listen(BACKLOG)
        .map_err(|source| CliError::Listen { address, source })
}

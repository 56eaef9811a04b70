//! `chat`: a conversation with a running server, in the terminal. It is a client
//! like any other: all it knows it reads from the event stream, and what it needs
//! of a person it asks here. Text goes to the standard output, everything else
//! beside it.

mod asking;
mod client;
mod screen;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::base::Secret;
use crate::config::Flags;
use crate::model::event::EventBody;
use crate::model::id::SessionId;
use crate::model::turn::{Turn, TurnStatus};

use self::asking::{Answered, Lines};
pub(super) use self::client::ChatError;
use self::client::{Client, Frames};
use self::screen::Screen;
use super::error::CliError;
use super::load::load;
use super::{first_key, print};

pub(super) const EXAMPLES: &str = "\
Examples:
  hermes-server chat
  hermes-server chat --session ses_01jz8m4s7ye2tv6m0c9w3kq5rd
  hermes-server chat -q 'How much space is left here?'
  HERMES_API_KEY=hsk_… hermes-server chat --url https://hermes.example.com

The key is HERMES_API_KEY, or the first one, in the file api-key of the data
directory. A line that ends in a backslash goes on in the next one. Ctrl-C stops
the turn that runs; Ctrl-D ends the conversation, which goes on with --session.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 a call waits for an approval that
nobody was there to decide.";

/// The status of a turn that is left waiting.
const WAITING: u8 = 3;

#[derive(Args, Debug, PartialEq)]
pub struct ChatArgs {
    /// Say this and end; the answer alone goes to the standard output
    #[arg(short = 'q', long = "query", value_name = "TEXT")]
    pub query: Option<String>,

    /// Go on with this session [default: a new one]
    #[arg(long, value_name = "ID")]
    pub session: Option<SessionId>,

    /// The model of a new session [default: the server's]
    #[arg(long, value_name = "NAME", conflicts_with = "session")]
    pub model: Option<String>,

    /// The toolset preset of a new session [default: the server's]
    #[arg(long, value_name = "NAME", conflicts_with = "session")]
    pub preset: Option<String>,

    /// Where the server is [default: `server.listen`, which is http://127.0.0.1:8642]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,

    /// The data directory with the first key [default: ./data]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<String>,

    /// The configuration file [default: $HERMES_CONFIG, else ./hermes.yaml if it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

pub(super) async fn run(args: ChatArgs) -> Result<ExitCode, CliError> {
    let client = connect(&args)?;
    let session = match args.session {
        Some(id) => client.session(id).await?,
        None => {
            client
                .new_session(args.model.as_deref(), args.preset.as_deref())
                .await?
        }
    };
    let mut lines = Lines::of_input();
    match args.query {
        Some(query) => {
            print::aside(&format!("session {session}"));
            let mut screen = Screen::quiet();
            let status = say(&client, session, &query, &mut screen, &mut lines).await?;
            screen.answer()?;
            Ok(status)
        }
        None => converse(&client, session, &mut lines).await,
    }
}

/// The server and the key, from the flags and the configuration.
fn connect(args: &ChatArgs) -> Result<Client, CliError> {
    let loaded = load(Flags {
        config: args.config.clone(),
        data_dir: args.data_dir.clone(),
        ..Flags::default()
    })?;
    let config = loaded.config;
    let url = args
        .url
        .clone()
        .unwrap_or_else(|| format!("http://{}", config.server.listen));
    let key = match config.auth.api_key {
        Some(key) => key,
        None => {
            let path = first_key::path(&config.server.data_dir);
            let text = std::fs::read_to_string(&path).map_err(|source| ChatError::NoKey { path, source })?;
            Secret::new(text.trim())
        }
    };
    Ok(Client::new(&url, key)?)
}

async fn converse(client: &Client, session: SessionId, lines: &mut Lines) -> Result<ExitCode, CliError> {
    print::aside(&format!("session {session}; Ctrl-D ends the conversation"));
    let mut screen = Screen::talkative();
    loop {
        let text = tokio::select! {
            text = lines.message() => text?,
            _ = tokio::signal::ctrl_c() => None,
        };
        let Some(text) = text else {
            print::aside(&format!("go on with: hermes-server chat --session {session}"));
            return Ok(ExitCode::SUCCESS);
        };
        if text.trim().is_empty() {
            continue;
        }
        let status = match say(client, session, &text, &mut screen, lines).await {
            // The conversation outlives what went wrong in it.
            Err(error @ ChatError::Refused(_)) => {
                print::aside(&error.to_string());
                continue;
            }
            said => said?,
        };
        if status == ExitCode::from(WAITING) {
            return Ok(status);
        }
    }
}

/// One turn, from the message to its end. A connection that breaks is made again
/// where it broke; Ctrl-C stops the turn and shows how it ended.
async fn say(
    client: &Client,
    session: SessionId,
    text: &str,
    screen: &mut Screen,
    lines: &mut Lines,
) -> Result<ExitCode, ChatError> {
    let mut frames = client.turn(session, text).await?;
    let turn = frames.turn;
    let mut stopping = false;
    loop {
        let event = tokio::select! {
            event = frames.next() => event,
            _ = tokio::signal::ctrl_c(), if !stopping => {
                stopping = true;
                print::aside("stopping the turn");
                client.cancel(session, turn).await?;
                continue;
            }
        };
        let Some(Ok(event)) = event else {
            frames = again(client, session, &frames).await?;
            continue;
        };
        screen.show(&event)?;
        if let EventBody::ApprovalRequested(asked) = &event.body {
            match asking::ask(&asked.approval, lines).await? {
                Answered::With(choice) => client.decide(&asked.approval, choice).await?,
                Answered::Nobody => {
                    asking::leave(&asked.approval);
                    return Ok(ExitCode::from(WAITING));
                }
            }
        }
        if let EventBody::QuestionAsked(asked) = &event.body {
            match asking::question(&asked.question, lines).await? {
                Some(text) => client.answer(&asked.question, &text).await?,
                None => {
                    asking::leave_question(&asked.question);
                    return Ok(ExitCode::from(WAITING));
                }
            }
        }
        if let Some(turn) = ended(&event.body) {
            return Ok(outcome(turn));
        }
    }
}

/// The stream where it broke off.
async fn again(client: &Client, session: SessionId, broken: &Frames) -> Result<Frames, ChatError> {
    print::aside("the connection broke; going on where it did");
    client.resume(session, broken.turn, &broken.cursor).await
}

fn ended(body: &EventBody) -> Option<&Turn> {
    match body {
        EventBody::TurnCompleted(data)
        | EventBody::TurnFailed(data)
        | EventBody::TurnCancelled(data)
        | EventBody::TurnInterrupted(data)
        | EventBody::TurnRolledBack(data) => Some(&data.turn),
        _ => None,
    }
}

fn outcome(turn: &Turn) -> ExitCode {
    if turn.status == TurnStatus::Completed {
        return ExitCode::SUCCESS;
    }
    match &turn.error {
        Some(problem) => print::aside(&format!("the turn failed: {}", problem.detail)),
        None => print::aside(&format!("the turn ended: {}", turn.status.name())),
    }
    ExitCode::FAILURE
}

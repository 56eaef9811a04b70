//! The program: reads the command line, does what it says, and ends with a
//! status. Errors are told once, here, on the standard error.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use super::error::CliError;
use super::{Cli, Command, chat, check, doctor, key, migrate, openapi, print, server, token, tools};

/// What is still on its way in the runtime at the end is given this long.
const LAST_TASKS: Duration = Duration::from_secs(1);

pub fn run() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.chosen(),
        Err(said) => return explain(&said),
    };
    match perform(command) {
        Ok(status) => status,
        Err(error) => {
            let status = error.status();
            if status != ExitCode::SUCCESS {
                print::aside(&format!("hermes-server: {}", error.sentence()));
            }
            status
        }
    }
}

/// Help and version go to the output, wrong usage to the error output.
fn explain(said: &clap::Error) -> ExitCode {
    // Where nobody reads there is nobody to tell.
    let _unread = said.print();
    u8::try_from(said.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

fn perform(command: Command) -> Result<ExitCode, CliError> {
    match command {
        Command::Check(args) => return check::run(&args),
        Command::Doctor(args) => return awaited(doctor::run(args)),
        Command::Chat(args) => return awaited(chat::run(args)),
        Command::Openapi(args) => openapi::run(&args)?,
        Command::Token(args) => token::run(args)?,
        Command::Serve(args) => awaited(server::run(args))?,
        Command::Migrate(args) => awaited(migrate::run(args))?,
        Command::Key(command) => awaited(key::run(command))?,
        Command::Tools(args) => awaited(tools::run(args))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn awaited<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(CliError::System)?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(LAST_TASKS);
    done
}

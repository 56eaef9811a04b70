//! The configuration as every subcommand reads it: file, environment, flags.

use std::path::PathBuf;

use crate::app::Surroundings;
use crate::base::Clock;
use crate::config::{Config, Flags, Sources, process_environment};

use super::error::CliError;

pub(super) struct Loaded {
    pub(super) config: Config,
    pub(super) around: Surroundings,
}

pub(super) fn load(flags: impl Into<Flags>) -> Result<Loaded, CliError> {
    let environment = process_environment();
    let config = Config::load(&Sources {
        flags: flags.into(),
        environment: environment.clone(),
        directory: Some(PathBuf::new()),
    })?;
    let around = Surroundings {
        clock: Clock::system(),
        probe: None,
        exec_program: std::env::current_exe().map_err(CliError::System)?,
        environment,
    };
    Ok(Loaded { config, around })
}

//! Which isolation works on this machine, found out by running a command behind
//! it: what a kernel or a container claims to offer is not always usable.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::command::{Chunk, Command, EnvironmentError, Isolation, IsolationChoice, Mechanism};
use super::local::Local;

/// A trial takes some 10 ms; a machine under load may take much longer.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// The strongest mechanism that works, or why none does.
pub(super) async fn find(local: &Local, choice: IsolationChoice) -> Isolation {
    let candidates: &[Mechanism] = match choice {
        IsolationChoice::Auto => &[Mechanism::Bubblewrap, Mechanism::Landlock],
        IsolationChoice::Bubblewrap => &[Mechanism::Bubblewrap],
        IsolationChoice::Landlock => &[Mechanism::Landlock],
        IsolationChoice::None => &[Mechanism::None],
    };
    let mut reasons = Vec::new();
    for mechanism in candidates {
        match trial(local, *mechanism).await {
            Ok(detail) => {
                return Isolation::Working {
                    mechanism: *mechanism,
                    detail,
                };
            }
            Err(reason) => reasons.push(reason),
        }
    }
    Isolation::Unavailable {
        reason: reasons.join("; "),
    }
}

async fn trial(local: &Local, mechanism: Mechanism) -> Result<String, String> {
    let workspace = local.workspace("_server", "trial").await.map_err(text)?;
    let command = Command {
        script: "true".into(),
        cwd: workspace.root().to_path_buf(),
        timeout: TRIAL_TIMEOUT,
        stdin: None,
        environment: Vec::new(),
    };
    let mut said = Vec::new();
    let output = |chunk: Chunk| said.extend_from_slice(chunk.bytes());
    let run = local
        .execute_confined(mechanism, &workspace, command, output, CancellationToken::new())
        .await;
    match run {
        Ok((finished, detail)) if finished.exit_code == 0 => Ok(detail),
        Ok((finished, detail)) => Err(format!(
            "{detail}: a trial command ended with code {}",
            finished.exit_code
        )),
        // Whatever kept the process from reporting has said why itself.
        Err(EnvironmentError::Lost | EnvironmentError::Spawn(_)) if !said.is_empty() => {
            Err(String::from_utf8_lossy(&said).trim().to_owned())
        }
        Err(error) => Err(text(error)),
    }
}

fn text(error: EnvironmentError) -> String {
    match error {
        EnvironmentError::Unavailable { reason } => reason,
        other => other.to_string(),
    }
}

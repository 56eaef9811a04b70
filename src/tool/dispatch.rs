//! Running one call to a result the model can be shown: a tool that panics is a
//! failed call, and a result too long for the model is stored in the session's
//! temporary files and stands there as a preview.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;

use super::budget::{self, Budget};
use super::{Call, Done, Host, Tool, error_text};
use crate::environment::Parents;
use crate::model::id::{CallId, SessionId, TenantId};

/// Beneath the session's temporary directory.
const DIRECTORY: &str = "hermes-results";

/// Runs the call and brings its result under the budget.
pub async fn run(tool: &'static dyn Tool, call: Call, budget: Budget) -> Done {
    let shelf = Shelf {
        host: Arc::clone(&call.host),
        tenant: call.tenant_id,
        session: call.session_id,
        call: call.call_id,
    };
    let spec = tool.spec();
    let started = AssertUnwindSafe(async move { tool.run(call).await });
    let Ok(mut done) = started.catch_unwind().await else {
        tracing::error!(tool = spec.name, call = %shelf.call, "a tool panicked");
        let text = format!("Error executing {}: it stopped unexpectedly", spec.name);
        // What it did before is not known.
        return Done {
            survived: true,
            ..Done::failure(error_text::envelope(&error_text::sanitise(&text)))
        };
    };
    let threshold = budget.threshold(spec.result_limit);
    if threshold < done.result.chars().count() {
        done.result = shelf.put(&done.result).await;
    }
    done
}

/// Where the results of one call can be stored.
struct Shelf {
    host: Arc<Host>,
    tenant: TenantId,
    session: SessionId,
    call: CallId,
}

impl Shelf {
    /// Stores a result; what the model reads in its place comes back.
    async fn put(&self, result: &str) -> String {
        let Ok(workspace) = self.host.workspace(self.tenant, self.session).await else {
            return budget::unstored_text(result);
        };
        let name = budget::file_name(&self.call.to_string());
        let path = workspace.tmp().join(DIRECTORY).join(name);
        let written = workspace.write_atomic(&path, result.as_bytes().to_vec(), Parents::Create);
        match written.await {
            Ok(()) => budget::stored_text(result, &path.to_string_lossy()),
            Err(error) => {
                tracing::warn!(%error, call = %self.call, "a long result could not be stored");
                budget::unstored_text(result)
            }
        }
    }
}

//! What a session's prompt says of its project: read when its model is asked for
//! the first time, by the owner, who has the files, and stored with the answer.
//! From then on it stays, so that the prompt begins alike.

use super::engine::Engine;
use super::owner::Owned;
use crate::tool::context_file;

/// What is to be shown from now on, unless that is settled. Who works for another
/// session was told what to know.
pub(super) async fn read(engine: &Engine, owned: &Owned) -> Option<String> {
    let session = &owned.state.session;
    if session.context_block.is_some() || session.lineage.is_some() {
        return None;
    }
    Some(match engine.settings().context_files {
        true => context_file::block(engine.host(), session.tenant_id, session.home()).await,
        false => String::new(),
    })
}

//! The native surface: one file for each resource, each with its routes. Adding
//! a route is adding a function and its name in that file's `routes!`.

#![allow(unused_qualifications, reason = "the macro that describes a route writes them")]

mod answers;
mod append;
mod approvals;
mod artifacts;
mod audit;
pub(super) mod bounds;
mod byte_range;
mod checkpoints;
mod decisions;
mod documents;
mod file_state;
pub(super) mod files;
mod fork;
mod grants;
mod guard;
mod health;
mod history;
mod jobs;
mod keys;
mod listing;
pub(super) mod models;
mod new_turn;
mod pending_writes;
mod plugins;
mod policies;
mod processes;
mod questions;
mod search;
mod session_list;
pub(super) mod sessions;
pub(super) mod skills;
mod stream_filter;
mod stream_tokens;
pub(super) mod streams;
mod tenant_streams;
mod tool_results;
pub(super) mod tools;
mod toolsets;
mod transfer;
mod turns;
mod usage;

use crate::api::surface::Surface;

pub(super) fn routes() -> Surface {
    Surface::new()
        .merge(sessions::routes())
        .merge(fork::routes())
        .merge(transfer::routes())
        .merge(search::routes())
        .merge(history::routes())
        .merge(append::routes())
        .merge(artifacts::routes())
        .merge(streams::routes())
        .merge(tenant_streams::routes())
        .merge(stream_tokens::routes())
        .merge(turns::routes())
        .merge(approvals::routes())
        .merge(decisions::routes())
        .merge(pending_writes::routes())
        .merge(questions::routes())
        .merge(tool_results::routes())
        .merge(files::routes())
        .merge(checkpoints::routes())
        .merge(processes::routes())
        .merge(grants::routes())
        .merge(jobs::routes())
        .merge(usage::routes())
        .merge(keys::routes())
        .merge(audit::routes())
        .merge(tools::routes())
        .merge(toolsets::routes())
        .merge(plugins::routes())
        .merge(skills::routes())
        .merge(models::routes())
        .merge(guard::routes())
        .merge(policies::routes())
        .merge(health::routes())
        .merge(documents::routes())
}

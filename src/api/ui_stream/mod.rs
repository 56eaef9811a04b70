//! The stream of UI messages that the AI SDK reads: a turn's events as its parts,
//! with approvals among them. On the native surface it is another form of a turn's
//! stream; the routes here are those that its chat transport calls by itself.

#![allow(unused_qualifications, reason = "the macro that describes a route writes them")]

mod chat;
pub(super) mod encode;
mod request;

use super::surface::Surface;

pub(super) fn routes() -> Surface {
    Surface::new().merge(chat::routes())
}

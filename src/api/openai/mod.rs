//! The surface that clients of OpenAI know: chat completions and responses. The
//! models are those of the native surface, whose list serves both.

#![allow(unused_qualifications, reason = "the macro that describes a route writes them")]

mod chat;
mod chat_request;
mod chat_stream;
mod describe;
mod responses;

pub(super) use describe::document;

use super::native::models;
use super::surface::Surface;

/// What is served here and nowhere else.
pub(super) fn routes() -> Surface {
    Surface::new().merge(chat::routes()).merge(responses::routes())
}

/// All that clients of this surface use.
fn described() -> Surface {
    routes().merge(models::routes())
}

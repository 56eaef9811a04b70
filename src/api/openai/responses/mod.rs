//! Responses: a turn, or what follows in it behind an answer that a client gave to
//! an approval. What a response holds is folded from the turn's log, in the same
//! way for who streams it and who reads it later.

mod answers;
mod constant;
mod create;
mod fold;
mod functions;
mod numbers;
mod read;
mod request;
mod stream;

use crate::api::surface::Surface;

pub(super) fn routes() -> Surface {
    Surface::new().merge(create::routes()).merge(read::routes())
}

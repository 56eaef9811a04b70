//! What the drop-in surfaces share: how they read what clients say, how a turn is
//! begun for them, and how its events are written. Nothing here runs anything:
//! every effect is a request of `turn::requests`, as on the native surface.

pub(super) mod begin;
pub(super) mod chain;
pub(super) mod content;
pub(super) mod conversation;
pub(super) mod dialogue;
pub(super) mod ending;
pub(super) mod envelope;
pub(super) mod handed;
pub(super) mod headers;
pub(super) mod ids;
pub(super) mod label;
pub(super) mod loose;
pub(super) mod media;
pub(super) mod object;
pub(super) mod question;
pub(super) mod story;
pub(super) mod stream;

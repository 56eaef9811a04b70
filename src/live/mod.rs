//! What is in flight: drafts of messages and command output that are not stored
//! yet, following a session's log as it grows, and the lists of a tenant. The log in the store is the
//! truth; everything here refines it and may be lost without losing anything.

pub mod cursor;
pub mod drafts;
pub mod follow;
pub mod hub;
pub mod lists;

//! What is in flight: drafts of messages and command output that are not stored
//! yet, and following a session's log as it grows. The log in the store is the
//! truth; everything here refines it and may be lost without losing anything.

pub mod cursor;
pub mod drafts;
pub mod follow;
pub mod hub;

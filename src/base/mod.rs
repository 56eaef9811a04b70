//! The ground floor: ids, the clock, secrets, text cutting.
//!
//! Nothing here knows what a session is, and nothing here performs I/O beyond
//! reading the system clock and the system's random source. Every other module
//! may use this one; this one uses none.

pub mod clock;
pub mod fold;
pub mod id;
pub mod random;
pub mod secret;
pub mod similarity;
pub mod text;
pub mod time;

pub use clock::Clock;
pub use id::Id;
pub use secret::Secret;
pub use time::Timestamp;

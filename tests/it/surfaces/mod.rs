//! The drop-in surfaces: what clients of the original and of OpenAI send and read.

mod capabilities;
mod chat;
mod errors;
mod handed;
mod jobs;
mod lasting;
mod limits;
mod responses;
mod rows;
mod runs;
mod same;
mod sessions;
mod ui;
mod wire;

//! The drop-in surfaces: what clients of the original and of OpenAI send and read.

mod abilities;
mod answered;
mod capabilities;
mod chat;
mod desk;
mod errors;
mod handed;
mod hostile;
mod jobs;
mod lasting;
mod limits;
mod responses;
mod rows;
mod runs;
mod same;
mod sessions;
mod strict;
mod ui;
mod wire;

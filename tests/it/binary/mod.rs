//! The built binary as an operator meets it: started, asked over real HTTP,
//! killed, stopped, started again.

mod audit;
mod chat;
mod chat_choices;
mod clients;
mod commands;
mod deaths;
mod frozen;
mod program;
mod refusals;
mod stalled;
mod starts;
mod stops;
mod unlogged;

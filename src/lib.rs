//! hermes-server: hosts AI agents for many tenants over HTTP.
//!
//! The modules are floors of one house, listed bottom up; a module imports only
//! from floors below its own (`tests/it/floors.rs` holds them to it). The page
//! to read first is ARCHITECTURE.md.

#![cfg_attr(test, allow(clippy::string_slice, reason = "tests slice text they wrote themselves"))]

pub mod base;

pub mod config;
pub mod guard;
pub mod model;

pub mod environment;
pub mod fetch;
pub mod provider;
pub mod store;

pub mod live;
pub mod tool;

pub mod turn;

pub mod schedule;

pub mod app;

pub mod api;

pub mod cli;

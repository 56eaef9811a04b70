//! HTTP only. No SQL, no tool logic.

pub mod auth;

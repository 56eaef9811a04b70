//! What a tenant, session, turn, message, call, approval and event *are*, with
//! the rules that need no I/O. These types are the wire shapes as well: what the
//! API documents is what the engine keeps. Nothing here knows SQL or HTTP.

pub mod approval;
pub mod artifact;
pub mod audit;
pub mod background;
pub mod budget;
pub mod call;
pub mod checkpoint;
pub mod client_tool;
pub mod event;
pub mod event_types;
pub mod grant;
pub mod guardrail;
pub mod id;
pub mod job;
pub mod job_task;
pub mod lineage;
pub mod memory;
pub mod message;
pub mod pattern;
pub mod pending;
pub mod policy;
pub mod precondition;
pub mod preview;
pub mod principal;
pub mod problem;
pub mod question;
pub mod record;
pub mod sampling;
pub mod schedule;
pub mod search;
pub mod session;
pub mod skill;
pub mod tenant_event;
pub mod trace;
pub mod transfer;
pub mod turn;
pub mod usage;
pub mod version;

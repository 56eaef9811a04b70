//! Skills: what an agent knows how to do, as folders with a `SKILL.md`. A tenant
//! has its own, which its agents and people change; beside them stand the
//! server's, which nobody changes over HTTP. Only names are ever joined to a
//! directory, and only such as `name` let through.

pub mod change;
pub mod document;
pub mod index;
pub mod library;
pub mod name;
pub mod plan;
pub mod scan;
mod skill_manage;
mod skill_view;
mod skills_list;

pub(super) use skill_manage::dangers;

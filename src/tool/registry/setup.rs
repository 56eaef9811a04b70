//! What the operator's configuration says that registries and descriptions of
//! tools depend on. The same for the whole life of a process.

use std::collections::BTreeMap;

use crate::tool::toolset::Definition;

#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The operator's own toolsets.
    pub custom: BTreeMap<String, Definition>,
    pub delegation: Option<DelegationLimits>,
}

/// How much a session may hand to child agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelegationLimits {
    /// Tasks of one call.
    pub children: usize,
    /// Children may hand on parts of their tasks: so many levels below the first.
    pub further_levels: usize,
}

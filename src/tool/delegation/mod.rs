//! Toolset `delegation`: handing work to child agents.

mod delegate_task;

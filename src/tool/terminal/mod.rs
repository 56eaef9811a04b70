//! Toolset `terminal`: commands in a session's workspace.

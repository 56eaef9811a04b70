//! Toolset `file`: the files of a session's workspace.

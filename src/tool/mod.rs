pub mod arguments;
pub mod budget;
pub mod coerce;
pub mod command_line;
pub mod error_text;
pub mod name_repair;
pub mod output;
pub mod toolset;

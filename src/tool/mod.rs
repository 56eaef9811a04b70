pub mod arguments;
pub mod coerce;
pub mod error_text;
pub mod name_repair;
pub mod toolset;

//! The toolset `code_execution`: a program of the model's that calls tools.
//! What it prints is bounded and told to the model; what its calls return only
//! the program sees.

mod captured;
mod errand;
mod execute_code;
mod library;
mod run;

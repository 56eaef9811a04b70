//! Commands and texts of strangers, read by the guard. CONTRIBUTING.md says how
//! to run it.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| hermes_server::guard::border::read(input));

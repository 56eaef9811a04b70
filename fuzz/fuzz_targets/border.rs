//! What strangers send, read by the readers at the border. CONTRIBUTING.md says
//! how to run it.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| hermes_server::api::border::read(input));

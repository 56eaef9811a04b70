//! The thin binary.

use std::process::ExitCode;

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // Before any runtime or logger: this process supervises one command.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == "exec") {
        return hermes_server::environment::run_exec();
    }
    hermes_server::cli::run()
}

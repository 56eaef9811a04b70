//! The thin binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before any runtime or logger: this process supervises one command.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == "exec") {
        return hermes_server::environment::run_exec();
    }
    ExitCode::SUCCESS
}

//! Commands inside commands: wrappers, shells with code, remote shells,
//! options that name a program. One level at a time; the tracer comes back
//! with what it found.

mod code;
mod remote;
mod runners;
mod strangers;
mod tools;
mod wrapper_table;
mod wrappers;

pub(crate) use code::{
    SHELLS, inline_code, is_interpreter, is_shell, module_text, reads_commands, reads_program, script_file, shell_code,
};
pub(crate) use remote::{DOCKER, mounts_host, ssh_command_at};
pub(crate) use tools::{PROGRAM_OPTIONS, awk_program, runs_program};
pub(crate) use wrappers::wrapper;

use super::Span;
use super::call::Call;
use super::resolve::{Origin, Value};

/// What a call runs besides itself.
#[derive(Debug)]
pub(crate) enum Inner {
    Argv {
        wrapper: String,
        words: Vec<Value>,
        contained: bool,
        /// Words that may be data as well.
        guessed: bool,
        assigned: Vec<(String, Value)>,
        /// Where it runs, when an option of the wrapper says so.
        cwd: Option<String>,
    },
    /// `reads`: standard input is left for the commands of the code.
    Shell { text: String, origin: Origin, reads: bool },
    /// Code of another language: only shell lines inside it are followed.
    Foreign { text: String, span: Span },
}

impl Inner {
    /// Code that is one substitution as a whole has nothing to be followed;
    /// the rules judge where it comes from.
    pub(crate) fn shell(value: &Value) -> Self {
        let text = if value.sole { String::new() } else { value.text.clone() };
        Self::Shell {
            text,
            origin: value.origin(),
            reads: true,
        }
    }

    /// Code that is cut out of a word (`--pre=CODE`).
    pub(crate) fn part(text: &str, span: Span) -> Self {
        Self::Shell {
            text: text.to_owned(),
            origin: Origin::From(span),
            reads: true,
        }
    }

    /// Code that is itself what stands on standard input.
    pub(crate) fn input(call: &Call) -> Option<Self> {
        let (text, origin) = match &call.input {
            Some(input) => (input.value.text.as_str(), input.value.origin()),
            None => call.input_text().map(|(text, span)| (text, Origin::From(span)))?,
        };
        Some(Self::Shell {
            text: text.to_owned(),
            origin,
            reads: false,
        })
    }

    pub(crate) fn argv(call: &Call, words: &[Value]) -> Self {
        Self::Argv {
            wrapper: call.name.clone(),
            words: words.to_vec(),
            contained: false,
            guessed: false,
            assigned: Vec::new(),
            cwd: None,
        }
    }
}

pub(crate) fn inner(call: &Call) -> Vec<Inner> {
    let mut found = Vec::new();
    if call.name.is_empty() {
        return found;
    }
    wrappers::unwrap(call, &mut found);
    runners::unwrap(call, &mut found);
    code::unwrap(call, &mut found);
    remote::unwrap(call, &mut found);
    tools::unwrap(call, &mut found);
    if found.is_empty() {
        strangers::unwrap(call, &mut found);
    }
    found
}

/// Words joined by blanks, as `eval` and `ssh` do.
pub(crate) fn joined(values: &[Value]) -> Value {
    if let [only] = values {
        return only.clone();
    }
    let mut all = Value {
        known: true,
        ..Value::default()
    };
    for (position, value) in values.iter().enumerate() {
        if position > 0 {
            all.text.push(' ');
        } else {
            all.span.start = value.span.start;
        }
        all.text.push_str(&value.text);
        if value.unknown_end > 0 {
            all.unknown_end = all.text.len();
        }
        all.known &= value.known;
        all.span.end = value.span.end.max(all.span.start);
        all.runs.extend(value.runs.iter().cloned());
    }
    all
}

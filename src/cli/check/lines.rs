//! Commands that come line by line, each answered on a line of its own as soon as
//! it is there, so that another program can ask one after the other.

use std::io::{self, BufRead, Read, Write};
use std::process::ExitCode;

use serde::Deserialize;
use serde_json::json;

use super::{Judge, LONGEST_INPUT};
use crate::cli::error::CliError;
use crate::guard::policy::Policy;
use crate::guard::{Backend, Judgement};

/// A line with more than a command.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    command: String,
    policy: Option<Policy>,
    backend: Option<Backend>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Text(String),
    Question(Box<Question>),
}

pub(super) fn run(judge: &Judge<'_>, backend: Backend) -> Result<ExitCode, CliError> {
    let mut input = io::stdin().lock();
    let mut output = io::stdout().lock();
    let mut all_judged = true;
    while let Some(line) = next(&mut input).map_err(|source| CliError::file("-", source))? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let answer = match answer(&line, judge, backend) {
            Ok(judgement) => serde_json::to_string(&judgement)?,
            Err(error) => {
                all_judged = false;
                json!({"error": error}).to_string()
            }
        };
        let written = writeln!(output, "{answer}").and_then(|()| output.flush());
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            written => written.map_err(CliError::Output)?,
        }
    }
    Ok(if all_judged {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The next line, of which no more is kept than can be judged.
fn next(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    input.by_ref().take(LONGEST_INPUT).read_until(b'\n', &mut line)?;
    if line.len() as u64 == LONGEST_INPUT && !line.ends_with(b"\n") {
        // The rest of it is no line of its own.
        input.skip_until(b'\n')?;
    }
    Ok((!line.is_empty()).then_some(line))
}

fn answer(line: &[u8], judge: &Judge<'_>, backend: Backend) -> Result<Judgement, String> {
    let question = match serde_json::from_slice(line) {
        Ok(Line::Text(command)) => return Ok(judge.judge(&command, backend, None)),
        Ok(Line::Question(question)) => question,
        Err(_) => {
            // An untagged value does not say what is wrong with it.
            let wrong = serde_json::from_slice::<Question>(line).err();
            let why = wrong.map_or_else(String::new, |error| format!(": {error}"));
            return Err(format!(
                "expected a text, or an object with `command`, `policy` and `backend`{why}"
            ));
        }
    };
    let policy = question.policy.map(|policy| policy.compile()).transpose();
    let policy = policy.map_err(|fault| format!("`policy`: {fault}"))?;
    Ok(judge.judge(&question.command, question.backend.unwrap_or(backend), policy.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_one_line() {
        let long = [vec![b'x'; 2 << 20], b"\nnext\n".to_vec()].concat();
        let mut input = long.as_slice();
        let first = next(&mut input).unwrap().unwrap();
        assert_eq!(first.len() as u64, LONGEST_INPUT);
        assert_eq!(next(&mut input).unwrap().unwrap(), b"next\n");
        assert_eq!(next(&mut input).unwrap(), None);
    }
}

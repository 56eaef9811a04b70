//! Shells and interpreters: where their code stands.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::{Inner, joined};
use crate::guard::call::{Call, is_group};
use crate::guard::resolve::Value;

pub(crate) const SHELLS: &[&str] = &[
    "bash", "sh", "zsh", "ksh", "dash", "ash", "fish", "mksh", "rbash", "csh", "tcsh", "yash", "oksh", "posh", "nu",
    "elvish", "xonsh", "hush", "lksh", "pdksh", "rzsh", "rksh", "osh",
];

/// Interpreters with the options that take code.
pub(crate) const INTERPRETERS: &[(&str, &[&str])] = &[
    ("python", &["-c"]),
    ("pypy", &["-c"]),
    ("node", &["-e", "--eval", "-p", "--print", "-pe"]),
    ("nodejs", &["-e", "--eval", "-p", "--print", "-pe"]),
    ("bun", &["-e", "--eval", "-p", "--print"]),
    ("deno", &[]),
    ("perl", &["-e", "-E", "--eval"]),
    ("ruby", &["-e"]),
    ("php", &["-r", "-B", "-R", "-E"]),
    ("lua", &["-e"]),
    ("luajit", &["-e"]),
    ("osascript", &["-e"]),
    ("rscript", &["-e"]),
    ("r", &["-e"]),
    ("littler", &["-e"]),
    ("julia", &["-e", "-E", "--eval"]),
    ("tclsh", &[]),
    ("groovy", &["-e"]),
    ("scala", &["-e"]),
    ("elixir", &["-e"]),
    ("tsx", &["-e", "--eval", "-p", "--print"]),
    ("ts-node", &["-e", "--eval", "-p", "--print", "-pe"]),
    ("ipython", &["-c"]),
    ("bpython", &["-c"]),
    ("jython", &["-c"]),
    ("ghc", &["-e"]),
    ("guile", &["-c"]),
    ("erl", &["-eval"]),
    ("jshell", &[]),
    ("jjs", &[]),
    ("irb", &[]),
    ("clj", &["-e", "--eval"]),
    ("clojure", &["-e", "--eval"]),
    ("bb", &["-e", "--eval"]),
    ("racket", &["-e", "--eval"]),
    ("sbcl", &["--eval"]),
    ("kotlin", &["-e"]),
    ("raku", &["-e"]),
    ("qjs", &["-e", "--eval"]),
    ("janet", &["-e"]),
    ("pwsh", &["-c", "-command", "-file", "-f"]),
    ("powershell", &["-c", "-command", "-file", "-f"]),
];

/// Options of interpreters and shells whose value is the next word.
const VALUED: &[(&str, &[&str])] = &[
    ("python", &["-W", "-X", "-Q", "--check-hash-based-pycs"]),
    ("pypy", &["-W", "-X"]),
    (
        "node",
        &["-r", "--require", "--import", "-C", "--conditions", "--loader"],
    ),
    ("perl", &["-I"]),
    ("ruby", &["-I", "-r", "-C", "-E"]),
    ("php", &["-c", "-d", "-z"]),
    ("lua", &["-l"]),
    ("bash", &["--rcfile", "--init-file"]),
];

pub(crate) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// `python3.11` is `python`.
pub(crate) fn is_interpreter(name: &str) -> Option<&'static str> {
    let bare = name.trim_end_matches(|character: char| character.is_ascii_digit() || matches!(character, '.' | '-'));
    FAMILIES.get(bare).or_else(|| FAMILIES.get(name)).copied()
}

/// The names of the table above: every invocation is looked up several times.
static FAMILIES: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| INTERPRETERS.iter().map(|(name, _)| *name).collect());

fn valued(family: &str) -> &'static [&'static str] {
    VALUED
        .iter()
        .find(|(name, _)| *name == family)
        .map_or(&[], |(_, options)| options)
}

pub(super) fn unwrap(call: &Call, found: &mut Vec<Inner>) {
    match call.name.as_str() {
        "eval" => {
            let dashed = call.args.first().is_some_and(|first| first.text == "--");
            let words = call.args.get(usize::from(dashed)..).unwrap_or_default();
            found.push(Inner::shell(&joined(words)));
        }
        "trap" if call.args.len() > 1 => found.extend(call.operands().next().map(Inner::shell)),
        "mapfile" | "readarray" | "compgen" | "complete" => {
            found.extend(call.option_text(&["-C"]).map(|(text, arg)| Inner::part(text, arg.span)));
            found.extend(call.option_text(&["-F"]).map(|(text, arg)| Inner::part(text, arg.span)));
        }
        // `bind -x '"\C-x": CODE'`
        "bind" if call.short('x').is_some() => {
            let codes = call
                .args
                .iter()
                .filter_map(|arg| Some((arg.text.split_once("\":")?.1, arg.span)));
            found.extend(codes.map(|(code, span)| Inner::part(code, span)));
        }
        "newgrp" => found.extend(Inner::input(call)),
        "jobs" if call.args.first().is_some_and(|flag| flag.text == "-x") => {
            found.push(Inner::argv(call, call.args.get(1..).unwrap_or_default()));
        }
        "at" | "batch" | "crontab" if call.name != "crontab" || call.has(&["-"]).is_some() => {
            found.extend(Inner::input(call));
        }
        "source" | "."
            if call
                .args
                .first()
                .is_some_and(|file| file.text == "/dev/stdin" || is_descriptor(file)) =>
        {
            found.extend(Inner::input(call));
        }
        "source" | "." => found.extend(call.args.first().and_then(content)),
        "timeit" | "pdb" | "manage.py" | "django-admin" => hosted(call, found),
        name if is_shell(name) => shell(call, found),
        name => {
            if let Some(family) = is_interpreter(name) {
                foreign(call, family, found);
                module(call, family, found);
                if first_operand(call, family).is_some_and(|file| file.text.ends_with("manage.py")) {
                    hosted(call, found);
                }
            }
        }
    }
}

fn shell(call: &Call, found: &mut Vec<Inner>) {
    // What is read before anything else, and the long spellings of `fish`.
    let starts = call.option_texts(&["--rcfile", "--init-file"]).map(|(_, file)| file);
    found.extend(starts.filter_map(content));
    if call.name == "fish" {
        let code = call.option_texts(&["--command", "-C", "--init-command"]);
        found.extend(code.map(|(text, value)| Inner::part(text, value.span)));
    }
    if let Some(code) = shell_code(call) {
        found.push(Inner::shell(code));
    } else if reads_commands(call) {
        found.extend(Inner::input(call));
    } else {
        found.extend(first_operand(call, "bash").and_then(content));
    }
}

/// The script behind `<(…)`, when it is literal.
fn content(file: &Value) -> Option<Inner> {
    file.content.as_ref().map(|text| Inner::part(text, file.span))
}

/// `bash -n` only reads what it is given.
fn only_reads(call: &Call) -> bool {
    let options = call.args.iter().take_while(|arg| arg.text.starts_with(['-', '+']));
    let mut reads = false;
    for option in options {
        reads |= is_group(&option.text) && option.text.contains('n');
        if option.text.starts_with('+') {
            return false;
        }
    }
    reads
}

/// The code of `bash -c CODE`, also in a bundle as in `-lc`.
pub(crate) fn shell_code(call: &Call) -> Option<&Value> {
    let (has_code, at) = shell_options(call);
    call.args.get(at).filter(|_| has_code && !only_reads(call))
}

/// Whether a shell's options say that its first operand is code, and where that
/// operand stands. Each `o` in a bundle takes a word of its own (`-euo pipefail`).
fn shell_options(call: &Call) -> (bool, usize) {
    let (mut has_code, mut at) = (false, 0);
    while let Some(arg) = call.args.get(at) {
        let text = arg.text.as_str();
        if text == "--" {
            return (has_code, at + 1);
        }
        let letters = text.strip_prefix(['-', '+']).unwrap_or_default();
        if letters.is_empty() {
            // A lone dash ends the options too; without code it means the input.
            return (has_code, at + usize::from(text == "-" && has_code));
        }
        let words = if letters.bytes().all(|letter| letter.is_ascii_alphabetic()) {
            has_code |= text.starts_with('-') && letters.contains('c');
            letters.matches(['o', 'O']).count()
        } else {
            usize::from(valued("bash").contains(&text))
        };
        at += 1 + words;
    }
    (has_code, at)
}

/// A shell that reads its commands from standard input.
pub(crate) fn reads_commands(call: &Call) -> bool {
    if only_reads(call) {
        return false;
    }
    match first_operand(call, "bash") {
        None => shell_code(call).is_none() && call.has(&["--version", "--help"]).is_none(),
        Some(operand) => {
            let text = operand.text.as_str();
            matches!(text, "-" | "/dev/stdin") || is_descriptor(operand) || call.has(&["-s"]).is_some()
        }
    }
}

/// `/dev/fd/3`, but not what `<(…)` stands for.
fn is_descriptor(file: &Value) -> bool {
    file.known && (file.text.starts_with("/dev/fd/") || file.text.starts_with("/proc/self/fd/"))
}

fn first_operand<'c>(call: &'c Call, family: &str) -> Option<&'c Value> {
    if family == "bash" {
        return call.args.get(shell_options(call).1);
    }
    let mut at = 0;
    while let Some(arg) = call.args.get(at) {
        let text = arg.text.as_str();
        if text == "--" {
            return call.args.get(at + 1);
        }
        if !(text.starts_with('-') || text.starts_with('+')) || text == "-" {
            return Some(arg);
        }
        at += 1 + usize::from(valued(family).contains(&text));
    }
    None
}

/// The file that is run as a script.
pub(crate) fn script_file(call: &Call) -> Option<&Value> {
    match call.name.as_str() {
        "source" | "." => call.args.first(),
        name if is_shell(name) && shell_code(call).is_none() => first_operand(call, "bash"),
        name => match is_interpreter(name) {
            Some(family) if inline_code(call, family).is_none() => first_operand(call, family),
            _ => Some(&call.program),
        },
    }
}

/// The code of `python -c CODE` and its like, with the option's place.
pub(crate) fn inline_code<'c>(call: &'c Call, family: &str) -> Option<(&'c Value, Option<&'c Value>)> {
    let options = INTERPRETERS
        .iter()
        .find(|(name, _)| *name == family)
        .map_or(&[][..], |(_, options)| options);
    if matches!(family, "deno" | "bun") {
        let first = call.operands().next()?;
        if family == "deno" && first.text == "eval" {
            return Some((first, call.operands().nth(1)));
        }
    }
    let mut at = 0;
    while let Some(arg) = call.args.get(at) {
        let text = arg.text.as_str();
        if text == "--" || !text.starts_with('-') || text == "-" {
            return None;
        }
        if takes_code(family, text, options) {
            return Some((arg, call.args.get(at + 1)));
        }
        at += 1 + usize::from(valued(family).contains(&text));
    }
    None
}

/// Interpreters whose options are words behind one dash, never bundles of letters.
const WORDS: &[&str] = &[
    "ghc", "erl", "kotlin", "scala", "sbcl", "racket", "groovy", "jshell", "jjs",
];

fn takes_code(family: &str, text: &str, options: &[&str]) -> bool {
    if matches!(family, "pwsh" | "powershell") {
        return options.contains(&text.to_lowercase().as_str());
    }
    if text.starts_with("--")
        && let Some((name, _)) = text.split_once('=')
    {
        return options.contains(&name);
    }
    if options.contains(&text) {
        return true;
    }
    if !is_group(text) || family == "node" && text.len() > 3 || WORDS.contains(&family) {
        return false;
    }
    bundled(family, text, options)
}

/// `-ne CODE`: a letter that takes code inside a bundle. A letter that takes a
/// value ends the bundle before it (`-Wonce`, `-rjson`).
fn bundled(family: &str, text: &str, options: &[&str]) -> bool {
    let ending: &[char] = match family {
        "python" | "pypy" => &['W', 'X', 'm', 'Q'],
        "perl" => &['I', 'M', 'm', 'C', 'D', 'x', 'i', 'F'],
        "ruby" => &['I', 'r', 'C', 'E', 'K', 'T', 'W', 'x', 'i', 'F'],
        "php" => &['d', 'c', 'z', 'f'],
        "lua" | "luajit" => &['l'],
        _ => &[],
    };
    let letters = text.get(1..).unwrap_or_default();
    for letter in letters.chars() {
        if options
            .iter()
            .any(|option| option.len() == 2 && option.ends_with(letter))
        {
            return true;
        }
        if ending.contains(&letter) || !letter.is_ascii_alphanumeric() {
            return false;
        }
    }
    false
}

/// `node --import 'data:text/javascript,CODE'`: a module that is its own text.
pub(crate) fn module_text(call: &Call) -> Option<&Value> {
    let is_text = |arg: &&Value| arg.text.starts_with("data:") || arg.text.contains("=data:");
    call.options().find(is_text)
}

/// An interpreter without a file to run: its program stands on the input.
pub(crate) fn reads_program(call: &Call, family: &str) -> bool {
    if call.has(&["-m", "--version", "-V", "--help", "-h"]).is_some() {
        return false;
    }
    let operand = match family {
        "deno" | "bun" => call.operands().find(|arg| !matches!(arg.text.as_str(), "run" | "repl")),
        _ => first_operand(call, family),
    };
    operand.is_none_or(|file| matches!(file.text.as_str(), "-" | "/dev/stdin"))
}

/// `python -m pip …` runs what `pip …` does.
fn module(call: &Call, family: &str, found: &mut Vec<Inner>) {
    let dashed = || call.args.iter().position(|arg| arg.text == "-m");
    if let ("python" | "pypy", Some(at)) = (family, dashed()) {
        let words = call.args.get(at + 1..).unwrap_or_default();
        if !words.is_empty()
            && call
                .args
                .get(..at)
                .is_some_and(|before| before.iter().all(|arg| arg.text.starts_with('-')))
        {
            found.push(Inner::argv(call, words));
        }
    }
}

/// Modules and commands of projects that take a program as an argument.
fn hosted(call: &Call, found: &mut Vec<Inner>) {
    let code: Vec<&Value> = match call.name.as_str() {
        "timeit" => call.args.iter().collect(),
        "pdb" => call.option_texts(&["-c"]).map(|(_, value)| value).collect(),
        _ => {
            let shell = call
                .args
                .iter()
                .position(|arg| arg.text == "shell")
                .unwrap_or(usize::MAX);
            let code = call.option_texts(&["-c", "--command"]).map(|(_, value)| value);
            code.filter(|_| shell < call.args.len()).collect()
        }
    };
    found.extend(code.into_iter().map(|value| Inner::Foreign {
        text: value.text.clone(),
        span: value.span,
    }));
}

/// `--eval=CODE` and `-e'CODE'`.
fn attached_code(option: &str) -> Option<&str> {
    if option.starts_with("--") {
        return option.split_once('=').map(|(_, code)| code);
    }
    let letter = option.find(['e', 'E', 'c', 'r'])?;
    option.get(letter + 1..).filter(|code| code.len() > 1)
}

fn foreign(call: &Call, family: &str, found: &mut Vec<Inner>) {
    let code = inline_code(call, family).and_then(|(option, code)| {
        let attached = attached_code(&option.text).map(|code| (code.to_owned(), option.span));
        attached.or_else(|| code.map(|code| (code.text.clone(), code.span)))
    });
    match code {
        Some((text, span)) => found.push(Inner::Foreign { text, span }),
        None if first_operand(call, family).is_none_or(|operand| operand.text == "-") => {
            if let Some((text, span)) = call.input_text() {
                found.push(Inner::Foreign {
                    text: text.to_owned(),
                    span,
                });
            }
        }
        None => {}
    }
}

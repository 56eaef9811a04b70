//! Programs that run the command behind their own options.

use super::Inner;
use super::runners::without_version;
use super::wrapper_table::WRAPPERS;
use crate::guard::call::Call;
use crate::guard::options::{Grammar, is_assignment};
use crate::guard::resolve::Value;

const SESSION: Grammar = Grammar {
    valued: &["-s", "-n", "-t", "-c", "-F", "-x", "-y", "-S", "-e", "-h", "-p", "-dmS"],
    ..Grammar::PLAIN
};

pub(crate) fn wrapper(name: &str) -> Option<&'static Grammar> {
    WRAPPERS.iter().find(|grammar| grammar.names.contains(&name))
}

pub(super) fn unwrap(call: &Call, found: &mut Vec<Inner>) {
    if call.name == "parallel" {
        parallel(call, found);
    } else if let Some(grammar) = wrapper(&call.name) {
        wrapped(call, grammar, found);
    } else if call.name == "script" {
        if let Some((text, value)) = call.option_text(&["-c", "--command", "-qc", "-qec", "-qfc", "-fqc"]) {
            found.push(Inner::part(text, value.span));
        }
    } else if matches!(call.name.as_str(), "tmux" | "screen" | "byobu") {
        session(call, found);
    }
}

fn wrapped(call: &Call, grammar: &Grammar, found: &mut Vec<Inner>) {
    if call.name == "env" {
        split_string(call, found);
    }
    if matches!(call.name.as_str(), "flock" | "npx") && call.has(&["-c", "--command", "--call"]).is_some() {
        return;
    }
    let Some(at) = grammar.command_at(&call.args) else {
        return;
    };
    let (before, words) = call.args.split_at(at);
    let mut words = words.to_vec();
    if matches!(call.name.as_str(), "npx" | "bunx" | "pnpx" | "uvx") {
        words = words.iter().map(without_version).collect();
    }
    if is_feeding(&call.name) {
        feed_words(call, &mut words);
    }
    let assigned = before
        .iter()
        .filter(|word| grammar.assignments && is_assignment(&word.text));
    let assigned = assigned.filter_map(|word| word.text.split_once('=').map(|(name, text)| (name, text, word)));
    let assigned = assigned
        .map(|(name, text, word)| {
            (
                name.to_owned(),
                Value {
                    text: text.to_owned(),
                    verbatim: None,
                    ..word.clone()
                },
            )
        })
        .collect();
    found.push(Inner::Argv {
        wrapper: call.name.clone(),
        words,
        contained: false,
        guessed: false,
        assigned,
        cwd: directory(call),
    });
}

/// Where the command will run, when an option says so.
fn directory(call: &Call) -> Option<String> {
    let options: &[&str] = match call.name.as_str() {
        "env" | "genv" => &["-C", "--chdir"],
        "sudo" | "run0" => &["-D", "--chdir"],
        "systemd-run" => &["--working-directory"],
        "nsenter" | "unshare" => &["-w", "--wd"],
        "bwrap" => &["--chdir"],
        _ => return None,
    };
    call.option_text(options).map(|(text, _)| text.to_owned())
}

fn is_feeding(name: &str) -> bool {
    matches!(name, "xargs" | "gxargs")
}

/// `parallel 'cmd {}' ::: a b`: a line of shell with the words filled in.
fn parallel(call: &Call, found: &mut Vec<Inner>) {
    let grammar = Grammar {
        valued: &[
            "-j",
            "-I",
            "-a",
            "-S",
            "-N",
            "-n",
            "-L",
            "-C",
            "--jobs",
            "--colsep",
            "--arg-file",
            "--sshlogin",
            "--timeout",
            "--delay",
        ],
        ..Grammar::PLAIN
    };
    let Some(at) = grammar.command_at(&call.args) else {
        return;
    };
    let tail = call.args.get(at..).unwrap_or_default();
    let cut = tail
        .iter()
        .position(|arg| arg.text.starts_with(":::"))
        .unwrap_or(tail.len());
    let (words, given) = tail.split_at(cut);
    if words.is_empty() {
        // Without a command every argument is one, and so is every line.
        let given = given.iter().filter(|arg| !arg.text.starts_with(":::"));
        found.extend(given.map(Inner::shell));
        found.extend(Inner::input(call));
        return;
    }
    let line = super::joined(words);
    let mut fed: Vec<String> = given
        .iter()
        .filter(|arg| !arg.text.starts_with(":::"))
        .map(|arg| arg.text.clone())
        .collect();
    if fed.is_empty()
        && let Some((text, _)) = call.input_text()
    {
        fed = text.split_whitespace().take(64).map(str::to_owned).collect();
    }
    let text = if line.text.contains("{}") {
        line.text.replace("{}", &fed.join(" "))
    } else {
        format!("{} {}", line.text, fed.join(" "))
    };
    let nothing_given = fed.is_empty();
    let text = if nothing_given {
        format!("{text} \"$FED\"")
    } else {
        text
    };
    found.push(Inner::Argv {
        wrapper: call.name.clone(),
        words: vec![Value::literal("eval", line.span), Value::literal(&text, line.span)],
        contained: false,
        guessed: false,
        assigned: Vec::new(),
        cwd: None,
    });
}

/// Words that come from the input: at the end, or where the placeholder stands.
fn feed_words(call: &Call, words: &mut Vec<Value>) {
    let placeholder = call.option_text(&["-I", "--replace"]).map(|(text, _)| text);
    let short = call.has(&["-i"]).map(|_| "{}");
    let placeholder = placeholder.or(short);
    if let Some(placeholder) = placeholder.filter(|placeholder| !placeholder.is_empty()) {
        let line = call.input_text().and_then(|(text, _)| text.lines().next());
        for word in words.iter_mut().filter(|word| word.text.contains(placeholder)) {
            *word = match line {
                Some(line) => Value::literal(&word.text.replace(placeholder, line), word.span),
                None => Value::unknown(&word.text, word.span),
            };
        }
        return;
    }
    match call.input_text() {
        Some((text, span)) => {
            let fed = text
                .split([' ', '\t', '\n', '\0'])
                .filter(|word| !word.is_empty())
                .take(256);
            words.extend(fed.map(|word| Value::literal(word.trim_matches(['"', '\'']), span)));
        }
        None => words.push(Value::unknown("…", call.span)),
    }
}

/// `env -S 'cmd arg'`.
fn split_string(call: &Call, found: &mut Vec<Inner>) {
    if let Some((text, value)) = call.option_text(&["-S", "--split-string", "-vS", "-iS"]) {
        let rest = call.args.iter().skip_while(|arg| !std::ptr::eq(*arg, value)).skip(1);
        let tail: String = rest.flat_map(|arg| [" ", arg.text.as_str()]).collect();
        found.push(Inner::part(&format!("{text}{tail}"), value.span));
    }
}

/// Terminal sessions that are started with a command.
fn session(call: &Call, found: &mut Vec<Inner>) {
    let starts = [
        "new",
        "new-session",
        "new-window",
        "neww",
        "split-window",
        "splitw",
        "send-keys",
        "send",
        "respawn-pane",
        "respawn-window",
        "run-shell",
        "run",
        "if-shell",
        "pipe-pane",
        "stuff",
        "popup",
        "display-popup",
    ];
    let verb = call.args.iter().position(|arg| starts.contains(&arg.text.as_str()));
    let from = match (call.name.as_str(), verb) {
        (_, Some(at)) => at + 1,
        ("screen", None) => 0,
        _ => return,
    };
    let tail = call.args.get(from..).unwrap_or_default();
    if let Some(at) = SESSION.command_at(tail) {
        let words = tail.get(at..).unwrap_or_default();
        found.push(Inner::shell(&super::joined(words)));
        // `if-shell` and `send-keys` take several lines.
        found.extend(words.iter().filter(|word| word.text.contains(' ')).map(Inner::shell));
    }
}

//! Which files an invocation changes, and by which means.

use crate::guard::call::{Call, How, Write, is_group};
use crate::guard::resolve::Value;
use crate::guard::shell::Operator;

/// Options that name an output file.
const OUTPUT_OPTIONS: &[(&str, &[&str])] = &[
    ("sort", &["-o", "--output"]),
    ("tree", &["-o"]),
    ("git", &["--output"]),
    (
        "curl",
        &[
            "-o",
            "--output",
            "-D",
            "--dump-header",
            "-c",
            "--cookie-jar",
            "--output-dir",
            "--trace",
        ],
    ),
    (
        "wget",
        &[
            "-O",
            "--output-document",
            "-P",
            "--directory-prefix",
            "-o",
            "--output-file",
        ],
    ),
    ("zip", &["-O"]),
    ("script", &["-O"]),
    ("aria2c", &["-o", "-d", "--dir"]),
    ("strace", &["-o"]),
    ("gpg", &["-o", "--output"]),
    ("base64", &["-o"]),
    ("age", &["-o"]),
    ("xmllint", &["-o", "--output"]),
    ("uniq", &[]),
    ("patch", &["-o"]),
    ("openssl", &["-out"]),
    ("gcc", &["-o"]),
    ("cc", &["-o"]),
    ("jq", &["-o"]),
    ("yq", &["-o"]),
    ("pandoc", &["-o", "--output"]),
    ("sqlite3", &["-output"]),
    ("find", &["-fprint", "-fprint0", "-fls", "-fprintf"]),
];

pub(crate) fn writes(call: &Call) -> Vec<Write> {
    let mut found = Vec::new();
    for redirect in &call.redirects {
        let writes = match redirect.operator {
            Operator::Write | Operator::Append | Operator::ReadWrite => true,
            Operator::DuplicateOut => !is_descriptor(&redirect.target.text),
            _ => false,
        };
        if writes {
            found.push(write(&redirect.target, How::Redirect));
        }
    }
    match call.name.as_str() {
        "tee" | "gtee" | "sponge" => found.extend(call.operands().map(|file| write(file, How::Tee))),
        "cp" | "mv" | "install" | "gcp" | "gmv" | "rsync" | "scp" | "ln" => copied(call, &mut found),
        "sed" | "gsed" => sed(call, &mut found),
        "perl" | "ruby" => in_place_script(call, &mut found),
        "rm" | "unlink" | "shred" => found.extend(call.operands().map(|file| write(file, How::Delete))),
        "ed" | "ex" => found.extend(call.operands().map(|file| write(file, How::InPlace))),
        "awk" | "gawk"
            if call
                .option_text(&["-i", "--include"])
                .is_some_and(|(text, _)| text == "inplace") =>
        {
            found.extend(call.operands().skip(2).map(|file| write(file, How::InPlace)));
        }
        "tar" | "gtar" | "bsdtar" => archive(call, &mut found),
        "zip" => found.extend(
            call.operands()
                .next()
                .filter(|file| file.text != "-")
                .map(|file| part(&file.text, file)),
        ),
        "awk" | "gawk" | "mawk" | "nawk" => awk(call, &mut found),
        "truncate" | "touch" => found.extend(call.operands().map(|file| write(file, How::Output))),
        "dd" => {
            let target = call
                .args
                .iter()
                .find_map(|arg| arg.text.strip_prefix("of=").map(|path| (path, arg)));
            found.extend(target.map(|(path, arg)| part(path, arg)));
        }
        name => {
            if let Some((_, options)) = OUTPUT_OPTIONS.iter().find(|(known, _)| *known == name) {
                found.extend(call.option_texts(options).map(|(path, arg)| part(path, arg)));
            }
        }
    }
    found
}

fn write(file: &Value, how: How) -> Write {
    Write {
        path: file.text.clone(),
        how,
        span: file.span,
    }
}

fn part(path: &str, arg: &Value) -> Write {
    Write {
        path: path.to_owned(),
        how: How::Output,
        span: arg.span,
    }
}

/// `tar czf FILE …`: the archive that is made.
fn archive(call: &Call, found: &mut Vec<Write>) {
    let Some(first) = call.args.first() else { return };
    let makes = first.text.trim_start_matches('-').contains('c') && !first.text.starts_with("--")
        || call.has(&["--create"]).is_some();
    let bundled = call.args.iter().position(|arg| {
        (is_group(&arg.text) || arg.span == first.span) && arg.text.ends_with('f') && !arg.text.starts_with("--")
    });
    let file = bundled
        .and_then(|at| call.args.get(at + 1))
        .map(|file| (file.text.as_str(), file))
        .or_else(|| call.option_text(&["--file"]));
    found.extend(
        file.filter(|(text, _)| makes && *text != "-")
            .map(|(text, arg)| part(text, arg)),
    );
}

/// `print > "FILE"` in a program of awk.
fn awk(call: &Call, found: &mut Vec<Write>) {
    let Some(program) = call.operands().next() else { return };
    for rest in program.text.split('>').skip(1) {
        let rest = rest.trim_start();
        if let Some((path, _)) = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
            found.push(part(path, program));
        }
    }
}

fn is_descriptor(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// The last operand, or the folder that `-t` names.
fn copied(call: &Call, found: &mut Vec<Write>) {
    if let Some((folder, arg)) = call
        .option_text(&["-t", "--target-directory"])
        .filter(|_| call.name != "rsync")
    {
        found.push(Write {
            path: folder.to_owned(),
            how: How::Copy,
            span: arg.span,
        });
        return;
    }
    let operands: Vec<&Value> = call.operands().collect();
    // Behind the words that are written `xargs` puts those that it reads, or none.
    let extended = call.wrapped_by(&["xargs", "gxargs", "parallel"]);
    let targets = operands.get(if extended { 1 } else { operands.len().max(2) - 1 }..);
    found.extend(targets.into_iter().flatten().map(|target| write(target, How::Copy)));
}

fn sed(call: &Call, found: &mut Vec<Write>) {
    let in_place = call.long("in-place", 2).is_some()
        || call.options().any(|arg| {
            is_group(&arg.text)
                && arg.text.split('i').next().is_some_and(|head| {
                    head.len() < arg.text.len() && head.bytes().all(|flag| b"-nErsuz".contains(&flag))
                })
        });
    let named_script = call
        .short('e')
        .or(call.short('f'))
        .or(call.long("expression", 2))
        .is_some();
    let mut operands = call.operands().filter(|operand| !operand.text.is_empty());
    if !named_script && let Some(script) = operands.next() {
        found.extend(sed_outputs(&script.text).map(|path| part(path, script)));
    }
    for (script, arg) in call.option_texts(&["-e", "--expression"]) {
        found.extend(sed_outputs(script).map(|path| part(path, arg)));
    }
    if in_place {
        let files: Vec<&Value> = operands.collect();
        // A lone operand may be the file of a script that is not understood.
        let alone = call.operands().last().filter(|_| files.is_empty());
        found.extend(files.into_iter().chain(alone).map(|file| write(file, How::InPlace)));
    }
}

/// Files behind `w` in a sed script.
fn sed_outputs(script: &str) -> impl Iterator<Item = &str> {
    script.split(['\n', ';']).filter_map(|line| {
        let (before, path) = line.split_once("w ")?;
        let before = before.trim_end();
        let ends_command = before.is_empty()
            || before.ends_with(['/', '$', '}', '{', 'g', 'p', 'I', '|', '#', '!'])
            || before.ends_with(|last: char| last.is_ascii_digit());
        ends_command.then_some(path.trim())
    })
}

fn in_place_script(call: &Call, found: &mut Vec<Write>) {
    let in_place = call.options().any(|arg| {
        is_group(&arg.text)
            && arg.text.split('i').next().is_some_and(|head| {
                head.len() < arg.text.len() && head.bytes().all(|flag| b"-pnlawWs0".contains(&flag))
            })
    });
    if in_place {
        found.extend(call.operands().map(|file| write(file, How::InPlaceScript)));
    }
}

//! Rewritings that keep what the shell does, composed up to three deep: none
//! may turn a question into a permission, none may turn the harmless into the
//! forbidden. Bash is asked whether the rewritings keep their promise.

use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::corpus::{dangerous, everyday};
use super::verdict;
use crate::guard::Verdict;

struct Rewrite {
    name: &'static str,
    apply: fn(&str) -> String,
    /// Adds nothing to be asked about by itself.
    plain: bool,
    /// Runs on this machine, so that bash can be asked.
    here: bool,
}

const fn plain(name: &'static str, apply: fn(&str) -> String) -> Rewrite {
    Rewrite {
        name,
        apply,
        plain: true,
        here: true,
    }
}

const fn asked(name: &'static str, apply: fn(&str) -> String) -> Rewrite {
    Rewrite {
        plain: false,
        ..plain(name, apply)
    }
}

const fn away(name: &'static str, apply: fn(&str) -> String) -> Rewrite {
    Rewrite {
        plain: false,
        here: false,
        ..plain(name, apply)
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The words of a line that is made of words alone, so that each may be
/// written in another way; none for any other line.
fn words(text: &str) -> Option<Vec<&str>> {
    let simple = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b" ./_:,@+-".contains(&byte));
    let keyword = [
        "if", "for", "while", "until", "case", "select", "function", "time", "coproc", "then", "do",
    ];
    let first = text.split(' ').next().unwrap_or_default();
    (simple && !first.is_empty() && !keyword.contains(&first))
        .then(|| text.split(' ').filter(|word| !word.is_empty()).collect())
}

fn each_word(text: &str, change: fn(&str) -> String) -> String {
    match words(text) {
        Some(words) => words.into_iter().map(change).collect::<Vec<_>>().join(" "),
        None => text.to_owned(),
    }
}

fn first_word(text: &str, change: fn(&str) -> String) -> String {
    match words(text) {
        Some(words) => {
            let (first, rest) = words.split_first().unwrap();
            let rest: String = rest.iter().flat_map(|word| [" ", word]).collect();
            format!("{}{rest}", change(first))
        }
        None => text.to_owned(),
    }
}

fn base64_of(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

fn hex_escapes(text: &str) -> String {
    text.bytes().map(|byte| format!("\\x{byte:02x}")).collect()
}

fn octal_escapes(text: &str) -> String {
    text.bytes().map(|byte| format!("\\{byte:03o}")).collect()
}

const REWRITES: &[Rewrite] = &[
    plain("subshell", |text| format!("( {text}\n)")),
    plain("group", |text| format!("{{ {text}\n}}")),
    plain("after and", |text| format!("true && {text}")),
    plain("after or", |text| format!("false || {text}")),
    plain("after semicolon", |text| format!(":; {text}")),
    plain("after background", |text| format!("true &\n{text}")),
    plain("substitution", |text| format!("echo \"$( {text}\n)\"")),
    plain("backticks", |text| {
        let inner: String = text
            .chars()
            .flat_map(|character| match character {
                '\\' | '`' | '$' => vec!['\\', character],
                other => vec![other],
            })
            .collect();
        format!("echo `{inner}`")
    }),
    plain("condition", |text| format!("if true; then {text}\nfi")),
    plain("else branch", |text| format!("if false; then :; else {text}\nfi")),
    plain("while condition", |text| format!("while {text}\ndo break; done")),
    plain("for loop", |text| format!("for i in 1; do {text}\ndone")),
    plain("case arm", |text| format!("case a in b) ;; a) {text}\n;; esac")),
    plain("function", |text| format!("fn_x() {{ {text}\n}}; fn_x")),
    plain("negation", |text| format!("! {text}")),
    plain("comment behind", |text| format!("{text} # nothing to see")),
    plain("comment before", |text| format!("# harmless\n{text}")),
    plain("process substitution", |text| format!("cat <(\n{text}\n)")),
    plain("assignment before", |text| match words(text) {
        Some(_) => format!("A_1=b {text}"),
        None => format!("A_1=b; {text}"),
    }),
    plain("redirect before", |text| match words(text) {
        Some(_) => format!("</dev/null {text}"),
        None => text.to_owned(),
    }),
    plain("command builtin", |text| match words(text) {
        Some(_) => format!("command {text}"),
        None => text.to_owned(),
    }),
    plain("more blanks", |text| each_word(text, |word| format!(" \t{word}  "))),
    plain("joined lines", |text| each_word(text, |word| format!("{word} \\\n"))),
    plain("single quotes", |text| each_word(text, |word| format!("'{word}'"))),
    plain("double quotes", |text| each_word(text, |word| format!("\"{word}\""))),
    plain("quotes inside", |text| {
        each_word(text, |word| format!("{}''{}", &word[..1], &word[1..]))
    }),
    plain("backslashes", |text| {
        each_word(text, |word| {
            word.chars().flat_map(|character| ['\\', character]).collect()
        })
    }),
    plain("ANSI-C hex", |text| {
        each_word(text, |word| format!("$'{}'", hex_escapes(word)))
    }),
    plain("ANSI-C octal", |text| {
        first_word(text, |word| format!("$'{}'", octal_escapes(word)))
    }),
    asked("empty expansion", |text| {
        each_word(text, |word| format!("{word}${{unset_name_x}}"))
    }),
    plain("variable", |text| match words(text) {
        Some(words) => {
            let rest: String = words.iter().skip(1).flat_map(|word| [" ", word]).collect();
            format!("v_x={}; $v_x{rest}", words[0])
        }
        None => text.to_owned(),
    }),
    plain("array", |text| match words(text) {
        Some(_) => format!("a_x=({text}); \"${{a_x[@]}}\""),
        None => text.to_owned(),
    }),
    plain("positional parameters", |text| match words(text) {
        Some(_) => format!("set -- {text}; \"$@\""),
        None => text.to_owned(),
    }),
    plain("default value", |text| {
        first_word(text, |word| format!("${{unset_name_y:-{word}}}"))
    }),
    plain("echo substitution", |text| {
        first_word(text, |word| format!("$(echo {word})"))
    }),
    plain("IFS for blanks", |text| match words(text) {
        Some(words) => words.join("${IFS}"),
        None => text.to_owned(),
    }),
    plain("brace list", |text| match words(text) {
        Some(words) if words.len() > 1 && !text.contains(',') => format!("{{{}}}", words.join(",")),
        _ => text.to_owned(),
    }),
    plain("time", |text| format!("time {text}")),
    plain("nested groups", |text| format!("{{ ( {{ {text}\n}} ); }}")),
    asked("eval", |text| format!("eval {}", quoted(text))),
    asked("bash -c", |text| format!("bash -c {}", quoted(text))),
    asked("sh -c in env", |text| {
        format!("env A=1 nice -n 5 bash -c {}", quoted(text))
    }),
    asked("timeout", |text| format!("timeout 5 bash -c {}", quoted(text))),
    asked("eval of variable", |text| {
        format!("x_x={}; eval \"$x_x\"", quoted(text))
    }),
    asked("printf to shell", |text| format!("printf %s {} | bash", quoted(text))),
    asked("base64 to shell", |text| {
        format!("echo {} | base64 -d | bash", base64_of(text))
    }),
    asked("octal to shell", |text| {
        format!("printf '{}' | bash", octal_escapes(text))
    }),
    asked("here-string", |text| format!("bash <<< {}", quoted(text))),
    asked("here-document", |text| {
        format!("bash <<'OUTER_END'\n{text}\nOUTER_END\n")
    }),
    asked("trap", |text| format!("trap {} EXIT", quoted(text))),
    asked("sourced text", |text| format!("source /dev/stdin <<< {}", quoted(text))),
    asked("xargs shell", |text| {
        format!("echo x | xargs -I% bash -c {}", quoted(text).replace('%', "%%"))
    }),
    asked("script file", |text| {
        format!("echo {} > ./s_x.sh; bash ./s_x.sh", quoted(text))
    }),
    asked("find -exec", |text| {
        format!("find . -maxdepth 0 -exec bash -c {} \\;", quoted(text))
    }),
    away("sudo", |text| format!("sudo sh -c {}", quoted(text))),
    away("ssh", |text| format!("ssh host {}", quoted(text))),
    away("nix-shell", |text| format!("nix-shell --run {}", quoted(text))),
    away("tmux", |text| format!("tmux new -d {}", quoted(text))),
    away("stranger", |text| format!("mywrap --fast bash -c {}", quoted(text))),
];

fn applied(command: &str, chosen: &[usize]) -> String {
    chosen
        .iter()
        .fold(command.to_owned(), |text, at| (REWRITES[*at].apply)(&text))
}

fn names(chosen: &[usize]) -> Vec<&'static str> {
    chosen.iter().map(|at| REWRITES[*at].name).collect()
}

/// Lines that another line may be wrapped around.
fn wrappable(lines: Vec<String>) -> Vec<String> {
    let odd = |line: &String| line.contains('\n') || line.contains("<<") || line.contains('#') || line.contains("&!");
    lines.into_iter().filter(|line| !odd(line)).collect()
}

fn plain_rewrites() -> Vec<usize> {
    (0..REWRITES.len()).filter(|at| REWRITES[*at].plain).collect()
}

#[test]
fn there_are_many_kinds_of_rewriting() {
    assert!(REWRITES.len() >= 40, "{}", REWRITES.len());
    assert!(plain_rewrites().len() >= 20);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_rewriting_makes_a_dangerous_command_allowed(
        command in prop::sample::select(wrappable(dangerous())),
        chosen in prop::collection::vec(0..REWRITES.len(), 0..4),
    ) {
        let text = applied(&command, &chosen);
        prop_assert!(verdict(&text) >= Verdict::Ask, "{:?} made of {command:?}: {text}", names(&chosen));
    }

    #[test]
    fn no_rewriting_makes_a_harmless_command_denied(
        command in prop::sample::select(wrappable(everyday())),
        chosen in prop::collection::vec(0..REWRITES.len(), 0..4),
    ) {
        let text = applied(&command, &chosen);
        prop_assert!(verdict(&text) < Verdict::Deny, "{:?} made of {command:?}: {text}", names(&chosen));
    }

    #[test]
    fn plain_rewriting_of_a_harmless_command_stays_allowed(
        command in prop::sample::select(SIMPLE),
        chosen in prop::collection::vec(prop::sample::select(plain_rewrites()), 0..4),
    ) {
        let text = applied(command, &chosen);
        prop_assert_eq!(verdict(&text), Verdict::Allow, "{:?} made of {:?}: {}", names(&chosen), command, text);
    }
}

const SIMPLE: &[&str] = &[
    "ls -la",
    "git status",
    "echo rm -rf",
    "grep -n reboot app.log",
    "cargo build --release",
    "cat a | head",
    "cd x && make",
    "npm test",
    "docker ps -a",
    "find . -name x",
];

/// A folder with one program, which writes down the words it was called with.
struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("probe");
        std::fs::write(
            &program,
            "#!/bin/sh\nfor word; do printf '[%s]' \"$word\"; done >> \"$PROBE_LOG\"\n",
        )
        .unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    /// What the program was called with when bash runs the text.
    fn run(&self, text: &str) -> String {
        let log = self.folder.path().join("log");
        let _ = std::fs::remove_file(&log);
        let status = Command::new("bash")
            .args(["--norc", "--noprofile", "-c", text])
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", self.folder.path().display()))
            .env("PROBE_LOG", &log)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.unwrap();
        std::fs::read_to_string(&log).unwrap_or_default()
    }
}

fn bash_is_here() -> bool {
    Path::new("/bin/bash").exists() || Path::new("/usr/bin/bash").exists()
}

/// Bash starts the same program with the same words, whatever is around it.
#[test]
fn the_rewritings_mean_the_same_to_bash() {
    if !bash_is_here() {
        return;
    }
    let stage = Stage::new();
    let local: Vec<usize> = (0..REWRITES.len()).filter(|at| REWRITES[*at].here).collect();
    let mut wrong = Vec::new();
    for at in &local {
        let text = applied("probe one two.2", &[*at]);
        let seen = stage.run(&text);
        if seen != "[one][two.2]" {
            wrong.push(format!("{}: {seen:?} by {text:?}", REWRITES[*at].name));
        }
    }
    // Every rewriting inside and around another one, each pair once in seven.
    for (position, (inner, outer)) in local
        .iter()
        .flat_map(|inner| local.iter().map(move |outer| (*inner, *outer)))
        .enumerate()
    {
        // A trap for the end that is set at the end comes too late.
        let late = inner == outer && REWRITES[inner].name == "trap";
        if position % 7 != 0 || late {
            continue;
        }
        let text = applied("probe one two.2", &[inner, outer]);
        let seen = stage.run(&text);
        if seen != "[one][two.2]" {
            wrong.push(format!("{:?}: {seen:?} by {text:?}", names(&[inner, outer])));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

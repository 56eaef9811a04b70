//! Bash itself as the judge of the grammar: every shell script on the machine
//! where the tests run, and lines of our own.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Trouble, parse};

/// Scripts longer than what the guard accepts are none of its business.
const LONGEST: u64 = 128_000;
const MOST: usize = 1_500;
const FOLDERS: &[&str] = &["/usr", "/etc", "/lib", "/opt", "/bin", "/sbin", "/var/lib/dpkg"];

pub(super) fn bash_is_here() -> bool {
    Path::new("/bin/bash").exists() || Path::new("/usr/bin/bash").exists()
}

/// Whether bash takes the text for a script; options that scripts set for
/// themselves (extended patterns) are on, as they are in our grammar.
pub(super) fn bash_accepts(text: &str) -> bool {
    let mut child = Command::new("bash")
        .args(["--norc", "-O", "extglob", "-n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let _ = input.write_all(text.as_bytes());
    drop(input);
    child.wait().unwrap().success()
}

pub(super) fn our_answer(text: &str) -> Option<Trouble> {
    parse(text).trouble
}

fn is_shell_script(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    let interpreter = first.strip_prefix("#!").unwrap_or_default();
    let mut words = interpreter.split_whitespace().filter(|word| !word.starts_with('-'));
    let program = words
        .next()
        .and_then(|path| path.rsplit('/').next())
        .unwrap_or_default();
    let program = if program == "env" {
        words.next().unwrap_or_default()
    } else {
        program
    };
    matches!(program, "sh" | "bash" | "dash")
}

pub(super) fn scripts() -> Vec<(PathBuf, String)> {
    let mut waiting: Vec<PathBuf> = FOLDERS.iter().map(PathBuf::from).collect();
    let mut seen = std::collections::HashSet::new();
    let mut found = Vec::new();
    while let Some(folder) = waiting.pop() {
        // `/bin` is a link to `/usr/bin` on most systems.
        let Ok(real) = folder.canonicalize() else { continue };
        if !seen.insert(real) {
            continue;
        }
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else {
                continue;
            };
            if kind.is_dir() {
                waiting.push(path);
            } else if kind.is_file()
                && entry
                    .metadata()
                    .is_ok_and(|meta| meta.len() > 20 && meta.len() < LONGEST)
            {
                found.extend(script(&path).map(|text| (path, text)));
            }
            if found.len() >= MOST {
                return found;
            }
        }
    }
    found
}

/// The text of a shell script; of other files only the beginning is read.
fn script(path: &Path) -> Option<String> {
    use std::io::Read as _;
    let mut file = std::fs::File::open(path).ok()?;
    let mut head = [0_u8; 2];
    file.read_exact(&mut head).ok()?;
    if &head != b"#!" {
        return None;
    }
    let mut rest = String::new();
    file.read_to_string(&mut rest).ok()?;
    let text = format!("#!{rest}");
    is_shell_script(&text).then_some(text)
}

/// Where both differ for a reason: the end of the path, and the reason.
const EXPLAINED: &[(&str, &str)] = &[];

#[test]
fn the_grammar_agrees_with_bash_on_the_scripts_of_this_machine() {
    if !bash_is_here() {
        return;
    }
    let scripts = scripts();
    let (mut agreed, mut limited) = (0, 0);
    let mut wrong = Vec::new();
    for (path, text) in &scripts {
        let ours = our_answer(text);
        if matches!(ours, Some(Trouble::Limit { .. })) {
            limited += 1;
            continue;
        }
        let explained = EXPLAINED.iter().any(|(end, _)| path.ends_with(end));
        if ours.is_none() == bash_accepts(text) || explained {
            agreed += 1;
        } else {
            wrong.push(format!("{}: {ours:?}", path.display()));
        }
    }
    println!(
        "shell scripts: {} found, {agreed} agree, {limited} beyond a limit",
        scripts.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Lines on which parsers stumble: what bash takes, and what it refuses.
pub(super) const LINES: &[&str] = &[
    "a=(1 2 [5]=x); echo ${a[@]:1:2}",
    "echo {a,b}{1..3} {x..z..2}",
    "3<>file cat <&3 {fd}>out",
    "cat <<A <<'B'\na\nA\nb\nB",
    "cat <<-E | tr a b\n\tx\n\tE",
    "cat <<\"a b\"\nx\na b",
    "cat <<E$x\ny\nE$x",
    "if a; then b; elif c; then d; else e; fi > f 2>&1 &",
    "case x in a|b) ;; (c) d ;& e*) f ;;& *) ;; esac",
    "case in in in) echo in;; esac",
    "for x; do echo $x; done",
    "for x in a b; { echo $x; }",
    "for ((i=0; i<3; i++)); do :; done",
    "for ((;;)) { break; }",
    "select x in a; do break; done",
    "while read a b; do :; done < <(ls)",
    "until [ -f x ]; do sleep 1; done",
    "f() { :; } > out",
    "f() ( : )",
    "f() if true; then :; fi",
    "function g { :; }",
    "function g () { :; }",
    "function a-b.c { :; }",
    "a-b() { :; }",
    "coproc NAME { ls; }",
    "coproc ls -l",
    "time -p ls | wc",
    "time",
    "! ! true",
    "[[ a =~ ^(b|c)+$ && ( -f x || ! -d y ) ]]",
    "[[ $x == *.(c|h) ]]",
    "[[ a < b ]] && [[ -n ${x} ]]",
    "[[ -e a\n&& -e b ]]",
    "(( a = b ? c : d, e <<= 2 ))",
    "(( (1+2) * 3 ))",
    "echo $(( (1+2) << 3 )) $(( x[1] ))",
    "echo $((echo a); (echo b))",
    "echo $[1+2]",
    "echo ${x:-${y:-$(echo \"}\")}}",
    "echo ${x//\\//_} ${x/#a/b} ${x/%a/b} ${x^^} ${x,} ${x@Q}",
    "echo ${!x} ${!a[@]} ${!p*} ${#x} ${#a[@]} ${#} ${#-}",
    "echo ${x:1:2} ${x: -1} ${@:2} ${*%a}",
    "echo \"${x:-\"a b\"}\" \"${x:-'}'}\"",
    "echo $'a\\'b' $\"c\" 'd'\"e\"f\\ g",
    "echo `echo \\`echo x\\`` \"`echo \\\"y\\\"`\"",
    "echo a#b #c",
    "echo @(a|b) !(c) *(d) ?(e) +(f)",
    "ls !(*.txt)",
    "a=b c+=d e[1]=f g[$h]+=i cmd",
    "declare -A m=([a]=1 [b c]=2) n=(x)",
    "export A=b C=\"d e\"",
    "let x=1+2 'y = 3'",
    "x=$(cat <<E\na)\nE\n)",
    "x=$(case y in y) echo z;; esac)",
    "echo \"$(echo \"$(echo \"x\")\")\"",
    "diff <(sort a) <(sort b) > >(tee c)",
    "cmd >&2 2>&1 &>f &>>g >|h <>i <&- >&-",
    "ls |& grep x",
    "a && b || c; d & e",
    "a &&\nb |\nc",
    "{ a; b; } | { c; }",
    "((a)) || ((b))",
    "(a;b)|(c)",
    "if ((x)); then :; fi",
    "if [[ x ]]; then :; fi; [ a = b ]",
    "alias x='y z'",
    "trap 'echo \"a b\"' EXIT INT",
    "a() { cat <<E\nx\nE\n}; a",
    "echo \\\n  b",
    "echo 'a\nb' \"c\nd\"",
    "echo ~ ~root a=~ *",
    "echo } { if then",
    "echo a}b {c d=e",
    "x={a,b}; echo $x",
    "exec 3< f 4>&3",
    "while :; do case x in y) break;; esac; done",
    ":(){ :|:& };:",
    "echo ${a[${b[1]}]} ${a[\"x y\"]}",
    "echo $x$y\"$z\"${w}v $1 $10 ${10} $@ $* $# $? $- $$ $! $_",
    "cat <<< \"a b\" <<< c",
    "[ \"$a\" = '(' ]",
    "test ! -f x -a \\( -d y -o -e z \\)",
    "echo ${x/(/[} ${x//[()]/}",
    "printf '%s\\n' \"${arr[@]/#/--}\"",
    "echo \"${x%%[[:space:]]*}\" ${x##*(0)}",
    "#!/bin/sh\n\n# only comments",
    "",
    "\n\n;",
    "a ;; b",
    "a &&",
    "| b",
    "if a; fi",
    "if a; then; fi",
    "while a; do done",
    "for in x; do :; done",
    "case x in a) b",
    "( a",
    "a )",
    "{ a",
    "a }",
    "} a",
    "echo $(a",
    "echo ${a",
    "echo `a",
    "echo \"a",
    "echo 'a",
    "echo $((1+",
    "f( { :; }",
    "f() ",
    "function",
    "a > ",
    "a > > b",
    "a < | b",
    "a=(b",
    "a | | b",
    "a & & b",
    "a ; ; b",
    "&& a",
    "then a",
    "do a; done",
    "fi",
    "esac",
    "[[ a",
    "[[ ]]",
    "[[ a b ]]",
    "[[ ( a ]]",
    "(( a",
    "select; do :; done",
    "time -x; )",
    "! ",
    "case a in esac",
    "case a b) c;; esac",
    "a () b ( c )",
    "foo() bar",
    "x=1 foo() { :; }",
    "echo a(b)",
    "echo (a)",
    "a\n(b)\nc",
    "if true; then echo (; fi",
    "for ((i=0)); do :; done",
    "for x in a b do :; done",
    "while true do :; done",
    "echo & ; b",
    "{ }",
    "()",
    "( )",
    "{ ; }",
    "function f() { :; }; f()",
    "cat << ",
    "cat <<E",
    "coproc",
];

/// Where a line is read otherwise, with the reason.
const DIFFERENT: &[(&str, &str)] = &[];

#[test]
fn the_grammar_agrees_with_bash_on_our_own_lines() {
    if !bash_is_here() {
        return;
    }
    let mut wrong = Vec::new();
    for line in LINES {
        let (ours, bash) = (our_answer(line).is_none(), bash_accepts(line));
        let known = DIFFERENT.iter().any(|(different, _)| different == line);
        if (ours == bash) == known {
            wrong.push(format!("{line:?}: ours {ours}, bash {bash}, listed {known}"));
        }
    }
    println!("{} lines, {} explained", LINES.len(), DIFFERENT.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

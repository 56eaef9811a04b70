//! Other readers of shell beside bash: brush-parser and tree-sitter-bash. Each
//! can take a process down, so they run in one of their own with bounds, and one
//! that died is started again behind the text it died of.
//!
//! Bash decides: where it is of our mind, the other reader is wrong, and the list
//! of such texts is printed.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use super::Trouble;
use super::oracle::{LINES, bash_accepts, bash_is_here, our_answer, scripts};

/// This module's test that is the other process.
const CHILD: &str = "guard::shell::others::the_answers_of_others";
/// Kilobytes of memory and seconds of work for a batch of texts.
const BOUNDS: &str = "ulimit -v 4000000; ulimit -t 120; exec \"$@\"";
/// Texts that one process reads.
const BATCH: usize = 100;
/// Texts behind which a reader may die before it is given up.
const MOST_DEATHS: usize = 40;
const MARK: &str = "answer ";

/// Whether each of the two accepts a text; nothing where it died.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Answers {
    brush: Option<bool>,
    tree_sitter: Option<bool>,
}

fn brush(text: &str) -> bool {
    let options = brush_parser::ParserOptions::default();
    brush_parser::Parser::new(text.as_bytes(), &options)
        .parse_program()
        .is_ok()
}

fn tree_sitter(text: &str) -> bool {
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).unwrap();
    parser
        .parse(text, None)
        .is_some_and(|tree| !tree.root_node().has_error())
}

/// The other process: texts as JSON on its input, a line for each answer.
#[test]
#[ignore = "the tests beside it run it, in a process of its own"]
fn the_answers_of_others() {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).unwrap();
    let texts: Vec<String> = serde_json::from_str(&input).unwrap_or_default();
    let mut out = std::io::stdout();
    for (number, text) in texts.iter().enumerate() {
        for (name, reads) in [("t", tree_sitter as fn(&str) -> bool), ("b", brush)] {
            let line = format!("\n{MARK}{number} {name} {}\n", reads(text));
            out.write_all(line.as_bytes()).unwrap();
            out.flush().unwrap();
        }
    }
}

/// One process reads these texts, up to the one that it dies of.
fn batch(texts: &[String], answers: &mut [Answers]) {
    let own = std::env::current_exe().unwrap();
    let mut child = Command::new("sh")
        .args(["-c", BOUNDS, "sh"])
        .arg(own)
        .args([CHILD, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let input = serde_json::to_vec(texts).unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        // Who died reads no more.
        let _gone = stdin.write_all(&input);
    });
    let mut output = String::new();
    let mut stdout = child.stdout.take().unwrap();
    let _partly = stdout.read_to_string(&mut output);
    child.wait().unwrap();
    writer.join().unwrap();
    for line in output.lines().filter_map(|line| line.strip_prefix(MARK)) {
        let words: Vec<&str> = line.split(' ').collect();
        let [number, name, accepted] = words[..] else { continue };
        let answer = &mut answers[number.parse::<usize>().unwrap()];
        let accepted = Some(accepted == "true");
        match name {
            "b" => answer.brush = accepted,
            _ => answer.tree_sitter = accepted,
        }
    }
}

fn asked(texts: &[String]) -> Vec<Answers> {
    let mut all = vec![Answers::default(); texts.len()];
    let (mut from, mut deaths) = (0, 0);
    while from < texts.len() && deaths < MOST_DEATHS {
        let to = texts.len().min(from + BATCH);
        batch(&texts[from..to], &mut all[from..to]);
        let read = all[from..to].iter().take_while(|answer| answer.brush.is_some()).count();
        let died = read < to - from;
        deaths += usize::from(died);
        from += read + usize::from(died);
    }
    all
}

/// Compares the readers on texts with names. What bash sees as we do is the other
/// reader's mistake; what it sees otherwise is ours.
fn compare(what: &str, named: &[(String, String)]) -> (usize, Vec<String>) {
    let texts: Vec<String> = named.iter().map(|(_, text)| text.clone()).collect();
    let answers = asked(&texts);
    let (mut wrong, mut told) = (Vec::new(), String::new());
    let mut counts = [[0_usize; 3]; 2];
    for ((name, text), answer) in named.iter().zip(&answers) {
        let ours = our_answer(text);
        if matches!(ours, Some(Trouble::Limit { .. })) {
            continue;
        }
        let bash = bash_accepts(text);
        if ours.is_none() != bash {
            wrong.push(format!("{name}: ours {ours:?}, bash {bash}"));
        }
        for (place, theirs) in [answer.tree_sitter, answer.brush].into_iter().enumerate() {
            let kind = match theirs {
                None => 2,
                Some(theirs) => usize::from(theirs != bash),
            };
            counts[place][kind] += 1;
            if kind == 1 {
                let reader = ["tree-sitter-bash", "brush-parser"][place];
                let they = if bash { "refuses" } else { "accepts" };
                writeln!(told, "  {reader} {they} what bash and we do not: {name}").unwrap();
            }
        }
    }
    let [tree, brush] = counts;
    println!(
        "{what}: {} read; tree-sitter-bash {} as we, {} otherwise than bash and we, died of {}; \
         brush-parser {}, {}, {}\n{told}",
        named.len(),
        tree[0],
        tree[1],
        tree[2],
        brush[0],
        brush[1],
        brush[2],
    );
    (tree[0].min(brush[0]), wrong)
}

#[test]
fn where_another_reader_differs_on_our_own_lines_bash_is_of_our_mind() {
    if !bash_is_here() {
        return;
    }
    let lines: Vec<(String, String)> = LINES
        .iter()
        .map(|line| (format!("{line:?}"), (*line).to_owned()))
        .collect();
    let (agreed, wrong) = compare("lines", &lines);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // A reader that answers nothing any more would prove nothing.
    assert!(lines.len() / 2 < agreed, "{agreed} of {}", lines.len());
}

#[test]
fn where_another_reader_differs_on_a_script_of_this_machine_bash_is_of_our_mind() {
    if !bash_is_here() {
        return;
    }
    let scripts: Vec<(String, String)> = scripts()
        .into_iter()
        .map(|(path, text)| (path.display().to_string(), text))
        .collect();
    let (agreed, wrong) = compare("scripts", &scripts);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        scripts.is_empty() || scripts.len() / 2 < agreed,
        "{agreed} of {}",
        scripts.len()
    );
}

//! Shell lines inside code of other languages: the literal arguments of
//! `system(…)` and its like, and backticks.
//!
//! A search for evidence, not a parser: inline code is asked about anyway, and
//! what is found here can only make the verdict stricter.

/// Functions that run a shell line or an argv, as they end before `(`.
const RUNNERS: &[&str] = &[
    "system",
    "exec",
    "popen",
    "run",
    "call",
    "check_call",
    "check_output",
    "getoutput",
    "execsync",
    "spawn",
    "spawnsync",
    "execfile",
    "execfilesync",
    "shell_exec",
    "passthru",
    "proc_open",
    "execvp",
    "execv",
    "execlp",
    "qx",
];

/// Bytes of foreign code that are searched.
const LONGEST: usize = 64 * 1024;
/// Shell lines taken out of one text.
const MOST: usize = 32;

pub(crate) fn shell_texts(code: &str) -> Vec<String> {
    let mut end = code.len().min(LONGEST);
    while !code.is_char_boundary(end) {
        end -= 1;
    }
    let code = code.get(..end).unwrap_or_default();
    let mut texts = Vec::new();
    let mut rest = code;
    let mut before = String::new();
    while let Some(character) = rest.chars().next() {
        if texts.len() >= MOST {
            break;
        }
        let tail = rest.get(character.len_utf8()..).unwrap_or_default();
        match character {
            '`' => {
                let (text, after) = quoted(tail, '`');
                texts.push(text);
                rest = after;
                before.clear();
            }
            '"' | '\'' => rest = quoted(tail, character).1,
            '(' | ' ' if is_runner(&before) => {
                let (text, after) = arguments(tail);
                texts.extend(text);
                rest = after;
                before.clear();
            }
            _ => {
                if character.is_alphanumeric() || character == '_' {
                    before.push(character.to_ascii_lowercase());
                } else {
                    before.clear();
                }
                rest = tail;
            }
        }
        if before.len() > 32 {
            before.clear();
        }
    }
    texts
}

fn is_runner(word: &str) -> bool {
    RUNNERS.contains(&word)
}

/// The literal strings right behind an opening parenthesis: one is a shell
/// line, several are an argv.
fn arguments(text: &str) -> (Option<String>, &str) {
    let mut words: Vec<String> = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '[', '(', ',', '\n', '\t']);
        let Some(quote) = rest.chars().next().filter(|character| matches!(character, '"' | '\'')) else {
            break;
        };
        let (word, after) = quoted(rest.get(1..).unwrap_or_default(), quote);
        words.push(word);
        rest = after;
        if words.len() > 32 {
            break;
        }
    }
    // `$ENV{HOME}` and `os.environ["HOME"]` as a further word.
    let tail: String = rest
        .chars()
        .take(40)
        .take_while(|character| !matches!(character, ')' | ';' | '\n'))
        .collect();
    if !words.is_empty() && tail.contains("HOME") {
        words.push("~".to_owned());
    }
    match words.as_slice() {
        [] => (None, rest),
        [line] => (Some(line.clone()), rest),
        argv => (
            Some(argv.iter().map(|word| as_word(word)).collect::<Vec<_>>().join(" ")),
            rest,
        ),
    }
}

/// A word of an argv, quoted unless that would change nothing.
fn as_word(word: &str) -> String {
    let plain = word
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_./~=:,+%@".contains(&byte));
    if plain && !word.is_empty() {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The text up to the closing quote, and what follows it.
fn quoted(text: &str, quote: char) -> (String, &str) {
    let mut content = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        if character == quote {
            return (content, text.get(at + 1..).unwrap_or_default());
        }
        if character == '\\' {
            match characters.next() {
                Some((_, 'n')) => content.push('\n'),
                Some((_, escaped)) => content.push(escaped),
                None => {}
            }
        } else {
            content.push(character);
        }
    }
    (content, "")
}

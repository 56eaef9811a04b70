//! Rust source as the structure tests see it.
//!
//! A small scanner tells code from comments and text literals and production
//! code from test code. Offsets never move: what is hidden becomes spaces, so
//! a finding's line is the line of the file. Nothing here knows a house rule.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use regex::Regex;

/// One file, scanned.
pub(crate) struct Source {
    /// Path below the scanned folder, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    /// `text` with comments and the insides of literals as spaces.
    pub(crate) code: String,
    /// `code` with test code as spaces too; all spaces for a test file.
    pub(crate) product: String,
    /// Where the insides of string literals are.
    pub(crate) strings: Vec<Range<usize>>,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let (code, strings) = scan(text);
        let product = if code.contains("#![cfg(test)]") || named_as_test(path) {
            blank(&code, std::slice::from_ref(&(0..code.len())))
        } else {
            let hidden: Vec<_> = test_items(&code).into_iter().map(|item| item.span).collect();
            blank(&code, &hidden)
        };
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code,
            product,
            strings,
        }
    }

    /// The module of the first floor-level folder or file: `store/keys.rs` is in `store`.
    pub(crate) fn module(&self) -> &str {
        let first = self.path.split('/').next().unwrap_or_default();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// How many modules lie between the crate root and this file's contents.
    pub(crate) fn depth(&self) -> usize {
        let parts = self.path.split('/').count();
        if self.path.ends_with("/mod.rs") {
            parts - 1
        } else {
            parts
        }
    }

    /// `path:line`, for a message.
    pub(crate) fn at(&self, offset: usize) -> String {
        format!("{}:{}", self.path, self.text[..offset].matches('\n').count() + 1)
    }
}

/// Every `.rs` file below `folder` of the project, test modules recognised.
pub(crate) fn read(folder: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let mut sources: Vec<Source> = files
        .iter()
        .map(|file| {
            let path = file.strip_prefix(&root).expect("a file lies below its folder");
            let text = std::fs::read_to_string(file).expect("source files are UTF-8");
            Source::new(&path.to_string_lossy().replace('\\', "/"), &text)
        })
        .collect();
    assert!(!sources.is_empty(), "no source below `{folder}`");
    hide_test_modules(&mut sources);
    sources
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|e| panic!("`{}`: {e}", folder.display())) {
        let path = entry.expect("a readable folder entry").path();
        if path.is_dir() {
            collect(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

/// A file declared by `#[cfg(test)] mod name;` is test code, whatever its name.
pub(crate) fn hide_test_modules(sources: &mut [Source]) {
    let mut stems = BTreeSet::new();
    for source in &*sources {
        let folder = match source.path.rsplit_once('/') {
            Some((folder, "mod.rs")) => format!("{folder}/"),
            None if source.path == "lib.rs" || source.path == "main.rs" => String::new(),
            _ => format!("{}/", source.path.trim_end_matches(".rs")),
        };
        for item in test_items(&source.code) {
            if let Some(name) = item.module_file {
                stems.insert(format!("{folder}{name}"));
            }
        }
    }
    for source in sources {
        let hidden = stems.iter().any(|stem| {
            source
                .path
                .strip_prefix(stem.as_str())
                .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        });
        if hidden {
            source.product = blank(&source.code, std::slice::from_ref(&(0..source.code.len())));
        }
    }
}

fn named_as_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.ends_with("_tests.rs") || path.contains("/tests/")
}

/// An item under `#[cfg(test)]`; `module_file` when it is `mod name;`.
struct TestItem {
    span: Range<usize>,
    module_file: Option<String>,
}

fn test_items(code: &str) -> Vec<TestItem> {
    let module = Regex::new(r"^\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([a-z ]+\))?\s+)?mod\s+(\w+)\s*;").expect("a pattern");
    let mut items = Vec::new();
    for (start, mark) in code.match_indices("#[cfg(test)]") {
        let rest = &code[start + mark.len()..];
        let end = rest.find(['{', ';']).map_or(code.len(), |stop| {
            let stop = start + mark.len() + stop;
            if code[stop..].starts_with('{') {
                closing_brace(code, stop)
            } else {
                stop + 1
            }
        });
        let module_file = module.captures(rest).map(|found| found[1].to_owned());
        items.push(TestItem {
            span: start..end,
            module_file,
        });
    }
    items
}

/// The offset behind the brace that closes the one at `open`.
pub(crate) fn closing_brace(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in code[open..].bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return open + offset + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// `text` with the given ranges as spaces; newlines stay.
fn blank(text: &str, hidden: &[Range<usize>]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for range in hidden {
        for byte in &mut bytes[range.clone()] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    String::from_utf8(bytes).expect("ranges end between characters")
}

/// Hides comments and the insides of literals; says where strings are.
fn scan(text: &str) -> (String, Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let (mut hidden, mut strings) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let after_word = at > 0 && is_word(bytes[at - 1]);
        if rest.starts_with("//") {
            let end = at + rest.find('\n').unwrap_or(rest.len());
            hidden.push(at..end);
            at = end;
        } else if rest.starts_with("/*") {
            let end = at + block_comment(rest);
            hidden.push(at..end);
            at = end;
        } else if let Some((open, inside, close)) = raw_string(rest, after_word) {
            hidden.push(at + open..at + open + inside);
            strings.push(at + open..at + open + inside);
            at += open + inside + close;
        } else if bytes[at] == b'"' {
            let inside = quoted(&rest[1..], '"');
            hidden.push(at + 1..at + 1 + inside);
            strings.push(at + 1..at + 1 + inside);
            at += inside + 2;
        } else if let Some(inside) = char_literal(rest) {
            hidden.push(at + 1..at + 1 + inside);
            at += inside + 2;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    (blank(text, &hidden), strings)
}

fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

/// Length of the block comment that `rest` starts with; they nest.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest.as_bytes()[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.as_bytes()[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Lengths of opening, inside and closing of a raw string at the start of `rest`.
fn raw_string(rest: &str, after_word: bool) -> Option<(usize, usize, usize)> {
    if after_word {
        return None;
    }
    let body = rest
        .strip_prefix("br")
        .or_else(|| rest.strip_prefix("cr"))
        .or_else(|| rest.strip_prefix('r'))?;
    let hashes = body.bytes().take_while(|b| *b == b'#').count();
    let inside = body[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    Some((
        rest.len() - inside.len(),
        inside.find(&close).unwrap_or(inside.len()),
        close.len(),
    ))
}

/// Length up to the unescaped `quote`.
fn quoted(inside: &str, quote: char) -> usize {
    let mut escaped = false;
    for (offset, c) in inside.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return offset;
        }
    }
    inside.len()
}

/// Length of the inside of a character literal; a lifetime is none.
fn char_literal(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('\'')?;
    let first = inside.chars().next()?;
    if first == '\\' {
        return Some(quoted(inside, '\''));
    }
    inside[first.len_utf8()..].starts_with('\'').then_some(first.len_utf8())
}

#[test]
fn the_scanner_tells_code_from_comments_and_literals() {
    let source = Source::new(
        "a.rs",
        "let a = \"x \\\" sqlx::\"; // sqlx::\nlet b = r#\"y \" sqlx::\"#; /* a /* sqlx:: */ */ let c: &'static str = b;\n\
         let d = '\"'; let e = '\\''; let é = \"é\"; real::code();",
    );
    assert!(!source.code.contains("sqlx"), "{}", source.code);
    assert!(source.code.contains("real::code();"), "{}", source.code);
    assert!(source.code.contains("&'static str"), "{}", source.code);
    assert_eq!(source.code.len(), source.text.len());
    let strings: Vec<&str> = source.strings.iter().map(|s| &source.text[s.clone()]).collect();
    assert_eq!(strings, ["x \\\" sqlx::", "y \" sqlx::", "é"]);
    assert_eq!(source.at(source.code.find("let c").unwrap()), "a.rs:2");
}

#[test]
fn test_code_is_not_product_code() {
    let source = Source::new(
        "a.rs",
        "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { c(); }\n}\nfn d() {}",
    );
    assert!(
        source.product.contains("fn a()") && source.product.contains("fn d()"),
        "{}",
        source.product
    );
    assert!(!source.product.contains("fn b()"), "{}", source.product);

    let mut sources = [
        Source::new("store/mod.rs", "#[cfg(test)]\npub(crate) mod rig;\nmod keys;"),
        Source::new("store/rig.rs", "fn a() {}"),
        Source::new("store/rig/deep.rs", "fn a() {}"),
        Source::new("store/keys.rs", "fn a() {}"),
        Source::new("store/tests.rs", "fn a() {}"),
    ];
    hide_test_modules(&mut sources);
    let visible: Vec<_> = sources
        .iter()
        .filter(|s| s.product.contains("fn a()"))
        .map(|s| s.path.as_str())
        .collect();
    assert_eq!(visible, ["store/keys.rs"]);
}

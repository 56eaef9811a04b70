//! From the text of a patch to its operations.
//!
//! Lenient where models are careless (missing markers, context without its
//! blank), strict where a guess could touch the wrong file.

/// One operation on one file, in the order of the patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    Update { path: String, hunks: Vec<Hunk> },
    Add { path: String, lines: Vec<Line> },
    Delete { path: String },
    Move { path: String, to: String },
}

impl Operation {
    /// The files that it names.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let (path, to) = match self {
            Self::Update { path, .. } | Self::Add { path, .. } | Self::Delete { path } => (path, None),
            Self::Move { path, to } => (path, Some(to)),
        };
        std::iter::once(path).chain(to).map(String::as_str)
    }
}

/// Whether a part of the path is `..`, by either separator: a patch may come from
/// another system.
pub fn has_parent_component(path: &str) -> bool {
    path.split(['/', '\\']).any(|part| part == "..")
}

/// A passage and what becomes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// Text near which the passage is, from `@@ text @@`.
    pub hint: Option<String>,
    /// The same from a header that was not closed; some models write it so.
    pub near: Option<String>,
    /// Without lines that are wholly empty: between hunks they mean nothing.
    pub lines: Vec<Line>,
    /// All lines, an empty one as context, where that differs.
    pub spaced: Option<Vec<Line>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub sign: Sign,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    Context,
    Remove,
    Add,
}

/// Why a patch cannot be read; the text is for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("line {0} of the patch names no file")]
    EmptyPath(usize),
    #[error("line {0} of the patch says `Move File` without `FROM -> TO`")]
    NoDestination(usize),
    #[error("the patch updates `{0}` but holds no lines for it")]
    NoHunks(String),
}

const BEGIN: [&str; 2] = ["*** Begin Patch", "***Begin Patch"];
const END: [&str; 2] = ["*** End Patch", "***End Patch"];

/// Reads a patch; a text without any header has no operations.
pub fn parse(patch: &str) -> Result<Vec<Operation>, ParseError> {
    let lines: Vec<&str> = patch.lines().collect();
    let is_marker =
        |markers: [&'static str; 2]| move |line: &&str| markers.iter().any(|mark| line.trim_start().starts_with(mark));
    let from = lines
        .iter()
        .position(|line| is_marker(BEGIN)(line))
        .map_or(0, |at| at + 1);
    let inner = lines.get(from..).unwrap_or_default();
    let to = inner
        .iter()
        .position(|line| is_marker(END)(line))
        .unwrap_or(inner.len());
    let mut reader = Reader::default();
    for (place, line) in inner.iter().enumerate().take(to) {
        reader.take(line, from + place + 1)?;
    }
    reader.finish()
}

enum Header<'t> {
    Update(&'t str),
    Add(&'t str),
    Delete(&'t str),
    Move(&'t str),
    /// The mark that some models put behind the last hunk of a file.
    EndOfFile,
}

/// `*** Verb File: rest`, with any blanks between the words.
fn header(line: &str) -> Option<Header<'_>> {
    let rest = line.strip_prefix("***")?;
    let (words, path) = rest.split_once(':').unwrap_or((rest, ""));
    let words: Vec<&str> = words.split_whitespace().collect();
    let path = path.trim();
    Some(match words.as_slice() {
        ["Update", "File"] => Header::Update(path),
        ["Add", "File"] => Header::Add(path),
        ["Delete", "File"] => Header::Delete(path),
        ["Move", "File"] => Header::Move(path),
        ["End", "of", "File"] => Header::EndOfFile,
        // Also a verb that is none: what follows it must not land in the file before.
        _ => return None,
    })
}

#[derive(Default)]
struct Reader {
    done: Vec<Operation>,
    open: Option<Operation>,
    hunk: Option<Hunk>,
    /// Empty lines that were seen since the hunk's last line.
    gaps: usize,
}

impl Reader {
    fn take(&mut self, line: &str, number: usize) -> Result<(), ParseError> {
        if let Some(header) = header(line) {
            return self.begin(&header, number);
        }
        match &mut self.open {
            Some(Operation::Update { .. } | Operation::Add { .. }) => {}
            _ => return Ok(()),
        }
        if line.starts_with("@@") {
            self.close_hunk();
            self.hunk = Some(opened(line));
            return Ok(());
        }
        self.line(line);
        Ok(())
    }

    fn begin(&mut self, header: &Header<'_>, number: usize) -> Result<(), ParseError> {
        let named = |path: &str| match path {
            "" => Err(ParseError::EmptyPath(number)),
            path => Ok(path.to_owned()),
        };
        let operation = match header {
            Header::EndOfFile => return Ok(()),
            Header::Update(path) => Operation::Update {
                path: named(path)?,
                hunks: Vec::new(),
            },
            Header::Add(path) => Operation::Add {
                path: named(path)?,
                lines: Vec::new(),
            },
            Header::Delete(path) => Operation::Delete { path: named(path)? },
            Header::Move(paths) => {
                let (from, to) = paths.split_once("->").unwrap_or((paths, ""));
                let path = named(from.trim())?;
                match to.trim() {
                    "" => return Err(ParseError::NoDestination(number)),
                    to => Operation::Move {
                        path,
                        to: to.to_owned(),
                    },
                }
            }
        };
        self.close()?;
        self.open = Some(operation);
        Ok(())
    }

    fn line(&mut self, line: &str) {
        let hunk = self.hunk.get_or_insert_default();
        let (sign, text) = match line.chars().next() {
            // Also `\ No newline at end of file`.
            None => {
                self.gaps += usize::from(!hunk.lines.is_empty());
                return;
            }
            Some('\\') => return,
            Some('+') => (Sign::Add, line.get(1..)),
            Some('-') => (Sign::Remove, line.get(1..)),
            Some(' ') => (Sign::Context, line.get(1..)),
            Some(_) => (Sign::Context, Some(line)),
        };
        let line = Line {
            sign,
            text: text.unwrap_or_default().to_owned(),
        };
        if 0 < self.gaps {
            let spaced = hunk.spaced.get_or_insert_with(|| hunk.lines.clone());
            let gap = Line {
                sign: Sign::Context,
                text: String::new(),
            };
            spaced.extend(std::iter::repeat_n(gap, self.gaps));
            self.gaps = 0;
        }
        if let Some(spaced) = &mut hunk.spaced {
            spaced.push(line.clone());
        }
        hunk.lines.push(line);
    }

    fn close_hunk(&mut self) {
        self.gaps = 0;
        let Some(hunk) = self.hunk.take().filter(|hunk| !hunk.lines.is_empty()) else {
            return;
        };
        match &mut self.open {
            Some(Operation::Update { hunks, .. }) => hunks.push(hunk),
            Some(Operation::Add { lines, .. }) => lines.extend(hunk.lines),
            _ => {}
        }
    }

    fn close(&mut self) -> Result<(), ParseError> {
        self.close_hunk();
        match self.open.take() {
            Some(Operation::Update { path, hunks }) if hunks.is_empty() => Err(ParseError::NoHunks(path)),
            Some(operation) => {
                self.done.push(operation);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn finish(mut self) -> Result<Vec<Operation>, ParseError> {
        self.close()?;
        Ok(self.done)
    }
}

/// `@@`, `@@ hint @@` or `@@ hint`.
fn opened(line: &str) -> Hunk {
    let rest = line.strip_prefix("@@").unwrap_or(line);
    let (hint, near) = match rest.split_once("@@") {
        // Between two marks a blank is a hint too, one that is everywhere.
        Some((hint, _)) if hint.trim().is_empty() => (hint.chars().next().map(String::from), None),
        Some((hint, _)) => (Some(hint.trim().to_owned()), None),
        None => (None, Some(rest.trim().to_owned()).filter(|near| !near.is_empty())),
    };
    Hunk {
        hint,
        near,
        ..Hunk::default()
    }
}

//! Lines that match, of many files: the first of them by path, and how many
//! there are in all.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};

use super::walk::{Tree, walk};
use super::{Leash, Window};
use crate::base::text::first_chars;
use crate::guard::file_access::Places;

/// Shown of a line (the original's figure).
pub(in crate::tool::file) const LINE_CHARS: usize = 500;
/// A line longer than this ends the search of its file.
const HEAP_BYTES: usize = 32 << 20;
/// Most files of most trees are shorter.
const SHORT_BYTES: usize = 64 << 10;
/// What a pattern may take, compiled and while it matches.
const PATTERN_BYTES: usize = 10 << 20;

/// One line of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tool::file) struct Line {
    pub(in crate::tool::file) number: u64,
    pub(in crate::tool::file) text: String,
    /// Beside a match, not one itself.
    pub(in crate::tool::file) is_context: bool,
}

#[derive(Debug, Default)]
pub(in crate::tool::file) struct Hits {
    /// Matching lines, kept or not.
    pub(in crate::tool::file) matches: usize,
    pub(in crate::tool::file) lines: Vec<Line>,
}

/// What was found.
#[derive(Debug, Default)]
pub(in crate::tool::file) struct Results {
    /// The first files by path, with their lines.
    pub(in crate::tool::file) files: BTreeMap<PathBuf, Hits>,
    pub(in crate::tool::file) total_matches: usize,
    pub(in crate::tool::file) total_files: usize,
    /// Files that are not to be read.
    pub(in crate::tool::file) omitted: usize,
    /// Files with a line that is too long, or that could not be read.
    pub(in crate::tool::file) unread: usize,
    pub(in crate::tool::file) is_cut: bool,
    kept: usize,
}

/// What one thread works with.
struct Desk {
    searcher: Searcher,
    buffer: Vec<u8>,
    results: Results,
}

impl Desk {
    fn new(searcher: Searcher) -> Self {
        Self {
            searcher,
            buffer: vec![0; SHORT_BYTES],
            results: Results::default(),
        }
    }
}

/// How lines are looked for.
#[derive(Clone)]
pub(in crate::tool::file) struct Looking {
    matcher: RegexMatcher,
    context: usize,
    window: Window,
    /// Only files matter, not lines.
    names_only: bool,
    places: Places,
}

impl Looking {
    pub(in crate::tool::file) fn new(
        pattern: &str,
        context: usize,
        window: Window,
        names_only: bool,
        places: Places,
    ) -> Result<Self, grep_regex::Error> {
        let matcher = RegexMatcherBuilder::new()
            .multi_line(true)
            .line_terminator(Some(b'\n'))
            .size_limit(PATTERN_BYTES)
            .dfa_size_limit(PATTERN_BYTES)
            .build(pattern)?;
        Ok(Self {
            matcher,
            context,
            window,
            names_only,
            places,
        })
    }

    fn searcher(&self) -> Searcher {
        SearcherBuilder::new()
            .line_number(true)
            .before_context(self.context)
            .after_context(self.context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(HEAP_BYTES))
            .build()
    }

    /// Everything beneath a directory. Blocks.
    pub(in crate::tool::file) fn tree(&self, tree: &Tree, leash: &Leash) -> Results {
        let make = || Desk::new(self.searcher());
        let (parts, unreadable) = walk(tree, leash, make, |desk, files| {
            let judged = self.places.files_of(files.directory.path());
            for name in files.names {
                if !judged.may_read(name) {
                    desk.results.omitted += 1;
                    continue;
                }
                match files.directory.file_named(name) {
                    Ok((file, length)) => self.file(desk, file, length, || files.relative.join(name), leash),
                    Err(_) => desk.results.unread += 1,
                }
            }
        });
        let mut all = Results {
            unread: unreadable,
            is_cut: leash.is_taut(),
            ..Results::default()
        };
        for desk in parts {
            all.absorb(desk.results, self);
        }
        all
    }

    /// One file alone. Blocks.
    pub(in crate::tool::file) fn one(&self, file: File, name: &Path, leash: &Leash) -> Results {
        let mut desk = Desk::new(self.searcher());
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        self.file(&mut desk, file, length, || name.to_path_buf(), leash);
        desk.results.is_cut = leash.is_taut();
        desk.results
    }

    fn file(&self, desk: &mut Desk, file: File, length: u64, name: impl Fn() -> PathBuf, leash: &Leash) {
        let mut sink = Collecting {
            hits: Hits::default(),
            keep: if self.names_only { 0 } else { self.window.end() },
        };
        if self.read(desk, file, length, &mut sink, leash).is_err() && !leash.is_taut() {
            desk.results.unread += 1;
        }
        if 0 < sink.hits.matches {
            desk.results.total_matches += sink.hits.matches;
            desk.results.total_files += 1;
            desk.results.keep(name(), sink.hits, self);
        }
    }

    /// A short file is searched where its first reading put it. A longer one, or
    /// one with a NUL (which ends a search, or is one of UTF-16), goes through the
    /// searcher's own buffer.
    fn read(
        &self,
        desk: &mut Desk,
        mut file: File,
        length: u64,
        sink: &mut Collecting,
        leash: &Leash,
    ) -> io::Result<()> {
        let read = retried(|| file.read(&mut desk.buffer))?;
        let begin = desk.buffer.get(..read).unwrap_or_default();
        let is_whole = read == 0 || (u64::try_from(read) == Ok(length) && read < desk.buffer.len());
        if is_whole && memchr::memchr(0, begin).is_none() {
            return desk.searcher.search_slice(&self.matcher, begin, sink);
        }
        let watched = Watched { file, leash };
        desk.searcher.search_reader(&self.matcher, begin.chain(watched), sink)
    }

    /// How much of the window a file fills.
    fn weight(&self, hits: &Hits) -> usize {
        if self.names_only { 1 } else { hits.matches }
    }
}

impl Results {
    fn absorb(&mut self, part: Self, looking: &Looking) {
        self.total_matches += part.total_matches;
        self.total_files += part.total_files;
        self.omitted += part.omitted;
        self.unread += part.unread;
        for (path, hits) in part.files {
            self.keep(path, hits, looking);
        }
    }

    /// Files that the window cannot reach any more are let go.
    fn keep(&mut self, path: PathBuf, hits: Hits, looking: &Looking) {
        self.kept += looking.weight(&hits);
        self.files.insert(path, hits);
        while let Some(last) = self.files.last_entry() {
            let weight = looking.weight(last.get());
            if self.kept - weight < looking.window.end() {
                break;
            }
            self.kept -= weight;
            last.remove();
        }
    }
}

struct Collecting {
    hits: Hits,
    keep: usize,
}

impl Collecting {
    fn push(&mut self, number: Option<u64>, bytes: &[u8], is_context: bool) {
        // Four bytes at most for a character.
        let bytes = bytes.get(..4 * LINE_CHARS + 4).unwrap_or(bytes);
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        self.hits.lines.push(Line {
            number: number.unwrap_or_default(),
            text: first_chars(text, LINE_CHARS).to_owned(),
            is_context,
        });
    }
}

impl Sink for Collecting {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.hits.matches += 1;
        if self.hits.matches <= self.keep {
            self.push(found.line_number(), found.bytes(), false);
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> Result<bool, io::Error> {
        if self.hits.matches <= self.keep && 0 < self.keep {
            self.push(found.line_number(), found.bytes(), true);
        }
        Ok(true)
    }
}

/// A signal is no reason to give a file up.
fn retried(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// A file whose reading ends with the search.
struct Watched<'l> {
    file: File,
    leash: &'l Leash,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.leash.is_taut() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(buffer)
    }
}

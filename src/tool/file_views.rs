//! What a session's model has seen of files, as a value: which pages it was
//! shown of which state of a file, and how often it asked again for the same.
//!
//! Pure and bounded. A call gets it as text and gives back [`FileNews`]; whoever
//! stores the result of the call applies them, so the value is as durable as
//! the result and calls that run together lose nothing of each other.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use std::path::Path;

/// Bounds of the original: files whose state is known, pages that were shown.
const MAX_FILES: usize = 1_000;
const MAX_PAGES: usize = 1_000;
/// A page whose file changed each time is shown so often in a row, the last
/// time with a warning (the original's figures).
const SHOWN_IN_A_ROW: u32 = 3;
/// Files of which failed edits are counted; a model works on few at a time.
const MAX_FAILED: usize = 100;
/// Directories that are known to have been told of; an older one may be told again.
const MAX_HINTED: usize = 200;
/// Calls of these tools leave the counters alone; any other begins them anew.
const READERS: [&str; 2] = ["read_file", "search_files"];

/// The state of a file: another time or another length is another state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub modified_ns: i64,
    pub bytes: u64,
}

/// The lines that were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    pub offset: usize,
    pub limit: usize,
}

/// What one call did with one file. Paths are absolute, links resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileNews {
    /// The lines were shown; `whole` when they are all the file has.
    Shown {
        file: FileKey,
        lines: Lines,
        stamp: Stamp,
        whole: bool,
    },
    /// Asked for again and answered in a word.
    Repeated { file: FileKey, lines: Lines },
    /// Written by the session, which so knows all of it.
    Written { file: FileKey, stamp: Stamp },
    /// Changed in part by the session, from one state to another.
    Edited { file: FileKey, before: Stamp, stamp: Stamp },
    /// An edit of the file did not fit.
    EditFailed { file: FileKey },
    /// A search with these arguments was answered.
    Searched { search: FileKey },
    /// What the directory says of itself was shown.
    Hinted { directory: FileKey },
}

/// A path in few bytes, so that the value stays bounded: 128 bits of its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FileKey(String);

impl FileKey {
    pub fn of(path: &Path) -> Self {
        let hash = Sha256::digest(path.as_os_str().as_encoded_bytes());
        Self(hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect())
    }
}

/// What is to be answered to a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Show the page.
    No,
    /// Show the page with a warning: it was asked for so many times in a row.
    Often(u32),
    /// The model has the page already; say so.
    Unchanged,
    /// It was told, or shown the page, so many times before.
    Blocked(u32),
}

/// What the session knows of a file that is about to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    NeverRead,
    Changed,
    Partial,
    Whole,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileView {
    file: FileKey,
    stamp: Stamp,
    whole: bool,
    pages: Vec<PageView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PageView {
    lines: Lines,
    /// How often it was asked for again since another tool ran.
    repeats: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LastShown {
    file: FileKey,
    lines: Lines,
    times: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileViews {
    /// Oldest first.
    files: Vec<FileView>,
    last: Option<LastShown>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_search: Option<Counted>,
    /// Edits that did not fit, by file, since the last that did; oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    failed_edits: Vec<Counted>,
    /// Directories of which the model was shown what they say of themselves, oldest
    /// first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hinted: Vec<FileKey>,
}

/// Something and how often in a row it happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Counted {
    key: FileKey,
    times: u32,
}

/// The stored text after a call of `tool`, none when it stays as it is.
pub fn after_call(stored: &str, tool: &str, news: &[FileNews]) -> Option<String> {
    let is_reader = READERS.contains(&tool);
    if news.is_empty() && (is_reader || stored.is_empty()) {
        return None;
    }
    let before = FileViews::parse(stored);
    let mut views = before.clone();
    if !is_reader {
        views.begin_counts();
    }
    for one in news {
        views.apply(one);
    }
    // Texts and numbers always serialise.
    (views != before).then(|| serde_json::to_string(&views).unwrap_or_default())
}

impl FileViews {
    /// Text that cannot be read was not written by us: nothing is known.
    pub fn parse(stored: &str) -> Self {
        serde_json::from_str(stored).unwrap_or_default()
    }

    /// Whether these lines of the file, in this state, have been shown before.
    pub fn repeat(&self, file: &FileKey, lines: Lines, stamp: Stamp) -> Repeat {
        let view = self.view(file).filter(|view| view.stamp == stamp);
        if let Some(page) = view.and_then(|view| view.pages.iter().find(|page| page.lines == lines)) {
            return match page.repeats {
                0 => Repeat::Unchanged,
                repeats => Repeat::Blocked(repeats.saturating_add(1)),
            };
        }
        let same = |last: &&LastShown| last.file == *file && last.lines == lines;
        let before = self.last.as_ref().filter(same).map_or(0, |last| last.times);
        match before + 1 {
            SHOWN_IN_A_ROW => Repeat::Often(SHOWN_IN_A_ROW),
            times if SHOWN_IN_A_ROW < times => Repeat::Blocked(before),
            _ => Repeat::No,
        }
    }

    /// Whether this search was answered just before.
    pub fn searched(&self, search: &FileKey) -> Repeat {
        let same = |last: &&Counted| last.key == *search;
        let before = self.last_search.as_ref().filter(same).map_or(0, |last| last.times);
        match before + 1 {
            SHOWN_IN_A_ROW => Repeat::Often(SHOWN_IN_A_ROW),
            times if SHOWN_IN_A_ROW < times => Repeat::Blocked(before),
            _ => Repeat::No,
        }
    }

    /// How many edits of the file failed since the last that did not.
    pub fn failed_edits(&self, file: &FileKey) -> u32 {
        let counted = self.failed_edits.iter().find(|failed| failed.key == *file);
        counted.map_or(0, |failed| failed.times)
    }

    /// What is known of the file, now that it is in this state.
    pub fn knowledge(&self, file: &FileKey, stamp: Stamp) -> Knowledge {
        match self.view(file) {
            None => Knowledge::NeverRead,
            Some(view) if view.stamp != stamp => Knowledge::Changed,
            Some(view) if !view.whole => Knowledge::Partial,
            Some(_) => Knowledge::Whole,
        }
    }

    /// Whether the model has seen anything of the file.
    pub fn knows(&self, file: &FileKey) -> bool {
        self.view(file).is_some()
    }

    /// Whether the model was shown what the directory says of itself.
    pub fn is_hinted(&self, directory: &FileKey) -> bool {
        self.hinted.contains(directory)
    }

    fn view(&self, file: &FileKey) -> Option<&FileView> {
        self.files.iter().find(|view| view.file == *file)
    }

    fn begin_counts(&mut self) {
        (self.last, self.last_search) = (None, None);
        for page in self.files.iter_mut().flat_map(|view| &mut view.pages) {
            page.repeats = 0;
        }
    }

    fn apply(&mut self, news: &FileNews) {
        match news {
            FileNews::Shown {
                file,
                lines,
                stamp,
                whole,
            } => self.show(file, *lines, *stamp, *whole),
            FileNews::Repeated { file, lines } => {
                let view = self.files.iter_mut().find(|view| view.file == *file);
                let page = view.and_then(|view| view.pages.iter_mut().find(|page| page.lines == *lines));
                if let Some(page) = page {
                    page.repeats = page.repeats.saturating_add(1);
                }
            }
            FileNews::Written { file, stamp } => self.write(file, *stamp, true),
            FileNews::Edited { file, before, stamp } => {
                let known = self.view(file).is_some_and(|view| view.stamp == *before && view.whole);
                self.write(file, *stamp, known);
            }
            FileNews::EditFailed { file } => {
                let times = self.failed_edits(file).saturating_add(1);
                self.failed_edits.retain(|failed| failed.key != *file);
                let surplus = (self.failed_edits.len() + 1).saturating_sub(MAX_FAILED);
                self.failed_edits.drain(..surplus);
                self.failed_edits.push(Counted {
                    key: file.clone(),
                    times,
                });
            }
            FileNews::Hinted { directory } => {
                let surplus = (self.hinted.len() + 1).saturating_sub(MAX_HINTED);
                self.hinted.drain(..surplus);
                self.hinted.push(directory.clone());
            }
            FileNews::Searched { search } => {
                let same = self.last_search.take().filter(|last| last.key == *search);
                let times = same.map_or(1, |last| last.times.saturating_add(1));
                self.last = None;
                self.last_search = Some(Counted {
                    key: search.clone(),
                    times,
                });
            }
        }
    }

    fn write(&mut self, file: &FileKey, stamp: Stamp, whole: bool) {
        self.files.retain(|view| view.file != *file);
        self.failed_edits.retain(|failed| failed.key != *file);
        self.push(FileView {
            file: file.clone(),
            stamp,
            whole,
            pages: Vec::new(),
        });
    }

    fn show(&mut self, file: &FileKey, lines: Lines, stamp: Stamp, whole: bool) {
        let times = match &self.last {
            Some(last) if last.file == *file && last.lines == lines => last.times.saturating_add(1),
            _ => 1,
        };
        self.last_search = None;
        self.last = Some(LastShown {
            file: file.clone(),
            lines,
            times,
        });
        let known = self.files.iter().position(|view| view.file == *file);
        let known = known.map(|at| self.files.remove(at));
        // Pages of another state of the file are of no use any more.
        let mut view = known.filter(|view| view.stamp == stamp).unwrap_or(FileView {
            file: file.clone(),
            stamp,
            whole: false,
            pages: Vec::new(),
        });
        view.whole |= whole;
        view.pages.retain(|page| page.lines != lines);
        view.pages.push(PageView { lines, repeats: 0 });
        self.push(view);
    }

    /// Adds the newest; the oldest go where there is no room.
    fn push(&mut self, view: FileView) {
        self.files.push(view);
        let surplus = self.files.len().saturating_sub(MAX_FILES);
        self.files.drain(..surplus);
        let mut pages: usize = self.files.iter().map(|view| view.pages.len()).sum();
        for view in &mut self.files {
            let gone = pages.saturating_sub(MAX_PAGES).min(view.pages.len());
            view.pages.drain(..gone);
            pages -= gone;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Lines = Lines { offset: 1, limit: 500 };

    fn key(name: &str) -> FileKey {
        FileKey::of(Path::new(name))
    }

    fn stamp(modified_ns: i64) -> Stamp {
        Stamp { modified_ns, bytes: 7 }
    }

    fn shown(name: &str, lines: Lines, at: i64, whole: bool) -> FileNews {
        FileNews::Shown {
            file: key(name),
            lines,
            stamp: stamp(at),
            whole,
        }
    }

    fn after(stored: &str, tool: &str, news: &[FileNews]) -> String {
        after_call(stored, tool, news).unwrap_or_else(|| stored.to_owned())
    }

    fn repeat(stored: &str, name: &str, lines: Lines, at: i64) -> Repeat {
        FileViews::parse(stored).repeat(&key(name), lines, stamp(at))
    }

    #[test]
    fn the_first_repeat_is_told_and_the_second_is_blocked() {
        let stored = after("", "read_file", &[shown("/a", FIRST, 1, true)]);
        assert_eq!(repeat(&stored, "/a", FIRST, 1), Repeat::Unchanged);
        let again = FileNews::Repeated {
            file: key("/a"),
            lines: FIRST,
        };
        let stored = after(&stored, "read_file", &[again]);
        assert_eq!(repeat(&stored, "/a", FIRST, 1), Repeat::Blocked(2));
        // Another tool ran: it is told once more.
        let stored = after(&stored, "terminal", &[]);
        assert_eq!(repeat(&stored, "/a", FIRST, 1), Repeat::Unchanged);
    }

    #[test]
    fn other_lines_another_state_and_another_file_are_no_repeats() {
        let stored = after("", "read_file", &[shown("/a", FIRST, 1, true)]);
        assert_eq!(repeat(&stored, "/a", Lines { offset: 2, ..FIRST }, 1), Repeat::No);
        assert_eq!(repeat(&stored, "/a", FIRST, 2), Repeat::No);
        assert_eq!(repeat(&stored, "/b", FIRST, 1), Repeat::No);
    }

    #[test]
    fn a_file_that_keeps_changing_is_shown_three_times_in_a_row() {
        let mut stored = String::new();
        for (at, expected) in [(1, Repeat::No), (2, Repeat::No), (3, Repeat::Often(3))] {
            assert_eq!(repeat(&stored, "/a", FIRST, at), expected);
            stored = after(&stored, "read_file", &[shown("/a", FIRST, at, true)]);
        }
        assert_eq!(repeat(&stored, "/a", FIRST, 4), Repeat::Blocked(3));
        for (tool, news) in [("todo", vec![]), ("read_file", vec![shown("/b", FIRST, 1, true)])] {
            let other = after(&stored, tool, &news);
            assert_eq!(repeat(&other, "/a", FIRST, 4), Repeat::No, "{tool}");
        }
        let searched = after(&stored, "search_files", &[]);
        assert_eq!(repeat(&searched, "/a", FIRST, 4), Repeat::Blocked(3));
    }

    #[test]
    fn a_write_is_known_whole_and_its_pages_are_read_again() {
        let stored = after("", "read_file", &[shown("/a", FIRST, 1, false)]);
        let knowledge = |stored: &str, at| FileViews::parse(stored).knowledge(&key("/a"), stamp(at));
        assert_eq!(knowledge("", 1), Knowledge::NeverRead);
        assert_eq!(knowledge(&stored, 1), Knowledge::Partial);
        assert_eq!(knowledge(&stored, 2), Knowledge::Changed);
        let written = FileNews::Written {
            file: key("/a"),
            stamp: stamp(2),
        };
        let stored = after(&stored, "write_file", &[written]);
        assert_eq!(knowledge(&stored, 2), Knowledge::Whole);
        assert_eq!(repeat(&stored, "/a", FIRST, 2), Repeat::No);
    }

    #[test]
    fn an_edit_leaves_known_what_was_known_and_its_failures_are_counted() {
        let edited = |name: &str, before, at| FileNews::Edited {
            file: key(name),
            before: stamp(before),
            stamp: stamp(at),
        };
        let knowledge = |stored: &str, at| FileViews::parse(stored).knowledge(&key("/a"), stamp(at));
        let whole = after("", "read_file", &[shown("/a", FIRST, 1, true)]);
        assert_eq!(
            knowledge(&after(&whole, "patch", &[edited("/a", 1, 2)]), 2),
            Knowledge::Whole
        );
        assert_eq!(
            knowledge(&after(&whole, "patch", &[edited("/a", 9, 2)]), 2),
            Knowledge::Partial
        );
        assert_eq!(
            knowledge(&after("", "patch", &[edited("/a", 1, 2)]), 2),
            Knowledge::Partial
        );

        let failed = || FileNews::EditFailed { file: key("/a") };
        let stored = after(&whole, "patch", &[failed(), failed()]);
        let failures = |stored: &str| FileViews::parse(stored).failed_edits(&key("/a"));
        assert_eq!(failures(&after(&stored, "terminal", &[])), 2);
        assert_eq!(failures(&after(&stored, "patch", &[edited("/a", 1, 2)])), 0);
    }

    #[test]
    fn the_same_search_is_answered_three_times_in_a_row() {
        let search = |name: &str| FileNews::Searched { search: key(name) };
        let mut stored = String::new();
        for expected in [Repeat::No, Repeat::No, Repeat::Often(3)] {
            assert_eq!(FileViews::parse(&stored).searched(&key("x")), expected);
            stored = after(&stored, "search_files", &[search("x")]);
        }
        assert_eq!(FileViews::parse(&stored).searched(&key("x")), Repeat::Blocked(3));
        for (tool, news) in [
            ("todo", vec![]),
            ("search_files", vec![search("y")]),
            ("read_file", vec![shown("/a", FIRST, 1, true)]),
        ] {
            let other = FileViews::parse(&after(&stored, tool, &news));
            assert_eq!(other.searched(&key("x")), Repeat::No, "{tool}");
        }
    }

    #[test]
    fn a_page_after_the_whole_leaves_the_whole_known() {
        let page = Lines { offset: 3, limit: 1 };
        let news = [shown("/a", FIRST, 1, true), shown("/a", page, 1, false)];
        let views = FileViews::parse(&after("", "read_file", &news));
        assert_eq!(views.knowledge(&key("/a"), stamp(1)), Knowledge::Whole);
    }

    #[test]
    fn no_more_than_a_thousand_files_and_pages_are_kept_the_newest() {
        let mut views = FileViews::default();
        for number in 0..1_100 {
            views.apply(&shown(&format!("/{number}"), FIRST, 1, true));
        }
        assert_eq!((views.files.len(), views.view(&key("/99"))), (1_000, None));
        for offset in 1..=900 {
            views.apply(&shown("/1099", Lines { offset, limit: 2 }, 1, false));
        }
        let pages: usize = views.files.iter().map(|view| view.pages.len()).sum();
        assert_eq!((views.files.len(), pages), (1_000, 1_000));
        let oldest = Lines { offset: 1, limit: 2 };
        assert_eq!(views.repeat(&key("/1099"), oldest, stamp(1)), Repeat::Unchanged);
        assert_eq!(views.repeat(&key("/100"), FIRST, stamp(1)), Repeat::No);
        assert!(serde_json::to_string(&views).unwrap().len() < 250_000);
    }

    #[test]
    fn nothing_is_written_where_nothing_changes() {
        assert_eq!(after_call("", "terminal", &[]), None);
        let stored = after("", "read_file", &[shown("/a", FIRST, 1, true)]);
        assert_eq!(after_call(&stored, "read_file", &[]), None);
        let counted = after(&stored, "terminal", &[]);
        assert_eq!(after_call(&counted, "terminal", &[]), None);
    }
}

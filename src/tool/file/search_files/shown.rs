//! From what was found to what a model reads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{Asked, Mode, Said, names_page, page_of_names};
use crate::guard::redact::{Mode as Masking, redact};
use crate::tool::file::search::content::{Hits, Line, Results};
use crate::tool::file::search::names::Names;

/// From so many matches on they are shown grouped by file (the original's figure).
const GROUPED_FROM: usize = 5;

pub(super) fn names(asked: &Asked, found: &Names) -> Said {
    let mut said = Said::new(found.total);
    said.put("files", json!(names_page(asked, found)));
    said.cut(asked.window, found.total);
    said.limits(found.is_cut, found.unread, 0);
    said
}

/// The answer to a pattern that spans lines.
pub(super) fn line_bound() -> Said {
    let mut said = Said::new(0);
    said.put("matches", json!([]));
    let text = "the search goes line by line, so a pattern with a line end matches nothing; look for one of its lines";
    said.put("warning", json!(text));
    said
}

pub(super) fn content(asked: &Asked, in_directory: bool, found: Results) -> Said {
    let named = |path: &Path| match in_directory {
        true => asked.shown(path),
        false => asked.root.clone(),
    };
    let mut said = match asked.mode {
        Mode::Lines => lines(asked, &found, named),
        Mode::Files => {
            let mut said = Said::new(found.total_files);
            let page = match in_directory {
                true => page_of_names(found.files.keys(), asked),
                false => found.files.keys().map(|path| named(path)).collect(),
            };
            said.put("files", json!(page));
            said.cut(asked.window, found.total_files);
            said
        }
        Mode::Counts => counts(asked, &found.files, found.total_files, found.total_matches, named),
    };
    said.limits(found.is_cut, found.unread, found.omitted);
    said
}

fn counts(
    asked: &Asked,
    files: &BTreeMap<PathBuf, Hits>,
    total_files: usize,
    total_matches: usize,
    named: impl Fn(&Path) -> String,
) -> Said {
    let mut said = Said::new(total_matches);
    let page = files.iter().skip(asked.window.offset).take(asked.window.limit);
    let counts: Map<String, Value> = page.map(|(path, hits)| (named(path), json!(hits.matches))).collect();
    said.put("counts", Value::Object(counts));
    said.cut(asked.window, total_files);
    said
}

/// A line of the page, with its file.
struct Shown<'f> {
    path: &'f Path,
    line: &'f Line,
}

fn lines(asked: &Asked, found: &Results, named: impl Fn(&Path) -> String) -> Said {
    let mut said = Said::new(found.total_matches);
    let page = page(asked, found);
    let matches = page.iter().filter(|shown| !shown.line.is_context).count();
    if matches < GROUPED_FROM {
        let each = page.iter().map(|shown| {
            let text = redact(&shown.line.text, Masking::File);
            let mut entry = json!({"path": named(shown.path), "line": shown.line.number, "content": text});
            if shown.line.is_context {
                entry["context"] = json!(true);
            }
            entry
        });
        said.put("matches", each.collect());
    } else {
        said.put(
            "matches_format",
            json!("by file: its path, then `line:text` of matches and `line-text` around them"),
        );
        said.put("matches_text", json!(grouped(&page, named)));
    }
    said.cut(asked.window, found.total_matches);
    said
}

/// The matches of the window, each with the context before it and the last with
/// what is behind it.
fn page<'f>(asked: &Asked, found: &'f Results) -> Vec<Shown<'f>> {
    let window = asked.window;
    let mut page = Vec::new();
    let mut seen = 0;
    for (path, hits) in &found.files {
        if window.end() <= seen {
            break;
        }
        let first_of_file = seen;
        // Context belongs to the match behind it, or to the last one before.
        for (place, line) in hits.lines.iter().enumerate() {
            let before = seen;
            seen += usize::from(!line.is_context);
            let belongs_to = if line.is_context && is_before_match(&hits.lines, place) {
                before
            } else {
                seen.saturating_sub(1).max(first_of_file)
            };
            if (window.offset..window.end()).contains(&belongs_to) {
                page.push(Shown { path, line });
            }
        }
        // Those that were not kept count too.
        seen = first_of_file + hits.matches;
    }
    page
}

/// Whether a line of context runs up to a match.
fn is_before_match(lines: &[Line], place: usize) -> bool {
    let Some(mut number) = lines.get(place).map(|line| line.number) else {
        return false;
    };
    for line in lines.iter().skip(place + 1) {
        if line.number != number + 1 {
            return false;
        }
        if !line.is_context {
            return true;
        }
        number = line.number;
    }
    false
}

fn grouped(page: &[Shown<'_>], named: impl Fn(&Path) -> String) -> String {
    let mut text = String::new();
    let mut last: Option<&Path> = None;
    for shown in page {
        if last != Some(shown.path) {
            let gap = if last.is_some() { "\n" } else { "" };
            text.push_str(&format!("{gap}{}\n", named(shown.path)));
            last = Some(shown.path);
        }
        let mark = if shown.line.is_context { '-' } else { ':' };
        let content = redact(&shown.line.text, Masking::File);
        text.push_str(&format!("{}{mark}{content}\n", shown.line.number));
    }
    text
}

//! One hunk on one text.

use super::parse::{Hunk, Line, Sign};
use crate::base::text::floor_boundary;
use crate::tool::edit::fuzzy::{self, NotReplaced};

/// Around a hint, where a passage is looked for that was not found in the whole
/// text (the original's figures).
const BEFORE_HINT: usize = 500;
const AFTER_HINT: usize = 2_000;

/// Why a hunk does not fit; the text is for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("{}", .0.to_string().replace("`old_string`", "the passage").replace("`new_string`", "its replacement"))]
    Passage(NotReplaced),
    #[error("the hint `{0}` is nowhere in the file")]
    NoHint(String),
    #[error("the hint `{hint}` stands there {times} times, so it does not say where the lines belong")]
    ManyHints { hint: String, times: usize },
}

impl Hunk {
    pub(super) fn changes(&self) -> bool {
        let of = |sign| self.lines.iter().filter(move |line| line.sign == sign);
        let texts = |lines: &mut dyn Iterator<Item = &Line>| lines.map(|line| line.text.clone()).collect::<Vec<_>>();
        texts(&mut of(Sign::Add)) != texts(&mut of(Sign::Remove)) || self.moves_lines()
    }

    /// The same lines go out and come in, elsewhere between the context.
    fn moves_lines(&self) -> bool {
        before(&self.lines) != after(&self.lines)
    }

    /// The text to look for; `None` where lines are only added.
    pub(super) fn passage(&self) -> Option<String> {
        self.lines
            .iter()
            .any(|line| line.sign != Sign::Add)
            .then(|| before(&self.lines))
    }

    /// The text after the hunk.
    pub(super) fn apply(&self, content: &str) -> Result<String, Unfit> {
        if !self.changes() {
            return Ok(content.to_owned());
        }
        if self.passage().is_none() {
            return self.insert(content);
        }
        let plain = self.replace(content, &self.lines);
        match (&plain, &self.spaced) {
            (Err(Unfit::Passage(NotReplaced::NotFound)), Some(spaced)) => self.replace(content, spaced).or(plain),
            _ => plain,
        }
    }

    fn replace(&self, content: &str, lines: &[Line]) -> Result<String, Unfit> {
        let (old, new) = (before(lines), after(lines));
        let removes_all = lines.iter().all(|line| line.sign == Sign::Remove);
        let change = |text: &str| match removes_all {
            true => without_lines(text, &old),
            false => fuzzy::replace(text, &old, &new, false).map(|done| done.content),
        };
        let unfit = match change(content) {
            Ok(changed) => return Ok(changed),
            Err(unfit) => unfit,
        };
        let near = self.place().and_then(|hint| content.find(hint));
        if let Some(at) = near {
            let from = floor_boundary(content, at.saturating_sub(BEFORE_HINT));
            let to = floor_boundary(content, at.saturating_add(AFTER_HINT));
            let window = content.get(from..to).unwrap_or_default();
            if let Ok(changed) = change(window) {
                let (head, tail) = (content.get(..from), content.get(to..));
                return Ok(format!(
                    "{}{changed}{}",
                    head.unwrap_or_default(),
                    tail.unwrap_or_default()
                ));
            }
        }
        Err(Unfit::Passage(unfit))
    }

    fn place(&self) -> Option<&str> {
        let hint = self.hint.as_deref().or(self.near.as_deref());
        hint.filter(|hint| !hint.trim().is_empty())
    }

    /// Lines that stand for themselves: behind the line with the hint, or at
    /// the end.
    fn insert(&self, content: &str) -> Result<String, Unfit> {
        let lines = after(&self.lines);
        let Some(hint) = self.place() else {
            let head = content.trim_end_matches('\n');
            let gap = if head.is_empty() { "" } else { "\n" };
            return Ok(format!("{head}{gap}{lines}\n"));
        };
        let at = match content.match_indices(hint).count() {
            0 => return Err(Unfit::NoHint(hint.to_owned())),
            1 => content.find(hint).unwrap_or_default(),
            times => {
                return Err(Unfit::ManyHints {
                    hint: hint.to_owned(),
                    times,
                });
            }
        };
        let rest = content.get(at..).unwrap_or_default();
        let Some(end) = rest.find('\n').map(|end| at + end + 1) else {
            return Ok(format!("{content}\n{lines}"));
        };
        let (head, tail) = content.split_at(end);
        Ok(format!("{head}{lines}\n{tail}"))
    }
}

/// Lines that go without any in their place take their line end along.
fn without_lines(content: &str, old: &str) -> Result<String, NotReplaced> {
    let mark = "\u{1}hermes removed lines\u{1}";
    let marked = fuzzy::replace(content, old, mark, false)?.content;
    let (head, tail) = marked.split_once(mark).unwrap_or((&marked, ""));
    // The mark may have been indented like what it replaced.
    let begins_line = head.rsplit('\n').next().is_none_or(|line| line.trim().is_empty());
    let ends_line = tail.is_empty() || tail.starts_with('\n') || tail.starts_with("\r\n");
    if !(begins_line && ends_line) {
        return Ok(format!("{head}{tail}"));
    }
    let head = head.get(..head.rfind('\n').map_or(0, |at| at + 1)).unwrap_or(head);
    let tail = tail
        .strip_prefix("\r\n")
        .or_else(|| tail.strip_prefix('\n'))
        .unwrap_or(tail);
    Ok(format!("{head}{tail}"))
}

fn before(lines: &[Line]) -> String {
    joined(lines, Sign::Add)
}

pub(super) fn after(lines: &[Line]) -> String {
    joined(lines, Sign::Remove)
}

fn joined(lines: &[Line], without: Sign) -> String {
    let kept = lines.iter().filter(|line| line.sign != without);
    kept.map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n")
}

//! What a parameter expansion yields, as far as the text itself tells.

use super::{Place, Tracer};
use crate::guard::Span;
use crate::guard::resolve::Content;
use crate::guard::shell::{Change, Lookup, Param, Word};

impl Tracer<'_> {
    pub(super) fn param(&mut self, param: &Param, place: &Place<'_>) -> Content {
        let index = param.index.as_ref().map(|index| self.single(index, place));
        let value = match param.lookup {
            Lookup::Length => None,
            Lookup::Plain => self.value_of(&param.name),
            Lookup::Indirect => {
                let name = self.value_of(&param.name)?;
                self.value_of(name.first()?)
            }
        };
        let value = match index {
            Some(index) => value.and_then(|elements| element(elements, &index.text)),
            // A bare array name is its first element.
            None if !matches!(param.name.as_str(), "@" | "*") => value.map(|mut elements| {
                elements.truncate(1);
                elements
            }),
            None => value,
        };
        self.changed(&param.name, value, &param.change, place)
    }

    fn value_of(&mut self, name: &str) -> Content {
        let content = self.content_of(name);
        self.undecided |= content.is_none();
        content
    }

    fn content_of(&mut self, name: &str) -> Content {
        if let Some(contents) = self.variables.get(name) {
            self.choices = self.choices.max(contents.len());
            let content = contents.get(self.choice).or_else(|| contents.last())?;
            return content.clone();
        }
        match name {
            "HOME" => Some(vec![self.setting.home.to_owned()]),
            "HERMES_HOME" => Some(vec![self.setting.agent_home.to_owned()]),
            "PWD" => self.setting.cwd.map(|cwd| vec![cwd.to_owned()]),
            "SHELL" | "BASH" => Some(vec!["/bin/bash".to_owned()]),
            "IFS" => Some(vec![" \t\n".to_owned()]),
            "@" | "*" if !self.positional.is_empty() => Some(self.positional.clone()),
            _ => {
                let position: usize = name.parse().ok().filter(|position| *position > 0)?;
                self.positional.get(position - 1).map(|value| vec![value.clone()])
            }
        }
    }

    fn changed(&mut self, name: &str, value: Content, change: &Change, place: &Place<'_>) -> Content {
        match change {
            Change::None => value,
            Change::Demand(word) => {
                self.single(word, place);
                value
            }
            Change::Transform => {
                // `${x@P}` expands the value as a prompt.
                let whole = place.origin.place(Span {
                    start: 0,
                    end: place.text.len(),
                });
                for element in value.iter().flatten() {
                    self.expanded_again(element, whole, place);
                }
                value
            }
            Change::Default(word) => {
                let stand_in = self.known(word, place);
                let used = value.or_else(|| stand_in.map(|text| vec![text]));
                if used.is_some() && self.variables.get(name).is_none() && !name.is_empty() {
                    self.variables.set(name, used.clone(), false);
                }
                used
            }
            Change::Alternate(word) => self.known(word, place).map(|text| vec![text]),
            Change::TrimStart(word) => self.trimmed(value, word, place, |text, cut| text.strip_prefix(cut)),
            Change::TrimEnd(word) => self.trimmed(value, word, place, |text, cut| text.strip_suffix(cut)),
            Change::Replace { pattern, with, all } => self.replaced(value, pattern, with, *all, place),
            Change::Slice(word) => {
                let bounds = self.known(word, place);
                value.and_then(|elements| sliced(&elements, &bounds?))
            }
            Change::Upper => value.map(|elements| elements.iter().map(|text| text.to_uppercase()).collect()),
            Change::Lower => value.map(|elements| elements.iter().map(|text| text.to_lowercase()).collect()),
        }
    }

    fn known(&mut self, word: &Word, place: &Place<'_>) -> Option<String> {
        let value = self.single(word, place);
        value.known.then_some(value.text)
    }

    fn trimmed(
        &mut self,
        value: Content,
        word: &Word,
        place: &Place<'_>,
        cut: for<'t> fn(&'t str, &str) -> Option<&'t str>,
    ) -> Content {
        let pattern = self.known(word, place);
        let (value, pattern) = (value?, pattern?);
        if pattern.contains(['*', '?', '[']) {
            return None;
        }
        Some(
            value
                .iter()
                .map(|text| cut(text, &pattern).unwrap_or(text).to_owned())
                .collect(),
        )
    }

    /// An unknown variable is taken for its replacement: `${x/y/rm}` is how a
    /// name is hidden, and asking once too often is the smaller harm.
    fn replaced(&mut self, value: Content, pattern: &Word, with: &Word, all: bool, place: &Place<'_>) -> Content {
        let pattern = self.known(pattern, place);
        let with = self.known(with, place);
        let Some(elements) = value else {
            return with.map(|text| vec![text]);
        };
        let (pattern, with) = (pattern?, with?);
        if pattern.contains(['*', '?', '[']) || pattern.is_empty() {
            return None;
        }
        let size: usize = elements.iter().map(String::len).sum();
        let matches: usize = elements.iter().map(|text| text.matches(&pattern).count()).sum();
        let grown = size + matches * with.len();
        if grown > 32 * 1024 {
            return None;
        }
        let swap = |text: &String| {
            if all {
                text.replace(&pattern, &with)
            } else {
                text.replacen(&pattern, &with, 1)
            }
        };
        Some(elements.iter().map(swap).collect())
    }
}

fn element(elements: Vec<String>, index: &str) -> Content {
    if matches!(index, "@" | "*") {
        return Some(elements);
    }
    let index: usize = index.parse().ok()?;
    elements.into_iter().nth(index).map(|text| vec![text])
}

/// `${x:offset:length}` with plain numbers.
fn sliced(elements: &[String], bounds: &str) -> Content {
    let [text] = elements else { return None };
    let mut numbers = bounds.split(':');
    let offset: i64 = numbers.next()?.trim().parse().ok()?;
    let count = i64::try_from(text.chars().count()).ok()?;
    let start = if offset < 0 { (count + offset).max(0) } else { offset };
    let tail: String = text.chars().skip(usize::try_from(start).ok()?).collect();
    match numbers.next() {
        None => Some(vec![tail]),
        Some(length) => {
            let length: usize = length.trim().parse().ok()?;
            Some(vec![tail.chars().take(length).collect()])
        }
    }
}

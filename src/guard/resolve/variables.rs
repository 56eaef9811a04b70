//! What is known of shell variables while a script is followed.
//!
//! A variable set on one path only keeps every value it may have, so that a
//! branch cannot hide the dangerous one.

use std::collections::HashMap;

/// Values one variable may have before it counts as unknown too.
const MOST_VALUES: usize = 8;

#[derive(Clone, Debug, Default)]
pub(crate) struct Variables {
    values: HashMap<String, Vec<Content>>,
}

/// The elements (one for a plain variable), or nothing when decided at run time.
pub(crate) type Content = Option<Vec<String>>;

impl Variables {
    pub(crate) fn set(&mut self, name: &str, content: Content, certain: bool) {
        let known = self.values.entry(name.to_owned()).or_default();
        if certain {
            known.clear();
        }
        if known.contains(&content) {
            return;
        }
        if known.len() < MOST_VALUES {
            known.push(content);
        } else if let Some(last) = known.last_mut() {
            *last = None;
        }
    }

    pub(crate) fn append(&mut self, name: &str, content: &Content, certain: bool) {
        let longer: Vec<Content> = match self.values.get(name) {
            Some(before) => before.iter().map(|old| joined(old, content)).collect(),
            None => vec![content.clone()],
        };
        for (position, content) in longer.into_iter().enumerate() {
            self.set(name, content, certain && position == 0);
        }
    }

    /// Every value the variable may have; none when it was never set here.
    pub(crate) fn get(&self, name: &str) -> Option<&[Content]> {
        self.values.get(name).map(Vec::as_slice)
    }
}

fn joined(old: &Content, new: &Content) -> Content {
    let (old, new) = (old.as_ref()?, new.as_ref()?);
    match (old.as_slice(), new.as_slice()) {
        ([first], [second]) => Some(vec![format!("{first}{second}")]),
        _ => Some(old.iter().chain(new).cloned().collect()),
    }
}

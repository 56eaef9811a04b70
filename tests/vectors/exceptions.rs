//! The cases that fail on purpose: one line each, id and reason.

use std::collections::BTreeMap;
use std::path::Path;

const FILE: &str = "exceptions.txt";

#[derive(Default)]
pub struct Exceptions(BTreeMap<String, String>);

impl Exceptions {
    /// Those beside the data, or the project's own where the directory has none.
    pub fn beside(directory: &Path, own: &Path) -> Self {
        let text = [directory, own]
            .iter()
            .find_map(|directory| std::fs::read_to_string(directory.join(FILE)).ok());
        Self::read(&text.unwrap_or_default())
    }

    pub fn read(text: &str) -> Self {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut all = BTreeMap::new();
        for line in lines {
            let (id, reason) = line.split_once(' ').unwrap_or_else(|| panic!("`{line}` has no reason"));
            let before = all.insert(id.to_owned(), reason.trim().to_owned());
            assert!(before.is_none(), "`{id}` is listed twice");
        }
        Self(all)
    }

    /// Why the case may fail; asked once for each case.
    pub fn take(&mut self, id: &str) -> Option<String> {
        self.0.remove(id)
    }

    /// Ids that no case has.
    pub fn rest(self) -> impl Iterator<Item = String> {
        self.0.into_keys()
    }
}

//! File names a model may have meant when it named one that is not there.

use std::collections::BTreeSet;
use std::path::Path;

/// How many are told, and how many entries of the directory are looked at (the
/// original's figures, as the scores below).
const TOLD: usize = 5;
const LOOKED_AT: usize = 50;

/// The names most like `wanted`, best first.
pub(super) fn similar<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let mut scored: Vec<(u32, &str)> = names
        .into_iter()
        .take(LOOKED_AT)
        .filter_map(|name| Some((score(&wanted, &name.to_lowercase())?, name)))
        .collect();
    scored.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    scored.into_iter().take(TOLD).map(|(_, name)| name).collect()
}

fn score(wanted: &str, name: &str) -> Option<u32> {
    if name == wanted {
        return Some(100);
    }
    if stem(name) == stem(wanted) {
        return Some(90);
    }
    if name.starts_with(wanted) || wanted.starts_with(name) {
        return Some(70);
    }
    if name.contains(wanted) {
        return Some(60);
    }
    if wanted.contains(name) && name.chars().nth(2).is_some() {
        return Some(40);
    }
    (shares_extension(wanted, name) && shares_letters(wanted, name)).then_some(30)
}

fn stem(name: &str) -> &str {
    Path::new(name)
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or(name)
}

fn shares_extension(wanted: &str, name: &str) -> bool {
    let extension = Path::new(wanted).extension();
    extension.is_some() && extension == Path::new(name).extension()
}

/// At least 40 % of the letters of the richer name stand in both.
fn shares_letters(wanted: &str, name: &str) -> bool {
    let letters = |text: &str| text.chars().collect::<BTreeSet<char>>();
    let (wanted, name) = (letters(wanted), letters(name));
    let common = wanted.intersection(&name).count();
    wanted.len().max(name.len()) * 2 <= common * 5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first() {
        let names = [
            "README.MD",
            "readme.txt",
            "readme.md.bak",
            "my-readme.md",
            "reader.md",
            "zzz.rs",
            "md",
        ];
        let found = similar("readme.md", names);
        assert_eq!(
            found,
            ["README.MD", "readme.txt", "readme.md.bak", "my-readme.md", "reader.md"]
        );
        assert!(similar("config.yaml", ["x", "photo.png"]).is_empty());
    }

    #[test]
    fn only_a_part_of_a_large_directory_is_looked_at() {
        let mut names: Vec<String> = (0..60).map(|number| format!("{number:02}")).collect();
        names.push("notes.txt".to_owned());
        assert!(similar("notes.txt", names.iter().map(String::as_str)).is_empty());
    }
}

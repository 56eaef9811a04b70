//! The known name that a mistyped one most likely meant.

/// The nearest of `known`, if it is near enough to be worth suggesting: at most
/// a third of the letters differ (two at least, so that a swap is found).
pub(super) fn nearest<'k>(typed: &str, known: &[&'k str]) -> Option<&'k str> {
    let allowed = (typed.chars().count() / 3).max(2);
    known
        .iter()
        .map(|name| (distance(typed, name), *name))
        .filter(|(distance, name)| *distance <= allowed && *distance < name.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Levenshtein's edit distance over characters.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, left) in from.chars().enumerate() {
        let mut diagonal = line;
        let mut before = line + 1;
        if let Some(first) = row.first_mut() {
            *first = before;
        }
        for (cell, right) in row.iter_mut().skip(1).zip(&to) {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = *cell;
            *cell = replaced.min(before + 1).min(diagonal + 1);
            before = *cell;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_a_stranger_finds_none() {
        let known = ["listen", "data_dir", "allowed_hosts", "url"];
        assert_eq!(nearest("lisen", &known), Some("listen"));
        assert_eq!(nearest("data-dir", &known), Some("data_dir"));
        assert_eq!(nearest("allowed_host", &known), Some("allowed_hosts"));
        assert_eq!(nearest("colour", &known), None);
        assert_eq!(nearest("x", &known), None);
    }

    #[test]
    fn distance_counts_single_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }
}

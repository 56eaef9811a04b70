//! The tool a model most likely meant by a name that does not exist.
//!
//! Spelling only: whether the session may use the tool is asked afterwards,
//! with the repaired name, like for any other call.

use crate::base::similarity;

/// Below this similarity a guess would more often be wrong than right.
const CUTOFF: f64 = 0.7;

/// The known name closest to `name`, none when nothing is close enough.
pub fn repair<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = without_markup(name);
    if name.is_empty() {
        return None;
    }
    let exact = |spelling: &str| known.iter().find(|known| **known == spelling).copied();
    let lowered = name.to_lowercase();
    exact(&lowered)
        .or_else(|| exact(&plain(name)))
        .or_else(|| spellings(name).iter().find_map(|spelling| exact(spelling)))
        .or_else(|| similarity::closest(&lowered, known.iter().copied(), CUTOFF))
}

/// Some models spill the syntax of their own call format into the name; what
/// begins at a quote or an angle bracket is that, unless the name begins there.
fn without_markup(name: &str) -> &str {
    let cut = |name, mark| match str::find(name, mark) {
        Some(at) if 0 < at => name.get(..at).unwrap_or(name),
        _ => name,
    };
    ['"', '\'', '<', '>'].into_iter().fold(name, cut)
}

/// Lower case, words joined by underscores.
fn plain(name: &str) -> String {
    name.to_lowercase().replace(['-', ' '], "_")
}

/// `ReadFile` as `read_file`.
fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for (place, character) in name.chars().enumerate() {
        if character.is_ascii_uppercase() && 0 < place {
            snake.push('_');
        }
        snake.extend(character.to_lowercase());
    }
    snake
}

/// Every spelling worth a look: plain, snake case, and each without up to two
/// "tool" suffixes.
fn spellings(name: &str) -> Vec<String> {
    let mut all = vec![name.to_owned(), name.to_lowercase(), plain(name), snake(name)];
    for _ in 0..2 {
        let stripped: Vec<String> = all.iter().filter_map(|spelling| without_suffix(spelling)).collect();
        for spelling in stripped {
            all.extend([plain(&spelling), snake(&spelling), spelling]);
        }
    }
    all
}

fn without_suffix(name: &str) -> Option<String> {
    let lowered = name.to_lowercase();
    let cut = ["_tool", "-tool", "tool"]
        .into_iter()
        .find(|suffix| lowered.ends_with(suffix))?
        .len();
    let rest = name.get(..name.len().checked_sub(cut)?)?.trim_end_matches(['_', '-']);
    (!rest.is_empty()).then(|| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_mark_ends_a_name_that_does_not_begin_with_it() {
        assert_eq!(repair("<cronjob-tool>", &["cronjob"]), Some("cronjob"));
        assert_eq!(repair("<'cronjob>", &["cronjob"]), None);
    }

    #[test]
    fn names_in_any_script_are_harmless() {
        for name in ["읽기_tool", "İtool", "ẞTOOL", "\u{1f600}"] {
            assert_eq!(repair(name, &["read_file"]), None, "{name}");
        }
    }
}

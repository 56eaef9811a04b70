//! What a change looks like to a model: unified diffs.

use std::time::Duration;

use similar::TextDiff;

/// Where two texts have little in common an approximate answer is as good.
const PATIENCE: Duration = Duration::from_millis(500);
const CONTEXT: usize = 3;

/// The change of one file, with the names that git gives both sides; empty when
/// nothing changed.
pub fn unified(path: &str, before: Option<&str>, after: Option<&str>) -> String {
    let name = |side: &str, text: Option<&str>| match text {
        Some(_) => format!("{side}/{}", path.trim_start_matches('/')),
        None => "/dev/null".to_owned(),
    };
    let (old, new) = (name("a", before), name("b", after));
    let diff = TextDiff::configure()
        .timeout(PATIENCE)
        .diff_lines(before.unwrap_or_default(), after.unwrap_or_default());
    diff.unified_diff()
        .context_radius(CONTEXT)
        .header(&old, &new)
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_with_its_surroundings() {
        let diff = unified("/w/f", Some("a\nb\nc\n"), Some("a\nB\nc\n"));
        assert_eq!(diff, "--- a/w/f\n+++ b/w/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
        assert_eq!(unified("f", Some("a"), Some("a")), "");
        assert!(unified("f", None, Some("x\n")).starts_with("--- /dev/null\n+++ b/f\n"));
        assert!(unified("f", Some("x"), None).contains("+++ /dev/null\n"));
    }
}

//! Command lines put in another form, as the original does before it runs them.
//! For those who show or compare them: what runs here is what was judged.

use super::scan::{self, Mark};

/// The last command of an and-or list that is sent to the background, in braces:
/// else a shell of its own waits for it and never ends.
pub fn grouped_background(command: &str) -> String {
    let marks = scan::marks(command);
    let mut groups: Vec<(usize, usize)> = Vec::new();
    let (mut depth, mut begins) = (0_usize, None);
    let mut skip = false;
    for (place, mark) in marks.iter().enumerate() {
        if std::mem::take(&mut skip) {
            continue;
        }
        let next = marks
            .get(place + 1)
            .filter(|next| next.at == mark.at + 1)
            .map(|next| next.character);
        let before = place.checked_sub(1).and_then(|place| marks.get(place));
        let before = before
            .filter(|before| before.at + 1 == mark.at)
            .map(|before| before.character);
        match mark.character {
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            _ if 0 < depth => {}
            '&' | '|' if next == Some(mark.character) => {
                (begins, skip) = (Some(mark.at + 2), true);
            }
            '&' if next == Some('>') || matches!(before, Some('>' | '<')) => {}
            '&' => groups.extend(begins.take().map(|from| (from, mark.at))),
            ';' | '\n' | '|' => begins = None,
            _ => {}
        }
    }
    with_braces(command, &groups)
}

fn with_braces(command: &str, groups: &[(usize, usize)]) -> String {
    let mut text = String::with_capacity(command.len() + 4 * groups.len());
    let mut done = 0;
    for (from, to) in groups {
        let inner = command.get(*from..*to).unwrap_or_default();
        let from = to - inner.trim_start().len();
        text.push_str(command.get(done..from).unwrap_or_default());
        text.push_str(&format!("{{ {}& }}", inner.trim_start()));
        done = to + 1;
    }
    text.push_str(command.get(done..).unwrap_or_default());
    text
}

/// Every `sudo` that is a command, made to read its password from its input; and
/// how many there are, each of which reads one line.
pub fn sudo_reading_input(command: &str) -> (String, usize) {
    const READS: &str = " -S -p ''";
    let marks = scan::marks(command);
    let is_word = |mark: &Mark| !mark.character.is_whitespace() && !";&|()".contains(mark.character);
    let mut ends = Vec::new();
    let mut may_begin = true;
    let mut rest = marks.as_slice();
    while let Some(first) = rest.first() {
        if !is_word(first) {
            may_begin |= !first.character.is_whitespace() || first.character == '\n';
            may_begin &= first.character != ')';
            rest = rest.get(1..).unwrap_or_default();
            continue;
        }
        let length = rest.iter().take_while(|mark| is_word(mark)).count();
        let (word, after) = rest.split_at(length);
        let text: String = word.iter().map(|mark| mark.character).collect();
        if may_begin && text == "sudo" {
            ends.extend(word.last().map(|last| last.at + 1));
        }
        may_begin &= super::is_assignment(&text);
        rest = after;
    }
    let mut rewritten = String::with_capacity(command.len() + READS.len() * ends.len());
    let mut done = 0;
    for end in &ends {
        rewritten.push_str(command.get(done..*end).unwrap_or_default());
        rewritten.push_str(READS);
        done = *end;
    }
    rewritten.push_str(command.get(done..).unwrap_or_default());
    (rewritten, ends.len())
}

/// Whether a volume of a container is a directory of the host.
pub fn mounts_host(volume: &str) -> bool {
    let mut characters = volume.trim().chars();
    match (characters.next(), characters.next(), characters.next()) {
        (Some('/' | '.' | '~' | '$'), ..) => true,
        // A drive, or a volume with a name of one letter: which cannot be told.
        (Some(_), Some(':'), Some('\\' | '/')) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_data_are_left_alone() {
        assert_eq!(
            sudo_reading_input("echo sudo # sudo x"),
            ("echo sudo # sudo x".to_owned(), 0)
        );
        assert_eq!(sudo_reading_input("A=1 sudo id").0, "A=1 sudo -S -p '' id");
        assert_eq!(grouped_background("echo 'a && b &'"), "echo 'a && b &'");
        assert_eq!(grouped_background("a && b 2>&1 &"), "a && { b 2>&1 & }");
        assert_eq!(grouped_background("a&&b&"), "a&&{ b& }");
    }

    #[test]
    fn drives_and_names_are_told_apart() {
        assert!(mounts_host("~/x:/c") && mounts_host("c:/x:/c") && mounts_host("/host"));
        assert!(mounts_host(" /host:/c") && mounts_host("c:/data"));
        assert!(!mounts_host("cache:/c") && !mounts_host("") && !mounts_host("c:data"));
    }
}

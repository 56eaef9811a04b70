//! Brace expansion, as bash does it before anything else.

/// One character of a word that is being put together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) character: char,
    /// Written without quotes, so that `{`, `,` and `}` have their meaning.
    pub(crate) plain: bool,
}

/// Words one braced word may become; more is a sign of an attack.
const MOST_WORDS: usize = 256;
/// Nested braces that are followed.
const DEPTH: usize = 8;

/// All words the braced word stands for; none when there are too many.
pub(crate) fn expand(marks: &[Mark]) -> Option<Vec<Vec<Mark>>> {
    let mut words = Vec::new();
    expand_into(marks, DEPTH, &mut words).then_some(words)
}

fn expand_into(marks: &[Mark], depth: usize, words: &mut Vec<Vec<Mark>>) -> bool {
    let Some(group) = find_group(marks) else {
        words.push(marks.to_vec());
        return words.len() <= MOST_WORDS;
    };
    if depth == 0 {
        return false;
    }
    let (Some(head), Some(tail)) = (marks.get(..group.open), marks.get(group.close + 1..)) else {
        return false;
    };
    let mut tails = Vec::new();
    if !expand_into(tail, depth - 1, &mut tails) {
        return false;
    }
    for choice in &group.choices {
        let mut middles = Vec::new();
        if !expand_into(choice, depth - 1, &mut middles) {
            return false;
        }
        for middle in &middles {
            for tail in &tails {
                if words.len() >= MOST_WORDS {
                    return false;
                }
                words.push([head, middle, tail].concat());
            }
        }
    }
    true
}

struct Group {
    open: usize,
    close: usize,
    choices: Vec<Vec<Mark>>,
}

/// The first `{…}` that holds a top-level comma or a range. One pass with a
/// stack, so that a thousand open braces cost no more than a thousand letters.
fn find_group(marks: &[Mark]) -> Option<Group> {
    let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut best: Option<(usize, usize, Vec<usize>)> = None;
    for (at, mark) in marks.iter().enumerate().filter(|(_, mark)| mark.plain) {
        match mark.character {
            '{' => open.push((at, Vec::new())),
            ',' => {
                if let Some((_, commas)) = open.last_mut() {
                    commas.push(at);
                }
            }
            '}' => {
                let Some((start, commas)) = open.pop() else { continue };
                let useful = !commas.is_empty() || range(marks.get(start + 1..at)?).is_some();
                if useful && best.as_ref().is_none_or(|(first, ..)| start < *first) {
                    best = Some((start, at, commas));
                }
            }
            _ => {}
        }
    }
    let (start, end, commas) = best?;
    let choices = if commas.is_empty() {
        range(marks.get(start + 1..end)?)?
    } else {
        let ends = commas.iter().copied().chain([end]);
        let mut from = start + 1;
        let mut choices = Vec::new();
        for to in ends {
            choices.push(marks.get(from..to)?.to_vec());
            from = to + 1;
        }
        choices
    };
    Some(Group {
        open: start,
        close: end,
        choices,
    })
}

/// `1..3` and `a..c`.
fn range(marks: &[Mark]) -> Option<Vec<Vec<Mark>>> {
    if marks.len() > 24 || marks.iter().any(|mark| !mark.plain) {
        return None;
    }
    let text: String = marks.iter().map(|mark| mark.character).collect();
    let mut ends = text.split("..");
    let (first, last) = (ends.next()?, ends.next()?);
    if let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) {
        let (low, high) = (first.min(last), first.max(last));
        // A long run of numbers stays as it is written: it names no program.
        return (i64::from(high) - i64::from(low) < 64)
            .then(|| (low..=high).map(|number| plain(&number.to_string())).collect());
    }
    let single = |text: &str| {
        text.chars()
            .next()
            .filter(|letter| text.len() == 1 && letter.is_ascii_alphabetic())
    };
    let (first, last) = (single(first)?, single(last)?);
    Some(
        (first.min(last)..=first.max(last))
            .map(|letter| plain(&letter.to_string()))
            .collect(),
    )
}

fn plain(text: &str) -> Vec<Mark> {
    text.chars()
        .map(|character| Mark {
            character,
            plain: false,
        })
        .collect()
}

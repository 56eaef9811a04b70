//! Patterns of commands. Those that restrict are read widely: any path to the
//! program, options in any place and bundle, upper and lower case alike. Those
//! that allow are read narrowly: a wildcard stays within its word but for the
//! one at the end, and a program is the one that the system finds.

use regex::Regex;

use super::glob::{FREE, Reach, TooLarge, expression, whole};
use super::words::{self, Mark, Word};
use crate::guard::ResolvedCommand;
use crate::guard::options::Grammar;

/// Stands between the words of a command that is to be allowed; words do not
/// hold it.
const BETWEEN: char = '\u{1f}';
const WITHIN_WORD: Reach = Reach {
    one: r"[^\x1f]",
    all: ".*",
};

/// Where a bare name is looked for by the system.
const SYSTEM: [&str; 7] = [
    "/bin/",
    "/usr/bin/",
    "/usr/local/bin/",
    "/sbin/",
    "/usr/sbin/",
    "/usr/local/sbin/",
    "/opt/homebrew/bin/",
];

/// A pattern of commands that need no asking.
#[derive(Clone, Debug)]
pub(super) struct Allowing {
    whole: Regex,
    /// Every word of the command is named: no wildcard stands for further ones.
    pub(super) exact: bool,
}

impl Allowing {
    /// Nothing for a pattern of redirects.
    pub(super) fn new(text: &str) -> Option<Result<Self, TooLarge>> {
        (!text.starts_with(['>', '<'])).then(|| Self::of(&words::words(text)))
    }

    fn of(words: &[Word]) -> Result<Self, TooLarge> {
        let mut pattern = String::new();
        for (place, word) in words.iter().enumerate() {
            let last = place + 1 == words.len();
            let only_star = word.len() == 1 && words::is_open(word);
            match (place, last && only_star) {
                (0, _) => {}
                // `echo *` is for `echo` alone too.
                (_, true) => {
                    pattern.push_str(r"(?:\x1f.*)?");
                    continue;
                }
                _ => pattern.push_str(r"\x1f"),
            }
            let reach = if last && words::is_open(word) {
                FREE
            } else {
                WITHIN_WORD
            };
            pattern.push_str(&expression(word, reach));
        }
        let last_is_open = words.last().is_some_and(|word| words::is_open(word));
        if let [program] = words
            && !words::is_open(program)
        {
            pattern.push_str(r"(?:\x1f.*)?");
        }
        Ok(Self {
            whole: whole(&pattern, false)?,
            exact: !last_is_open && words.len() > 1,
        })
    }

    /// `line` as [`line_to_allow`] makes it.
    pub(super) fn covers(&self, line: &str) -> bool {
        self.whole.is_match(line)
    }
}

/// A command as patterns that allow see it.
pub(super) fn line_to_allow(command: &ResolvedCommand) -> String {
    let program = SYSTEM
        .iter()
        .find_map(|place| command.program.strip_prefix(place))
        .filter(|name| !name.contains('/'))
        .unwrap_or(&command.program);
    let mut line = program.replace(BETWEEN, "\u{fffd}");
    for argument in &command.arguments {
        line.push(BETWEEN);
        line.push_str(&argument.replace(BETWEEN, "\u{fffd}"));
    }
    line
}

/// A pattern of commands that ask or are denied.
#[derive(Clone, Debug)]
pub(super) struct Restricting {
    pub(super) text: String,
    /// Each word alone, and whether it may stand for further ones.
    each: Vec<(Regex, bool)>,
    /// The words in their order; others may follow.
    in_order: Regex,
    /// The words that are no options, in their order.
    operands: Regex,
    letters: Vec<char>,
    long: Vec<Regex>,
}

impl Restricting {
    pub(super) fn new(text: &str) -> Option<Result<Self, TooLarge>> {
        (!text.starts_with(['>', '<'])).then(|| Self::of(text))
    }

    fn of(text: &str) -> Result<Self, TooLarge> {
        let words = words::words(text);
        let (mut letters, mut long, mut operands) = (Vec::new(), Vec::new(), Vec::new());
        for word in &words {
            match (word.as_slice(), words::literal(word)) {
                ([Mark::One('-'), Mark::One('-'), _, ..], _) => {
                    long.push(whole(&format!("{}(?:=.*)?", expression(word, FREE)), true)?);
                }
                (_, Some(option)) if is_bundle(&option) => letters.extend(option.chars().skip(1)),
                _ => operands.push(word),
            }
        }
        Ok(Self {
            text: text.to_owned(),
            in_order: in_order(&mut words.iter())?,
            operands: in_order(&mut operands.into_iter())?,
            letters,
            long,
            each: each(&words)?,
        })
    }

    pub(super) fn hits(&self, command: &Restricted) -> bool {
        command.lines.iter().any(|line| self.in_order.is_match(line)) || self.hits_in_any_order(command)
    }

    fn hits_in_any_order(&self, command: &Restricted) -> bool {
        (!self.letters.is_empty() || !self.long.is_empty())
            && self.letters.iter().all(|letter| command.letters.contains(*letter))
            && self
                .long
                .iter()
                .all(|long| command.long.iter().any(|given| long.is_match(given)))
            && command.operands.iter().any(|line| self.operands.is_match(line))
    }

    /// Whether the command could be what the pattern means, once its words are
    /// known: all is alike up to the first that is decided at run time.
    pub(super) fn may_hit(&self, command: &Restricted) -> bool {
        let Some(unknown) = command.words.iter().position(|word| is_undecided(word)) else {
            return false;
        };
        if unknown == 0 {
            return true;
        }
        let mut pairs = self.each.iter().zip(&command.words).take(unknown);
        unknown < self.each.len() && pairs.all(|((word, open), given)| *open || word.is_match(given))
    }
}

fn each(words: &[Word]) -> Result<Vec<(Regex, bool)>, TooLarge> {
    let one = |word: &Word| Ok((whole(&expression(word, FREE), true)?, words::is_open(word)));
    words.iter().map(one).collect()
}

/// The words with blanks between them, and whatever follows.
fn in_order(words: &mut dyn Iterator<Item = &Word>) -> Result<Regex, TooLarge> {
    let words: Vec<String> = words.map(|word| expression(word, FREE)).collect();
    // A star of its own is for nothing at all, too: `kill *` is also `kill`.
    let (last_star, head) = match words.split_last() {
        Some((last, head)) if last == ".*" && !head.is_empty() => (true, head),
        _ => (false, words.as_slice()),
    };
    let tail = if last_star { "(?: .*)?" } else { "(?:[ ].*)?" };
    whole(&format!("{}{tail}", head.join(" ")), true)
}

/// `-abc`: letters of short options.
fn is_bundle(text: &str) -> bool {
    let letters = text.strip_prefix('-').unwrap_or_default();
    !letters.is_empty() && letters.len() <= 4 && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
}

pub(super) fn is_undecided(word: &str) -> bool {
    word.contains('$') || word.contains('`')
}

/// A command as patterns that restrict see it.
pub(super) struct Restricted {
    /// The name of the program, without its path, and the arguments.
    words: Vec<String>,
    /// The ways in which it can be written as a line.
    lines: Vec<String>,
    /// The same without options.
    operands: Vec<String>,
    /// Letters of short options.
    letters: String,
    /// Long options, as given.
    long: Vec<String>,
}

/// Programs with options before their subcommand, and those that take a value.
const GLOBAL: &[(&str, &[&str])] = &[
    (
        "git",
        &[
            "-C",
            "-c",
            "--git-dir",
            "--work-tree",
            "--namespace",
            "--exec-path",
            "--config-env",
        ],
    ),
    (
        "docker",
        &[
            "-H",
            "-c",
            "-l",
            "--host",
            "--context",
            "--log-level",
            "--config",
            "--tlscacert",
            "--tlscert",
            "--tlskey",
        ],
    ),
    (
        "podman",
        &[
            "-c",
            "--connection",
            "--url",
            "--root",
            "--runroot",
            "--log-level",
            "--storage-driver",
        ],
    ),
    (
        "kubectl",
        &[
            "-n",
            "-s",
            "--namespace",
            "--context",
            "--cluster",
            "--kubeconfig",
            "--server",
            "--user",
            "--token",
            "--as",
        ],
    ),
    ("helm", &["-n", "--namespace", "--kube-context", "--kubeconfig"]),
    ("systemctl", &["-H", "-M", "-t", "--host", "--machine", "--root"]),
    (
        "aws",
        &["--profile", "--region", "--endpoint-url", "--output", "--query"],
    ),
    ("gcloud", &["--project", "--account", "--configuration", "--format"]),
    ("terraform", &["-chdir"]),
    ("npm", &["-C", "-w", "--prefix", "--workspace", "--loglevel"]),
    ("pnpm", &["-C", "-F", "--dir", "--filter"]),
    ("yarn", &["--cwd"]),
    ("cargo", &["-C", "-Z", "--config", "--color"]),
    ("gh", &["-R", "--repo"]),
    ("make", &["-C", "-f", "-j", "--directory", "--file"]),
];

impl Restricted {
    pub(super) fn new(command: &ResolvedCommand) -> Self {
        let program = command.program.as_str();
        let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
        let name = name.strip_suffix(".exe").unwrap_or(name).to_lowercase();
        let words: Vec<String> = std::iter::once(name).chain(command.arguments.iter().cloned()).collect();
        Self::of(words, program.contains('/').then_some(program))
    }

    fn of(words: Vec<String>, path: Option<&str>) -> Self {
        let mut lines = vec![words.join(" ")];
        if let (Some(path), Some((_, arguments))) = (path, words.split_first()) {
            lines.push(
                std::iter::once(path)
                    .chain(arguments.iter().map(String::as_str))
                    .collect::<Vec<_>>()
                    .join(" "),
            );
        }
        let is_option = |word: &&String| word.len() > 1 && word.starts_with('-');
        let bare = |words: &[String]| {
            let bare: Vec<&str> = words
                .iter()
                .filter(|word| !is_option(word))
                .map(String::as_str)
                .collect();
            bare.join(" ")
        };
        let mut operands = vec![bare(&words)];
        if let Some(short) = without_global(&words) {
            lines.push(short.join(" "));
            operands.push(bare(&short));
        }
        let letters = words.iter().filter(|word| is_option(word) && !word.starts_with("--"));
        let letters = letters.flat_map(|word| word.chars().skip(1).take(16)).collect();
        let long = words
            .iter()
            .filter(|word| word.len() > 2 && word.starts_with("--"))
            .cloned()
            .collect();
        Self {
            operands,
            lines,
            letters,
            long,
            words,
        }
    }

    /// The command that begins at a later word, as if those before ran it.
    pub(super) fn behind(&self, place: usize) -> Option<Self> {
        let (first, rest) = self.words.get(place..)?.split_first()?;
        let name = first.rsplit('/').next().unwrap_or(first).to_lowercase();
        Some(Self::of(
            std::iter::once(name).chain(rest.iter().cloned()).collect(),
            None,
        ))
    }

    pub(super) fn name(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    pub(super) fn length(&self) -> usize {
        self.words.len()
    }
}

/// The line with the options before the subcommand left out.
fn without_global(words: &[String]) -> Option<Vec<String>> {
    let (name, arguments) = words.split_first()?;
    let (_, valued) = GLOBAL.iter().find(|(known, _)| known == name)?;
    let grammar = Grammar {
        valued,
        ..Grammar::PLAIN
    };
    let mut at = 0;
    while let Some(word) = arguments.get(at).filter(|word| word.len() > 1 && word.starts_with('-')) {
        at += 1 + usize::from(grammar.takes_next(word));
    }
    let rest = arguments.get(at..).filter(|_| at > 0)?;
    Some(std::iter::once(name).chain(rest).cloned().collect())
}

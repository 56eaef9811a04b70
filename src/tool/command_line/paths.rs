//! The paths that a command names, where its text alone tells them. A command
//! that moves, redirects or computes a word names nothing that counts here: then
//! there is no answer, and no pattern of paths covers it.

use std::path::{Path, PathBuf};

use crate::guard::Judgement;
use crate::guard::file_access::normalised;

/// Programs after which a relative path means something else.
const MOVES: [&str; 6] = ["cd", "pushd", "popd", "chroot", "chdir", "unshare"];

/// Every word of every command in the text that may be a path, from `cwd` on.
/// Words that are none are taken for one: it is the pattern that then fails.
pub fn named(text: &str, judgement: &Judgement, cwd: &Path) -> Option<Vec<PathBuf>> {
    if text.contains(['<', '>', '$', '`', '\\', '~', '{']) || judgement.commands.is_empty() {
        return None;
    }
    let mut paths = Vec::new();
    for command in &judgement.commands {
        if MOVES.contains(&command.program.as_str()) {
            return None;
        }
        for word in &command.arguments {
            match word.strip_prefix('-') {
                Some(option) => match option.split_once('=') {
                    Some((_, value)) => paths.push(path(value, cwd)?),
                    None if option.contains('/') => return None,
                    None => {}
                },
                None => paths.push(path(word, cwd)?),
            }
        }
    }
    Some(paths)
}

fn path(word: &str, cwd: &Path) -> Option<PathBuf> {
    // What the shell would replace by names that are not known yet.
    let plain = !word.is_empty() && !word.contains(['*', '?', '[', '$', '`', '~', '{']);
    plain.then(|| normalised(&cwd.join(word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::{self, Setting};

    fn paths(command: &str) -> Option<Vec<String>> {
        let setting = Setting {
            backend: guard::Backend::Local,
            home: "/home/a",
            agent_home: "/home/a/.hermes",
            cwd: Some("/w"),
            sudo_password: false,
        };
        let named = named(command, &guard::check(command, &setting), Path::new("/w"))?;
        Some(named.iter().map(|path| path.to_string_lossy().into_owned()).collect())
    }

    #[test]
    fn words_that_may_be_paths_are_named_from_the_directory_on() {
        for (command, expected) in [
            ("rm -rf build/a /etc/x", vec!["/w/build/a", "/etc/x"]),
            ("rm -rf build/../../x", vec!["/x"]),
            ("rm -rf a && rm b", vec!["/w/a", "/w/b"]),
            (
                "git push --force --repo=up origin",
                vec!["/w/push", "/w/up", "/w/origin"],
            ),
        ] {
            assert_eq!(paths(command).unwrap(), expected, "{command}");
        }
        // What runs inside another command counts as well.
        assert!(paths("sh -c 'rm -rf /etc/x'").unwrap().contains(&"/etc/x".to_owned()));
    }

    #[test]
    fn a_command_whose_paths_are_made_by_the_shell_names_none() {
        for command in [
            "cd /tmp && rm -rf x",
            "rm -rf build/*",
            "rm -rf ~/x",
            "rm -rf $HOME",
            "rm -rf `pwd`",
            "rm -rf {a,b}",
            "rm -rf a > b",
            "tar -xf a -C/etc",
            "rm -rf ''",
        ] {
            assert_eq!(paths(command), None, "{command}");
        }
    }
}

//! Git: what loses work or rewrites shared history, and what runs programs.

use super::{HIGH, MEDIUM, Rule, Scene};
use crate::guard::Span;
use crate::guard::call::{Call, is_group};
use crate::guard::options::Grammar;
use crate::guard::resolve::Value;
use crate::guard::unwrap::runs_program;

/// Options before the subcommand.
pub(super) const GLOBAL: Grammar = Grammar {
    valued: &[
        "-C",
        "-c",
        "--git-dir",
        "--work-tree",
        "--namespace",
        "--exec-path",
        "--super-prefix",
        "--config-env",
        "--attr-source",
    ],
    ..Grammar::PLAIN
};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "git-reset-hard",
        key: "git reset --hard (destroys uncommitted changes)",
        description: "throws uncommitted changes away",
        weight: HIGH,
        programs: &["git"],
        when: |call, _| {
            in_subcommand(call, "reset", |args| {
                long(args, "hard", 1).filter(|arg| !arg.text.starts_with("--he"))
            })
        },
        hits: &[
            "git reset --hard HEAD~1",
            "git reset --h",
            "git -C repo reset --har",
            "git --git-dir='/tmp/g space/.git' reset --hard",
        ],
        misses: &[
            "git reset --soft HEAD~1",
            "git reset --help",
            "git commit -m 'reset --hard'",
        ],
    },
    Rule {
        id: "git-force-push",
        key: "git force push (rewrites remote history)",
        description: "overwrites the history that others share",
        weight: HIGH,
        programs: &["git"],
        when: |call, _| {
            in_subcommand(call, "push", |args| {
                long(args, "force-with-lease", 4).or_else(|| args.iter().find(|arg| arg.text == "--mirror"))
            })
        },
        hits: &[
            "git push --force origin main",
            "git push --force-with-lease",
            "git -C /x push --forc",
        ],
        misses: &[
            "git push origin main",
            "git push --follow-tags",
            "git status && echo push --force",
        ],
    },
    Rule {
        id: "git-force-push-short",
        key: "git force push short flag (rewrites remote history)",
        description: "overwrites the history that others share",
        weight: HIGH,
        programs: &["git"],
        when: |call, _| in_subcommand(call, "push", |args| short(args, 'f')),
        hits: &["git push -f origin main", "git push -uf origin x"],
        misses: &["git push -u origin f"],
    },
    Rule {
        id: "git-force-push-refspec",
        key: "git force push refspec (rewrites remote history)",
        description: "overwrites the history that others share",
        weight: HIGH,
        programs: &["git"],
        when: |call, _| {
            in_subcommand(call, "push", |args| {
                args.iter().find(|arg| arg.text.len() > 1 && arg.text.starts_with('+'))
            })
        },
        hits: &["git push origin +main", "git push origin +HEAD:main"],
        misses: &["git push origin main"],
    },
    Rule {
        id: "git-apply-unsafe",
        key: "git apply outside the working tree",
        description: "lets a patch write files outside the working tree",
        weight: HIGH,
        programs: &["git"],
        when: |call, _| {
            in_subcommand(call, "apply", |args| {
                long(args, "unsafe-paths", 3)
                    .filter(|_| !args.iter().any(|arg| matches!(arg.text.as_str(), "--check" | "--stat")))
            })
        },
        hits: &[
            "git apply --unsafe-paths x.patch",
            "git -C r apply --directory=/ --unsafe x.patch",
        ],
        misses: &[
            "git apply x.patch",
            "git apply --directory=vendor x.patch",
            "git apply --unsafe-paths --check x.patch",
        ],
    },
    Rule {
        id: "git-clean-force",
        key: "git clean with force (deletes untracked files)",
        description: "deletes files that git does not know",
        weight: HIGH,
        programs: &["git"],
        when: |call, _| {
            in_subcommand(call, "clean", |args| {
                let dry = short(args, 'n').or_else(|| long(args, "dry-run", 1));
                short(args, 'f')
                    .or_else(|| long(args, "force", 1))
                    .filter(|_| dry.is_none())
            })
        },
        hits: &[
            "git clean -fd",
            "git clean -xdf",
            "git clean --force",
            "git -C /x clean -fdx",
        ],
        misses: &["git clean -n", "git clean -dn"],
    },
    Rule {
        id: "git-branch-delete-long",
        key: "git branch force delete (long flags)",
        description: "deletes a branch that is not merged",
        weight: MEDIUM,
        programs: &["git"],
        when: |call, _| deletes_branch(call, true, "--delete"),
        hits: &[
            "git branch --delete --force x",
            "git -C /x branch --delete --force feature",
        ],
        misses: &["git branch --delete x"],
    },
    Rule {
        id: "git-branch-delete-long-force-first",
        key: "git branch force delete (long flags, force-first)",
        description: "deletes a branch that is not merged",
        weight: MEDIUM,
        programs: &["git"],
        when: |call, _| deletes_branch(call, true, "--force"),
        hits: &["git branch --force --delete x"],
        misses: &["git branch --force x y"],
    },
    Rule {
        id: "git-branch-delete",
        key: "git branch force delete",
        description: "deletes a branch that is not merged",
        weight: MEDIUM,
        programs: &["git"],
        when: |call, _| {
            in_subcommand(call, "branch", |args| short(args, 'D')).or_else(|| deletes_branch(call, false, ""))
        },
        hits: &[
            "git branch -D x",
            "git branch -d --force x",
            "git branch -df x",
            "git branch -f -d x",
        ],
        misses: &["git branch -d merged-topic", "git branch -m a b", "git branch x"],
    },
    Rule {
        id: "git-discard",
        key: "git checkout/restore of working tree (destroys uncommitted changes)",
        description: "throws uncommitted changes of files away",
        weight: MEDIUM,
        programs: &["git"],
        when: discards,
        hits: &[
            "git checkout -- .",
            "git checkout .",
            "git restore .",
            "git checkout -f",
            "git checkout HEAD~1 -- src",
            "git switch -f main",
            "git checkout-index -fa",
        ],
        misses: &["git checkout main", "git checkout -b x", "git restore --staged x"],
    },
    Rule {
        id: "git-stash-drop",
        key: "git stash drop (destroys stashed changes)",
        description: "throws stashed changes away",
        weight: MEDIUM,
        programs: &["git"],
        when: |call, _| {
            in_subcommand(call, "stash", |args| {
                args.first()
                    .filter(|verb| matches!(verb.text.as_str(), "drop" | "clear"))
            })
        },
        hits: &["git stash drop", "git stash clear"],
        misses: &["git stash", "git stash pop", "git stash list"],
    },
    Rule {
        id: "git-delete-remote-branch",
        key: "git push delete (removes a remote branch)",
        description: "deletes a branch or tag that others share",
        weight: MEDIUM,
        programs: &["git"],
        when: |call, _| {
            in_subcommand(call, "push", |args| {
                let flag = long(args, "delete", 2).or_else(|| short(args, 'd'));
                flag.or_else(|| args.iter().find(|arg| arg.text.len() > 1 && arg.text.starts_with(':')))
            })
        },
        hits: &["git push origin --delete x", "git push origin :x"],
        misses: &["git push origin x:y", "git push --dry-run"],
    },
    Rule {
        id: "git-expire",
        key: "git reflog expire/gc --prune (destroys recoverable commits)",
        description: "destroys commits that could still be recovered",
        weight: MEDIUM,
        programs: &["git"],
        when: |call, _| {
            let expires = in_subcommand(call, "reflog", |args| {
                args.first()
                    .filter(|verb| matches!(verb.text.as_str(), "expire" | "delete"))
            });
            expires.or_else(|| {
                in_subcommand(call, "gc", |args| {
                    args.iter()
                        .find(|arg| arg.text.starts_with("--prune=now") || arg.text == "--prune=all")
                })
            })
        },
        hits: &["git reflog expire --expire=now --all", "git gc --prune=now"],
        misses: &["git reflog", "git gc"],
    },
    Rule {
        id: "git-rewrite",
        key: "git history rewrite (filter-branch/filter-repo)",
        description: "rewrites the whole history",
        weight: HIGH,
        programs: &["git"],
        when: |call, _| {
            let at = GLOBAL.command_at(&call.args)?;
            let verb = call.args.get(at)?;
            matches!(verb.text.as_str(), "filter-branch" | "filter-repo").then_some(verb.span)
        },
        hits: &["git filter-branch --all"],
        misses: &["git log --grep=filter-branch"],
    },
    Rule {
        id: "git-program-setting",
        key: "arbitrary program execution via git setting",
        description: "makes git run another program",
        weight: HIGH,
        programs: &["git"],
        when: program_setting,
        hits: &[
            "git -c core.pager='sh -c id' log",
            "git -c alias.x='!id' x",
            "git config core.sshCommand ./x",
            "git config --global core.hooksPath /tmp/h",
            "git config --file .git/config core.pager 'sh -c id'",
            "git clone --config core.hooksPath=/tmp/h https://x/y",
        ],
        misses: &[
            "git -c core.pager=cat log",
            "git -c user.name=x commit",
            "git config core.editor vim",
            "git config --get core.pager",
        ],
    },
    Rule {
        id: "git-program-option",
        key: "arbitrary program execution via git option",
        description: "makes git run another program",
        weight: HIGH,
        programs: &["git"],
        when: program_option,
        hits: &[
            "git ls-remote --upload-pack='sh -c id' ./r",
            "git grep --open-files-in-pager='sh -c id' x",
            "git clone ext::sh /x",
            "git rebase -x 'make' main",
            "git clone -u 'sh -c id' h:x",
            "git clone --template=/tmp/t h:x",
            "git --exec-path=/tmp/e status",
            "git difftool -x ./x",
            "git send-email --sendmail-cmd=./x p",
        ],
        misses: &["git ls-remote origin", "git grep x", "git clone https://x/y"],
    },
];

fn in_subcommand(call: &Call, name: &str, find: impl for<'a> Fn(&'a [Value]) -> Option<&'a Value>) -> Option<Span> {
    let at = GLOBAL.command_at(&call.args)?;
    let (verb, args) = call.args.get(at..)?.split_first()?;
    if verb.text != name {
        return None;
    }
    let end = args.iter().position(|arg| arg.text == "--").unwrap_or(args.len());
    find(args.get(..end)?).map(|arg| Span {
        start: verb.span.start.min(arg.span.start),
        end: arg.span.end.max(verb.span.end),
    })
}

/// Git takes any abbreviation of a long option.
fn long<'a>(args: &'a [Value], name: &str, least: usize) -> Option<&'a Value> {
    args.iter()
        .find(|arg| crate::guard::call::abbreviates(&arg.text, name, least))
}

fn short(args: &[Value], letter: char) -> Option<&Value> {
    args.iter().find(|arg| is_group(&arg.text) && arg.text.contains(letter))
}

fn deletes_branch(call: &Call, only_long: bool, first: &str) -> Option<Span> {
    in_subcommand(call, "branch", |args| {
        let delete = long(args, "delete", 3).or_else(|| short(args, 'd'))?;
        let force = long(args, "force", 3).or_else(|| short(args, 'f'))?;
        let are_long = delete.text.starts_with("--") && force.text.starts_with("--");
        let order = if force.span.start < delete.span.start {
            "--force"
        } else {
            "--delete"
        };
        (are_long == only_long && (first.is_empty() || first == order)).then_some(delete)
    })
}

fn discards(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let at = GLOBAL.command_at(&call.args)?;
    let (verb, args) = call.args.get(at..)?.split_first()?;
    let has = |wanted: &str| args.iter().any(|arg| arg.text == wanted);
    let discards = match verb.text.as_str() {
        "checkout" => {
            has("--") && args.last().is_some_and(|arg| arg.text != "--")
                || has(".")
                || has(":/")
                || short(args, 'f').is_some()
                || has("--force")
        }
        "restore" => {
            let staged = has("--staged") || short(args, 'S').is_some();
            let tree = has("--worktree") || short(args, 'W').is_some();
            (!staged || tree)
                && args
                    .iter()
                    .any(|arg| matches!(arg.text.as_str(), "." | ":/" | "*" | "./" | "--"))
        }
        "switch" => has("--discard-changes") || short(args, 'f').is_some() || has("--force"),
        "checkout-index" => short(args, 'f').is_some() || has("--force"),
        "read-tree" => has("--reset"),
        _ => false,
    };
    discards.then_some(verb.span)
}

/// A value that is only a pager or an editor hides nothing.
fn is_plain(value: &str) -> bool {
    const KNOWN: &[&str] = &[
        "",
        "cat",
        "less",
        "more",
        "delta",
        "bat",
        "diff-so-fancy",
        "vim",
        "vi",
        "nvim",
        "nano",
        "emacs",
        "true",
        "false",
        "ssh",
        "cache",
        "store",
        "osxkeychain",
        "manager",
        "code",
        "gpg",
        "gpg2",
        "difft",
    ];
    let mut words = value.split_whitespace();
    KNOWN.contains(&words.next().unwrap_or_default())
        && words
            .all(|word| !word.contains(['$', '`', ';', '|', '&', '(']) && !word.to_lowercase().contains("proxycommand"))
}

fn program_setting(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let inline = call.option_texts(&["-c", "--config"]).find(|(text, _)| {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let name = name.to_lowercase();
        (runs_program(&name) && !is_plain(value)) || (name.starts_with("alias.") && value.starts_with('!'))
    });
    if let Some((_, arg)) = inline {
        return Some(arg.span);
    }
    let at = GLOBAL.command_at(&call.args)?;
    let (verb, args) = call.args.get(at..)?.split_first()?;
    if verb.text != "config" {
        return None;
    }
    let file = call.option_text(&["-f", "--file"]).map(|(_, file)| file);
    let is_file = |arg: &Value| file.is_some_and(|file| std::ptr::eq(file, arg));
    let mut operands = args
        .iter()
        .filter(|arg| !arg.text.starts_with('-') && !matches!(arg.text.as_str(), "set" | "get") && !is_file(arg));
    let (name, value) = (operands.next()?, operands.next()?);
    let lower = name.text.to_lowercase();
    let runs = runs_program(&lower) && !is_plain(&value.text);
    (runs || (lower.starts_with("alias.") && value.text.starts_with('!'))).then_some(value.span)
}

fn program_option(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let at = GLOBAL.command_at(&call.args)?;
    let verb = call.args.get(at)?;
    let options: &[&str] = match verb.text.as_str() {
        "rebase" => &["-x", "--exec"],
        "grep" => &["--open-files-in-pager"],
        "difftool" | "mergetool" => &["--extcmd", "-x"],
        "clone" => &["-u", "--upload-pack", "--template"],
        "init" => &["--template"],
        "send-email" => &["--sendmail-cmd", "--to-cmd", "--cc-cmd", "--header-cmd"],
        _ => &["--upload-pack", "--receive-pack", "--exec"],
    };
    let option = call.option_texts(options).next().map(|(_, arg)| arg.span);
    let before = call.args.get(..at).unwrap_or_default();
    let global = before
        .iter()
        .find(|arg| arg.text.starts_with("--exec-path=") || arg.text.starts_with("--config-env"))
        .map(|arg| arg.span);
    option.or(global).or_else(|| {
        call.args
            .iter()
            .find(|arg| arg.text.starts_with("ext::"))
            .map(|arg| arg.span)
    })
}

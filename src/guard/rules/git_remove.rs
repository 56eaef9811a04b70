//! Version control: files, branches and changes that are removed at once, in
//! git and in its relatives.

use super::{HIGH, MEDIUM, Rule, Scene};
use crate::guard::Span;
use crate::guard::call::{Call, is_group};
use crate::guard::resolve::Value;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "git-remove-all",
        key: "git rm of the whole tree or with force",
        description: "deletes tracked files, also with changes that are not committed",
        weight: HIGH,
        programs: &["git"],
        when: removes_all,
        hits: &["git rm -rf .", "git rm -r --force src", "git -C x rm -r '*'"],
        misses: &[
            "git rm -r cached",
            "git rm --cached -r .",
            "git rm -rn .",
            "git rm old.txt",
        ],
    },
    Rule {
        id: "git-worktree-remove",
        key: "git worktree remove --force",
        description: "deletes a working tree with changes that are not committed",
        weight: MEDIUM,
        programs: &["git"],
        when: |call, _| {
            let (verb, args) = split(call, &["worktree", "submodule"])?;
            let removes = args
                .first()
                .is_some_and(|arg| matches!(arg.text.as_str(), "remove" | "deinit"));
            let forced = args
                .iter()
                .find(|arg| arg.text == "--force" || is_group(&arg.text) && arg.text.contains('f'));
            forced.filter(|_| removes).map(|_| verb.span)
        },
        hits: &["git worktree remove --force ../x", "git submodule deinit -f --all"],
        misses: &[
            "git worktree remove ../x",
            "git worktree list",
            "git submodule update -f",
        ],
    },
    Rule {
        id: "git-ref-delete",
        key: "git refs deleted directly",
        description: "deletes branches or tags without the checks of git branch",
        weight: MEDIUM,
        programs: &["git"],
        when: |call, _| {
            let (verb, args) = split(call, &["update-ref", "symbolic-ref", "prune", "lfs", "push"])?;
            let word = |wanted: &[&str]| args.iter().any(|arg| wanted.contains(&arg.text.as_str()));
            let deletes = match verb.text.as_str() {
                "update-ref" => word(&["-d", "--stdin"]),
                "symbolic-ref" => word(&["-d", "--delete"]),
                "prune" => !word(&["-n", "--dry-run"]),
                "lfs" => word(&["prune"]) && word(&["--force", "-f"]),
                _ => word(&["--prune"]),
            };
            deletes.then_some(verb.span)
        },
        hits: &[
            "git update-ref -d refs/heads/x",
            "git prune --expire now",
            "git push --prune origin",
        ],
        misses: &["git update-ref refs/heads/x HEAD", "git prune -n", "git fetch --prune"],
    },
    Rule {
        id: "other-vcs-discard",
        key: "discard of changes (hg/svn/jj)",
        description: "throws changes away that are not committed, or history",
        weight: MEDIUM,
        programs: &["hg", "svn", "jj", "bzr", "fossil", "sl", "p4"],
        when: discards,
        hits: &[
            "hg update -C",
            "hg strip tip",
            "svn revert -R .",
            "hg --config extensions.purge= purge",
            "jj abandon x",
        ],
        misses: &["hg status", "svn update", "svn diff", "jj log", "hg commit -m revert"],
    },
    Rule {
        id: "vcs-program-setting",
        key: "arbitrary program execution via hg/svn setting",
        description: "makes the version control run another program",
        weight: HIGH,
        programs: &["hg", "svn"],
        when: |call, _| {
            let runs = |text: &str| {
                let lower = text.to_lowercase();
                [
                    "hooks.",
                    "alias.",
                    "ui.ssh",
                    "ui.editor",
                    "pager.",
                    "extensions.",
                    "tunnels",
                    "diff-cmd",
                    "editor-cmd",
                    "merge-tools.",
                ]
                .iter()
                .any(|part| lower.contains(part))
                    && !lower.ends_with('=')
            };
            call.option_texts(&["--config", "--config-option", "--editor-cmd", "--diff-cmd"])
                .find(|(text, _)| runs(text))
                .map(|(_, arg)| arg.span)
        },
        hits: &[
            "hg --config 'hooks.pre-status=id' status",
            "svn --config-option config:tunnels:x=id co svn+x://h/",
        ],
        misses: &[
            "hg --config ui.username=a commit",
            "hg --config extensions.purge= status",
        ],
    },
];

/// The subcommand, when it is one of these, and its arguments.
fn split<'c>(call: &'c Call, names: &[&str]) -> Option<(&'c Value, &'c [Value])> {
    let at = super::git::GLOBAL.command_at(&call.args)?;
    let (verb, args) = call.args.get(at..)?.split_first()?;
    names.contains(&verb.text.as_str()).then_some((verb, args))
}

fn removes_all(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let (verb, args) = split(call, &["rm"])?;
    let has = |letter: char, long: &str| {
        args.iter()
            .any(|arg| arg.text == long || is_group(&arg.text) && arg.text.contains(letter))
    };
    let kept = has('n', "--dry-run") || args.iter().any(|arg| arg.text == "--cached");
    let everything = args
        .iter()
        .any(|arg| matches!(arg.text.as_str(), "." | "*" | ":/" | "./"));
    (!kept && (has('f', "--force") || everything && has('r', "-r"))).then_some(verb.span)
}

fn discards(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let verb = call.operands().find(|arg| !arg.text.contains('='))?;
    let has = |words: &[&str]| call.args.iter().any(|arg| words.contains(&arg.text.as_str()));
    let discards = match (call.name.as_str(), verb.text.as_str()) {
        ("hg" | "sl", "update" | "up" | "goto" | "checkout") => has(&["-C", "--clean"]),
        ("hg" | "sl", "strip" | "purge" | "rollback") => true,
        ("hg" | "sl", "revert") => has(&["-a", "--all"]),
        ("svn", "revert" | "cleanup") => has(&["-R", "--recursive", "--remove-unversioned"]),
        ("jj", "abandon") | ("bzr" | "fossil" | "p4", "revert") => true,
        _ => false,
    };
    discards.then_some(verb.span)
}

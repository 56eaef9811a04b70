//! What a checker of the file's language says of a file that was just written.
//!
//! Checkers are programs of the machine and run as any command does: in the
//! sandbox, with a time limit. They only read. None that could be made to run a
//! program of the workspace is used so that it would, for nobody judged that.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::target::Target;
use crate::base::text::first_chars;
use crate::environment::{Chunk, Command, Parents};
use crate::tool::Call;

/// The original's figure.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longer files are not checked, and longer old ones not compared with.
pub(super) const LINTED_BYTES: usize = 1 << 20;
const OUTPUT_BYTES: usize = 64 << 10;
const SHOWN_CHARS: usize = 4_000;
/// What a shell says of a program that is not there.
const NOT_THERE: i32 = 127;
/// How a checker learns of the file, so that no name needs quoting.
const FILE: &str = "HERMES_CHECKED_FILE";

/// A checker for files of some extensions.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Linter {
    /// As the model knows it.
    name: &'static str,
    extensions: &'static [&'static str],
    script: &'static str,
}

const LINTERS: &[Linter] = &[
    Linter {
        name: "python3",
        extensions: &["py"],
        // Isolated: nothing of the workspace is imported.
        script: r#"command -v python3 >/dev/null || exit 127
exec python3 -I -S -c 'import sys
try:
    compile(open(sys.argv[1], "rb").read(), sys.argv[1], "exec", 0x400, True)
except SyntaxError as e:
    print("line %s: %s" % (e.lineno, e.msg)); sys.exit(1)
except (ValueError, RecursionError, MemoryError) as e:
    print(e); sys.exit(1)' "$HERMES_CHECKED_FILE""#,
    },
    Linter {
        name: "node --check",
        extensions: &["js", "mjs", "cjs"],
        script: r#"command -v node >/dev/null || exit 127
exec node --check "$HERMES_CHECKED_FILE""#,
    },
    Linter {
        name: "tsc --noEmit",
        extensions: &["ts", "tsx"],
        // The machine's own: `npx` would run whatever the workspace calls `tsc`.
        script: r#"command -v tsc >/dev/null || exit 127
exec tsc --noEmit --pretty false "$HERMES_CHECKED_FILE""#,
    },
    Linter {
        name: "go vet",
        extensions: &["go"],
        // Settings of the workspace could name programs to run; C compilers too.
        script: r#"command -v go >/dev/null || exit 127
export GOENV=off GOFLAGS= GOTOOLCHAIN=local CGO_ENABLED=0
exec go vet "$HERMES_CHECKED_FILE""#,
    },
    Linter {
        name: "rustfmt --check",
        extensions: &["rs"],
        // A toolchain that the workspace names could be any program.
        script: r#"export RUSTUP_TOOLCHAIN=stable
rustfmt --version >/dev/null 2>&1 || exit 127
exec rustfmt --check --edition 2021 "$HERMES_CHECKED_FILE""#,
    },
];

/// How a check ended.
#[derive(Debug, PartialEq, Eq)]
enum Checked {
    Clean,
    /// Its lines, the name of the file left out.
    Faults(Vec<String>),
    Skipped(String),
}

impl Linter {
    pub(super) fn of(path: &Path) -> Option<&'static Self> {
        let extension = path.extension()?.to_string_lossy().to_lowercase();
        LINTERS
            .iter()
            .find(|linter| linter.extensions.contains(&extension.as_str()))
    }

    /// The `lint` field of a result: faults of the file that `before`, its old
    /// content, did not have.
    pub(super) async fn field(&self, call: &Call, target: &Target, path: &Path, before: Option<Vec<u8>>) -> Value {
        let faults = match self.check(call, target, path).await {
            Checked::Clean => return json!({"status": "ok"}),
            Checked::Skipped(why) => return json!({"status": "skipped", "message": why}),
            Checked::Faults(faults) => faults,
        };
        let old = match before {
            Some(before) => self.check_old(call, target, path, before).await,
            None => Vec::new(),
        };
        let fresh: Vec<&str> = faults
            .iter()
            .map(String::as_str)
            .filter(|fault| !old.iter().any(|line| line == fault))
            .collect();
        if fresh.is_empty() {
            return json!({"status": "ok", "message": "it has only the faults it had before"});
        }
        json!({"status": "error", "output": first_chars(&fresh.join("\n"), SHOWN_CHARS)})
    }

    /// The faults of the old content, put aside for the check.
    async fn check_old(&self, call: &Call, target: &Target, path: &Path, before: Vec<u8>) -> Vec<String> {
        let directory = target
            .workspace
            .tmp()
            .join("hermes-lint")
            .join(call.call_id.to_string());
        let aside = directory.join(path.file_name().unwrap_or_default());
        let written = target.workspace.write_atomic(&aside, before, Parents::Create);
        if written.await.is_err() {
            return Vec::new();
        }
        match self.check(call, target, &aside).await {
            Checked::Faults(faults) => faults,
            Checked::Clean | Checked::Skipped(_) => Vec::new(),
        }
    }

    async fn check(&self, call: &Call, target: &Target, path: &Path) -> Checked {
        if let Some(why) = call.host.no_commands() {
            return Checked::Skipped(why);
        }
        let command = Command {
            script: self.script.to_owned(),
            cwd: path.parent().unwrap_or(path).to_path_buf(),
            timeout: PATIENCE,
            stdin: None,
            environment: vec![(FILE.to_owned(), path.to_string_lossy().into_owned())],
        };
        let mut output = Vec::new();
        let take = |chunk: Chunk| {
            let room = OUTPUT_BYTES.saturating_sub(output.len());
            output.extend(chunk.bytes().iter().take(room));
        };
        let environment = call.host.environment();
        let ended = environment
            .execute(&target.workspace, command, take, call.cancel.clone())
            .await;
        match ended {
            Err(error) => Checked::Skipped(error.to_string()),
            Ok(end) if end.interrupted => Checked::Skipped("the check was stopped".to_owned()),
            Ok(end) if end.timed_out => Checked::Skipped(format!("the check took over {} s", PATIENCE.as_secs())),
            Ok(end) if end.exit_code == NOT_THERE => Checked::Skipped(format!("`{}` is not available here", self.name)),
            Ok(end) if end.exit_code == 0 => Checked::Clean,
            Ok(_) => Checked::Faults(lines(&output, path)),
        }
    }
}

/// The lines of an output, the path of the file left out: it differs between
/// the new content and the old.
fn lines(output: &[u8], path: &Path) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let text = text.replace(&*path.to_string_lossy(), &name);
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_has_its_checker() {
        for (path, name) in [
            ("a.py", Some("python3")),
            ("a.MJS", Some("node --check")),
            ("a.tsx", Some("tsc --noEmit")),
            ("a.go", Some("go vet")),
            ("a.rs", Some("rustfmt --check")),
            ("a.txt", None),
            ("py", None),
        ] {
            assert_eq!(Linter::of(Path::new(path)).map(|linter| linter.name), name, "{path}");
        }
    }

    #[test]
    fn faults_are_told_apart_by_their_text_not_by_where_the_file_lies() {
        let new = lines(b"/w/a.js:1\n\nSyntaxError  \n", Path::new("/w/a.js"));
        let old = lines(
            b"/t/hermes-lint/a.js:1\nSyntaxError\n",
            Path::new("/t/hermes-lint/a.js"),
        );
        assert_eq!((&new, new.len()), (&old, 2));
    }
}

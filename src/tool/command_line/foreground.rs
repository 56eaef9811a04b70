//! Commands that do not come to an end, told by their words.

use super::scan::{self, QUOTED};

/// Why a command should run in the background; the text is for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsuited {
    #[error("this detaches a process by itself: use `background: true`, which keeps its output and can stop it")]
    Detaches,
    #[error("`&` starts a process nobody looks after: use `background: true` instead")]
    Ampersand,
    #[error(
        "this starts a server or a watcher that does not end: use `background: true`, then look at it with `process`"
    )]
    Endless,
}

/// Refuses what would hold the foreground or slip out of it.
pub fn check_foreground(command: &str) -> Result<(), Unsuited> {
    let marks = scan::marks(command);
    // A file system that does not tell cases apart runs `NPM` as well.
    let shown = |mark: &scan::Mark| match mark.character {
        QUOTED => '_',
        character => character.to_ascii_lowercase(),
    };
    let text: String = marks.iter().map(shown).collect();
    let commands = simple_commands(&text);
    let asks_for_help = |words: &[&str]| {
        words.iter().any(|word| ["--help", "--version", "-h"].contains(word)) || words.last() == Some(&"-v")
    };
    if commands
        .iter()
        .any(|(words, _)| !asks_for_help(words) && detaches(words))
    {
        return Err(Unsuited::Detaches);
    }
    if has_background_operator(&text) {
        return Err(Unsuited::Ampersand);
    }
    if commands
        .iter()
        .any(|(words, piped)| !asks_for_help(words) && (is_server(words) || (!piped && follows(words))))
    {
        return Err(Unsuited::Endless);
    }
    Ok(())
}

/// The words of every simple command, and whether its output goes into a pipe.
fn simple_commands(text: &str) -> Vec<(Vec<&str>, bool)> {
    let mut commands = Vec::new();
    for piece in text.split_inclusive([';', '&', '|', '\n', '(', ')']) {
        let words = piece.trim_end_matches([';', '&', '|', '\n', '(', ')']);
        let words: Vec<&str> = words
            .split_whitespace()
            .skip_while(|word| is_before_program(word))
            .collect();
        if !words.is_empty() {
            commands.push((unwrapped(words), piece.ends_with('|')));
        }
    }
    commands
}

/// What may stand before the program without changing which one runs.
fn is_before_program(word: &str) -> bool {
    let known = [
        "sudo", "env", "exec", "time", "command", "npx", "bunx", "{", "!", "then", "do", "else", "if", "while",
    ];
    known.contains(&word) || super::is_assignment(word)
}

/// The command that a runner of commands runs, its program by its name.
fn unwrapped(mut words: Vec<&str>) -> Vec<&str> {
    if let Some(program) = words.first_mut() {
        *program = program.rsplit('/').next().unwrap_or(program);
    }
    let skipped = match words.as_slice() {
        ["poetry" | "pipenv" | "uv" | "pdm" | "hatch" | "rye", "run", _, ..] | ["bundle", "exec", _, ..] => 2,
        ["npm" | "pnpm" | "yarn" | "bun", "exec" | "dlx" | "x", _, ..] => 2,
        ["pnpm" | "yarn" | "bun", "vite" | "next" | "nodemon", ..] => 1,
        [python, "-m", "uvicorn" | "gunicorn" | "flask", ..] if python.starts_with("python") => 2,
        _ => return words,
    };
    unwrapped(words.split_off(skipped))
}

fn detaches(words: &[&str]) -> bool {
    matches!(words, ["nohup" | "disown" | "setsid", ..])
}

/// A `&` with blanks around it, or at the end. Not `&&`, not part of a redirect.
fn has_background_operator(text: &str) -> bool {
    // Once for all of them: behind the last one there may be any amount.
    let mut rest = text.trim_end();
    let mut before = ' ';
    while let Some(at) = rest.find('&') {
        let (head, tail) = rest.split_at(at);
        before = head.chars().next_back().unwrap_or(before);
        let after = tail.get(1..).unwrap_or_default();
        let ends = after.is_empty();
        let stands_alone = before.is_whitespace() && after.starts_with(char::is_whitespace);
        if (ends || stands_alone) && before != '&' && before != '>' {
            return true;
        }
        before = '&';
        rest = after;
    }
    false
}

/// Programs that serve until they are stopped.
fn is_server(words: &[&str]) -> bool {
    match words {
        ["npm" | "pnpm" | "yarn" | "bun", rest @ ..] => {
            let script = rest.iter().find(|word| **word != "run" && !word.starts_with('-'));
            // `dev:web` and `start-all` are of the kind.
            let kind = script.and_then(|script| script.split([':', '-', '.', '/']).next());
            kind.is_some_and(|kind| ["dev", "start", "serve", "watch"].contains(&kind))
        }
        ["docker", "compose", "up", rest @ ..] | ["docker-compose", "up", rest @ ..] => {
            !rest.iter().any(|word| *word == "-d" || *word == "--detach")
        }
        ["vite", rest @ ..] => !rest.first().is_some_and(|word| ["build", "optimize"].contains(word)),
        ["next" | "astro" | "nuxt", "dev", ..] | ["ng" | "jekyll", "serve", ..] | ["hugo", "server", ..] => true,
        ["nodemon" | "uvicorn" | "gunicorn" | "hypercorn", ..] | ["flask", "run", ..] => true,
        ["rails", "s" | "server", ..] => true,
        [python, rest @ ..] if python.starts_with("python") => {
            rest.starts_with(&["-m", "http.server"]) || rest.contains(&"runserver")
        }
        _ => false,
    }
}

/// Programs that watch until they are stopped, unless a pipe ends them.
fn follows(words: &[&str]) -> bool {
    match words {
        ["tail" | "journalctl", rest @ ..] => rest.iter().any(|word| ["-f", "-F", "--follow"].contains(word)),
        ["watch", ..] => true,
        ["tsc", rest @ ..] => rest.iter().any(|word| ["-w", "--watch"].contains(word)),
        ["vitest" | "jest" | "webpack", rest @ ..] => rest.contains(&"--watch"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_grows_with_the_text_and_not_with_its_square() {
        let command = format!("{}{}", "x&".repeat(400_000) + "x", " ".repeat(400_000));
        assert_eq!(check_foreground(&command), Ok(()));
        assert_eq!(check_foreground(&format!("{command}& \n ")), Err(Unsuited::Ampersand));
    }

    #[test]
    fn text_that_is_only_written_down_is_not_refused() {
        for command in [
            "cat > run.sh <<'EOF'\nnohup server &\nEOF",
            "echo 'npm start &' # then & there",
            "git commit -m \"use nohup & friends\"",
            "npm run dev --help",
            "npm start -V",
            "pip install uvicorn",
            "npm run devtools",
            "make 2>&1 | tee log",
            "make &> log",
            "tail -f log | head -3",
            "timeout 5 tail -f log",
            "vite build",
            "docker compose up -d",
        ] {
            assert_eq!(check_foreground(command), Ok(()), "{command}");
        }
    }

    #[test]
    fn endless_commands_are_found_wherever_they_stand() {
        for command in [
            "cd app && PORT=1 npm run dev",
            "sudo tail -f log",
            "(npx vite)",
            "make; watch ls",
            "poetry run uvicorn app:x",
            "python3.12 -m http.server",
            "python -m gunicorn app",
            "./node_modules/.bin/vite",
            "npm run dev:web",
            "NPM start",
        ] {
            assert_eq!(check_foreground(command), Err(Unsuited::Endless), "{command}");
        }
        assert_eq!(check_foreground("make &"), Err(Unsuited::Ampersand));
        assert_eq!(check_foreground("x=1 setsid y"), Err(Unsuited::Detaches));
    }
}

//! What builtins change for the commands that follow, and functions that only
//! exist to multiply.

use super::{Place, Tracer};
use crate::guard::Span;
use crate::guard::call::Call;
use crate::guard::options::is_assignment;
use crate::guard::resolve::{Origin, Value, literal_output};
use crate::guard::rules::{Scene, is_private};
use crate::guard::shell::{Command, Piece, Script, Shape, Word};

impl Tracer<'_> {
    pub(super) fn apply(&mut self, call: &Call, place: &Place<'_>) {
        match call.name.as_str() {
            "export" | "declare" | "typeset" | "local" | "readonly" => self.declare(call, place),
            "alias" => self.alias(call, place),
            "cp" | "ln" | "install" | "mv" => self.rename_program(call),
            "read" | "mapfile" | "readarray" | "getopts" => self.read_into(call, place),
            "printf" => self.print_into(call, place),
            "chmod" => self.make_executable(call),
            "set" | "shift" => self.set_arguments(call, place),
            "cd" | "pushd" | "popd" => self.change_directory(call),
            _ => {}
        }
    }

    fn declare(&mut self, call: &Call, place: &Place<'_>) {
        let refers = call.short('n').is_some();
        for arg in &call.args {
            if let Some((name, text)) = arg.text.split_once('=')
                && is_assignment(&arg.text)
            {
                // A name reference has whatever value the other variable gets.
                let content = (arg.known && !refers).then(|| vec![text.to_owned()]);
                self.remember(name, content, false, place);
            }
        }
    }

    /// A program of the system under another name is still that program.
    fn rename_program(&mut self, call: &Call) {
        let mut operands = call.operands();
        let (Some(program), Some(name), None) = (operands.next(), operands.next(), operands.next()) else {
            return;
        };
        if program.text.starts_with('/') && program.text.contains("bin/") && name.known {
            self.aliases.insert(name.text.clone(), program.text.clone());
        }
    }

    /// The body of an alias is judged where it is defined: it may be used by
    /// anything that follows, in this text or in the next.
    fn alias(&mut self, call: &Call, place: &Place<'_>) {
        for arg in &call.args {
            let Some((name, body)) = arg.text.split_once('=') else {
                continue;
            };
            self.aliases.insert(name.to_owned(), body.to_owned());
            let mut inner = place.clone();
            inner.conditional = true;
            inner.feed = None;
            inner.origin = Origin::From(arg.span);
            self.active.push(name.to_owned());
            self.text(body, &inner);
            self.active.pop();
        }
    }

    fn read_into(&mut self, call: &Call, place: &Place<'_>) {
        let piped = call.feed.as_ref().and_then(|feed| feed.secret);
        let read = call
            .redirects
            .iter()
            .find_map(|redirect| self.secret_in(&redirect.target));
        let secret = piped
            .or(read)
            .or(call.input.as_ref().and_then(|input| input.value.secret));
        if let Some(secret) = secret {
            self.tainted
                .extend(call.operands().map(|name| (name.text.clone(), secret)));
        }
        let names: Vec<&Value> = call.operands().collect();
        let literal = call.input_text().map(|(text, _)| text.trim().to_owned());
        for (position, name) in names.iter().enumerate() {
            let content = match (&literal, call.name.as_str(), position, names.len()) {
                (Some(text), "read", 0, 1) => Some(vec![text.clone()]),
                _ => None,
            };
            self.remember(&name.text, content, false, place);
        }
    }

    /// Where the word stands when it names a secret file.
    pub(super) fn secret_in(&self, file: &Value) -> Option<Span> {
        let scene = Scene {
            setting: self.setting,
            executable: &self.executable,
            fetched: &self.fetched,
            secrets: &self.secrets,
        };
        is_private(&file.text, &scene).then_some(file.span)
    }

    fn print_into(&mut self, call: &Call, place: &Place<'_>) {
        let [flag, name, rest @ ..] = call.args.as_slice() else {
            return;
        };
        if flag.text != "-v" {
            return;
        }
        let printed = literal_output(&Call {
            name: "printf".to_owned(),
            args: rest.to_vec(),
            ..Call::default()
        });
        self.remember(&name.text, printed.map(|text| vec![text]), false, place);
    }
    /// `set -- a b` and `shift`; on one path only nothing is known any more.
    fn set_arguments(&mut self, call: &Call, place: &Place<'_>) {
        // Where two settings are possible nothing is known.
        if place.conditional && (call.name == "shift" || !self.positional.is_empty()) {
            self.positional.clear();
            return;
        }
        if call.name == "shift" {
            let count = call.args.first().map_or(Some(1), |count| count.text.parse().ok());
            let count = count.unwrap_or(usize::MAX).min(self.positional.len());
            self.positional.drain(..count);
            return;
        }
        let from = match call.args.iter().position(|arg| arg.text == "--") {
            Some(dashes) => dashes + 1,
            None if call
                .args
                .first()
                .is_some_and(|first| !first.text.starts_with(['-', '+'])) =>
            {
                0
            }
            None => return,
        };
        let values = call.args.get(from..).unwrap_or_default();
        let known = values.iter().all(|value| value.known);
        self.positional = if known {
            values.iter().map(|value| value.text.clone()).collect()
        } else {
            Vec::new()
        };
    }

    fn change_directory(&mut self, call: &Call) {
        let target = call.operands().find(|arg| !arg.text.starts_with('+'));
        match target {
            None if call.name == "cd" => self.cwd = Some(self.setting.home.to_owned()),
            Some(target) if target.known && target.text != "-" => self.step_into(&target.text),
            _ => self.cwd = None,
        }
    }

    /// The working directory after `cd` to a known path.
    pub(super) fn step_into(&mut self, path: &str) {
        self.cwd = if path.starts_with(['/', '~']) {
            Some(path.to_owned())
        } else {
            let base = self.cwd.take();
            base.filter(|base| base.len() < 4096)
                .map(|base| format!("{base}/{path}"))
        };
    }

    fn make_executable(&mut self, call: &Call) {
        let mut operands = call.operands();
        let adds = operands.next().is_some_and(|mode| {
            mode.text.contains("+x")
                || mode.text.contains("+rx")
                || mode.text.bytes().any(|digit| matches!(digit, b'1' | b'5' | b'7'))
        });
        if adds {
            self.executable
                .extend(operands.filter_map(|file| file.base_name().map(str::to_owned)).take(16));
            self.executable.truncate(64);
        }
    }
}

/// A function that starts itself beside itself: `f() { f | f & }`.
pub(super) fn spawns_itself(name: &str, body: &Command) -> bool {
    match &body.shape {
        Shape::Group(script) | Shape::Subshell(script) => script_spawns(name, script),
        _ => false,
    }
}

/// Two starts of itself, and at least one that is not waited for.
fn script_spawns(name: &str, script: &Script) -> bool {
    let mut starting = 0;
    let mut beside = false;
    for statement in &script.statements {
        for pipeline in &statement.chain {
            let calls = pipeline.commands.iter().filter(|command| starts(name, command)).count();
            starting += calls;
            beside |= calls > 0 && (statement.background || pipeline.commands.len() > 1);
        }
    }
    starting > 1 && beside
}

fn starts(name: &str, command: &Command) -> bool {
    match &command.shape {
        Shape::Simple(simple) => simple.words.first().is_some_and(|word| is_text(word, name)),
        Shape::Group(script) | Shape::Subshell(script) => script
            .statements
            .iter()
            .flat_map(|statement| &statement.chain)
            .flat_map(|pipeline| &pipeline.commands)
            .any(|inner| matches!(&inner.shape, Shape::Simple(simple) if simple.words.first().is_some_and(|word| is_text(word, name)))),
        _ => false,
    }
}

fn is_text(word: &Word, name: &str) -> bool {
    matches!(word.pieces.as_slice(), [Piece::Text { text, .. }] if text == name)
}

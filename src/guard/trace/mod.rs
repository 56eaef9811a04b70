//! Follows a script as the shell would, without running it: keeps variables,
//! functions and written files, and hands every invocation to the rules.
//!
//! Work is charged per byte and invocation and stops at a bound linear in the
//! input; descent is counted. Whatever is cut off there is reported as a limit.

mod again;
mod invoke;
mod params;
mod simple;
mod state;
mod words;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::Setting;
use super::Span;
use super::ledger::Ledger;
use super::resolve::{Feed, Origin, Variables};
use super::shell::{self, Command, Pipeline, Script, Shape, Statement, Trouble, Word};

/// Constructs, substitutions and nested texts together.
const DEPTH: u32 = 96;

/// What a text inside a text costs besides its length: to read one takes as
/// long as to follow dozens of words.
const NESTED: usize = 1_024;
/// What a function costs besides its commands, which are followed again for calls.
const FUNCTION: usize = 1_024;
/// A long text is read again at few levels only (each level is two deep).
const DEEP: u32 = 8;
const LONG_AND_DEEP: usize = 16 * 1024;

pub(crate) struct Tracer<'a> {
    pub(crate) setting: &'a Setting<'a>,
    pub(crate) ledger: Ledger,
    variables: Variables,
    functions: HashMap<String, Function>,
    /// Calls of functions that were followed, by name and arguments.
    followed: HashSet<(String, Vec<String>)>,
    /// A variable was read whose value is not known.
    undecided: bool,
    aliases: HashMap<String, String>,
    /// Files whose content was written by a literal earlier in the text.
    files: HashMap<String, String>,
    /// Files made executable earlier in the text.
    executable: Vec<String>,
    /// Files downloaded earlier in the text.
    fetched: Vec<String>,
    /// Files and variables that hold a secret since an earlier command.
    secrets: Vec<String>,
    tainted: HashMap<String, Span>,
    /// Programs started since the enclosing substitution began.
    heard: Vec<String>,
    positional: Vec<String>,
    /// Where the script is, as far as `cd` tells.
    cwd: Option<String>,
    /// Functions whose bodies are being followed for a call.
    active: Vec<String>,
    choice: usize,
    choices: usize,
    work: usize,
    depth: u32,
}

/// A function of the text.
#[derive(Clone)]
struct Function {
    body: Rc<Command>,
    origin: Origin,
    /// Its body depends on arguments or on variables that are set later.
    undecided: bool,
}

/// What surrounds a command.
#[derive(Clone)]
struct Place<'t> {
    /// The text that spans refer to, for spelling what is not known.
    text: &'t str,
    origin: Origin,
    feed: Option<Rc<Feed>>,
    background: bool,
    /// Not on the only path: assignments add to what a variable may be.
    conditional: bool,
    contained: bool,
    /// Nothing here may ever run.
    guessed: bool,
    wrappers: Vec<String>,
}

impl<'a> Tracer<'a> {
    pub(crate) fn new(setting: &'a Setting<'a>, work: usize) -> Self {
        Self {
            setting,
            ledger: Ledger::default(),
            variables: Variables::default(),
            functions: HashMap::new(),
            followed: HashSet::new(),
            undecided: false,
            aliases: HashMap::new(),
            files: HashMap::new(),
            executable: Vec::new(),
            fetched: Vec::new(),
            secrets: Vec::new(),
            tainted: HashMap::new(),
            heard: Vec::new(),
            positional: Vec::new(),
            cwd: setting.cwd.map(str::to_owned),
            active: Vec::new(),
            choice: 0,
            choices: 1,
            work,
            depth: 0,
        }
    }

    pub(crate) fn work_left(&self) -> usize {
        self.work
    }

    pub(crate) fn document(&mut self, text: &str) {
        let place = Place {
            text,
            origin: Origin::At(0),
            feed: None,
            background: false,
            conditional: false,
            contained: false,
            guessed: false,
            wrappers: Vec::new(),
        };
        self.text(text, &place);
    }

    /// Reads a text as a script and follows it.
    fn text(&mut self, text: &str, outer: &Place<'_>) {
        let place = &Place { text, ..outer.clone() };
        let whole = place.origin.place(Span {
            start: 0,
            end: text.len(),
        });
        let nested = self.depth > 0;
        if nested && self.depth > DEEP && text.len() > LONG_AND_DEEP {
            self.ledger.limit(whole);
            return;
        }
        let cost = text.len() * 2 + if nested { NESTED } else { 0 };
        if !self.charge(cost, whole) || !self.descend(whole) {
            return;
        }
        let parsed = shell::parse(text);
        self.script(&parsed.script, place);
        match parsed.trouble {
            Some(Trouble::Malformed { at, what }) => {
                let at = text.floor_char_boundary(at);
                let span = place.origin.place(Span {
                    start: at,
                    end: next_boundary(text, at),
                });
                self.ledger.malformed(what, span);
            }
            Some(Trouble::Limit { .. }) => self.ledger.limit(whole),
            None => {}
        }
        self.depth -= 1;
    }

    /// Takes work from the budget; false when it is used up.
    fn charge(&mut self, amount: usize, span: Span) -> bool {
        if let Some(left) = self.work.checked_sub(amount) {
            self.work = left;
            return true;
        }
        self.work = 0;
        self.ledger.limit(span);
        false
    }

    /// One level down; the caller comes up again by itself.
    fn descend(&mut self, span: Span) -> bool {
        if self.depth >= DEPTH {
            self.ledger.limit(span);
            return false;
        }
        self.depth += 1;
        true
    }

    fn script(&mut self, script: &Script, place: &Place<'_>) {
        for statement in &script.statements {
            if self.work == 0 {
                return;
            }
            self.statement(statement, place);
        }
    }

    fn statement(&mut self, statement: &Statement, place: &Place<'_>) {
        let mut inner = place.clone();
        inner.background |= statement.background;
        for (position, pipeline) in statement.chain.iter().enumerate() {
            inner.conditional = place.conditional || position > 0;
            self.pipeline(pipeline, &inner);
        }
        if self.depth == 1 {
            self.heard.clear();
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, place: &Place<'_>) -> Option<Rc<Feed>> {
        if let [only] = pipeline.commands.as_slice() {
            return self.command(only, place);
        }
        let mut stage = place.clone();
        stage.conditional = true;
        let cwd = self.cwd.clone();
        for command in &pipeline.commands {
            self.cwd.clone_from(&cwd);
            let fed = self.command(command, &stage);
            let fed = fed.map(Rc::unwrap_or_clone).unwrap_or_default();
            stage.feed = Some(Rc::new(match &stage.feed {
                Some(before) => fed.after(before),
                None => fed,
            }));
        }
        self.cwd = cwd;
        stage.feed
    }

    /// Follows one command; what it hands to the next stage of a pipeline.
    fn command(&mut self, command: &Command, place: &Place<'_>) -> Option<Rc<Feed>> {
        let span = place.origin.place(command.span);
        if !self.charge(16, span) || !self.descend(span) {
            return None;
        }
        let fed = match &command.shape {
            Shape::Simple(simple) => self.simple(simple, &command.redirects, span, place),
            shape => {
                let mark = self.heard.len();
                self.compound(shape, command, place);
                Some(Rc::new(self.feed_of_heard(mark, span)))
            }
        };
        self.depth -= 1;
        fed
    }

    fn compound(&mut self, shape: &Shape, command: &Command, place: &Place<'_>) {
        let mut inner = place.clone();
        self.compound_redirects(command, &mut inner);
        match shape {
            Shape::Simple(_) => {}
            Shape::Group(script) => self.script(script, &inner),
            Shape::Subshell(script) => {
                inner.conditional = true;
                let cwd = self.cwd.clone();
                self.script(script, &inner);
                self.cwd = cwd;
            }
            Shape::If(parts) => {
                inner.conditional = true;
                for part in parts {
                    self.script(part, &inner);
                }
            }
            Shape::Loop { condition, body } => {
                inner.conditional = true;
                self.script(condition, &inner);
                self.script(body, &inner);
            }
            Shape::For { name, words, body } => self.for_loop(name, words, body, inner),
            Shape::Case { subject, arms } => {
                self.words(std::slice::from_ref(subject), &inner);
                inner.conditional = true;
                for arm in arms {
                    self.words(&arm.patterns, &inner);
                    self.script(&arm.body, &inner);
                }
            }
            Shape::Function { name, body } => self.define(name, body, &inner),
            Shape::Test(words) => {
                for value in self.words(words, &inner) {
                    self.index_in(&value.text, value.span, &inner);
                }
            }
            Shape::Coproc(command) => {
                inner.background = true;
                inner.conditional = true;
                self.command(command, &inner);
            }
        }
    }

    fn for_loop(&mut self, name: &str, words: &[Word], body: &Script, mut inner: Place<'_>) {
        let values = self.words(words, &inner);
        inner.conditional = true;
        for value in values.iter().take(16) {
            let content = value.known.then(|| vec![value.text.clone()]);
            self.variables.set(name, content, false);
        }
        if values.is_empty() {
            self.variables.set(name, None, false);
        }
        if let Some(secret) = values.iter().find_map(|value| value.secret) {
            self.tainted.insert(name.to_owned(), secret);
        }
        self.script(body, &inner);
    }

    fn define(&mut self, name: &str, body: &Rc<Command>, place: &Place<'_>) {
        let span = place.origin.place(body.span);
        if !self.charge(FUNCTION, span) {
            return;
        }
        if state::spawns_itself(name, body) {
            self.ledger.fork_bomb(span, place.contained || place.guessed);
        }
        let mut inner = place.clone();
        inner.conditional = true;
        let outer = std::mem::take(&mut self.positional);
        let before = std::mem::take(&mut self.undecided);
        self.command(body, &inner);
        let undecided = std::mem::replace(&mut self.undecided, before);
        self.positional = outer;
        let function = Function {
            body: Rc::clone(body),
            origin: place.origin,
            undecided,
        };
        self.functions.insert(name.to_owned(), function);
    }
}

/// The end of the character that starts at `at`.
fn next_boundary(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.chars().next().map_or(0, char::len_utf8)
}

//! One invocation: recorded, judged, unwrapped, and its effect on what follows.

use std::rc::Rc;

use super::simple::program_name;
use super::{Place, Tracer};
use crate::guard::call::{Call, How, Redirected};
use crate::guard::foreign;
use crate::guard::resolve::{Feed, Origin, Value, literal_output};
use crate::guard::rules::{self, Scene};
use crate::guard::shell::Operator;
use crate::guard::unwrap::{self, Inner};
use crate::guard::{Setting, Span};

/// Units of a rule that hits: a text of thousands is asked about anyway, and nobody
/// reads more of them.
const HIT: usize = 600;
/// Words of a command as people write them.
const FEW_WORDS: usize = 64;
/// Wrappers around wrappers; more has no use but to hide.
const MOST_HOPS: u32 = 12;
/// Every hop copies the words: a long command behind so many is no work of a person.
const MANY_HOPS: u32 = 3;
const MANY_WORDS: usize = 1_000;
/// Calls of functions inside functions that are followed.
const MOST_FRAMES: usize = 3;

impl Tracer<'_> {
    pub(super) fn invoke(&mut self, mut call: Call, place: &Place<'_>, hops: u32) -> Option<Rc<Feed>> {
        if !self.charge(price(call.args.len()), call.span) {
            return None;
        }
        let unusual = hops > MANY_HOPS && call.args.len() > MANY_WORDS;
        if hops > MOST_HOPS || unusual {
            self.ledger.limit(call.span);
            return None;
        }
        call.writes = rules::writes(&call);
        let listed = (!call.program.text.is_empty()).then(|| self.ledger.command(&call));
        if listed.is_some() {
            self.heard.push(call.name.clone());
        }
        self.ledger.redirects_of(&call);
        let setting = Setting {
            cwd: self.cwd.as_deref(),
            ..*self.setting
        };
        let scene = Scene {
            setting: &setting,
            executable: &self.executable,
            fetched: &self.fetched,
            secrets: &self.secrets,
        };
        let (found, hits) = (self.ledger.findings(), self.ledger.hits());
        rules::judge(&call, &scene, &mut self.ledger);
        self.ledger.made_in(found, &call);
        if !self.charge(HIT * (self.ledger.hits() - hits), call.span) {
            return None;
        }
        let mut fed = self.fed_by(&call);
        let met = self.ledger.met();
        for inner in unwrap::inner(&call) {
            if let Some(inner_feed) = self.enter(inner, &call, place, hops) {
                fed = Rc::unwrap_or_clone(inner_feed).after(&Feed { span: call.span, ..fed });
            }
        }
        if let Some(place) = listed.filter(|_| met < self.ledger.met()) {
            self.ledger.runs_others(place);
        }
        self.follow_function(&call, place);
        self.follow_alias(&call, place);
        self.follow_file(&call, place);
        self.apply(&call, place);
        self.indexes_of(&call, place);
        self.remember_downloads(&call, &fed);
        self.remember_secrets(&call, &fed);
        self.remember_writes(&call, &fed, place);
        Some(Rc::new(fed))
    }

    fn enter(&mut self, inner: Inner, call: &Call, place: &Place<'_>, hops: u32) -> Option<Rc<Feed>> {
        match inner {
            Inner::Argv {
                wrapper,
                mut words,
                contained,
                guessed,
                assigned,
                cwd,
            } => {
                let rest = if words.is_empty() {
                    Vec::new()
                } else {
                    words.split_off(1)
                };
                let program = words.pop()?;
                let rest = self.opened_by(call, rest);
                let mut wrappers = call.wrappers.clone();
                wrappers.push(wrapper);
                let end = rest.last().map_or(program.span.end, |last| last.span.end);
                let span = Span {
                    start: program.span.start,
                    end: end.max(program.span.end),
                };
                let next = Call {
                    name: program_name(&program),
                    program,
                    args: rest,
                    redirects: read_by(call),
                    assigned,
                    span,
                    background: call.background,
                    wrappers,
                    input: call.input.clone(),
                    feed: call.feed.clone(),
                    writes: Vec::new(),
                    contained: call.contained || contained,
                    guessed: call.guessed || guessed,
                    runner: Some(call.span),
                };
                let outer = self.cwd.clone();
                if let Some(cwd) = cwd {
                    self.step_into(&cwd);
                }
                let fed = self.invoke(next, place, hops + 1);
                self.cwd = outer;
                fed
            }
            Inner::Shell { text, origin, reads } => {
                let mut inner = self.inside(call, place);
                inner.origin = origin;
                if reads {
                    inner.feed = left_for_code(call);
                }
                let cwd = self.cwd.clone();
                self.text(&text, &inner);
                if call.name != "eval" {
                    self.cwd = cwd;
                }
                None
            }
            Inner::Foreign { text, span } => {
                for line in foreign::shell_texts(&text) {
                    let mut inner = self.inside(call, place);
                    inner.origin = Origin::From(span);
                    self.text(&line, &inner);
                }
                None
            }
        }
    }

    /// The place of code that the call runs.
    fn inside<'t>(&self, call: &Call, place: &Place<'t>) -> Place<'t> {
        Place {
            wrappers: call.wrappers.clone(),
            contained: call.contained,
            guessed: call.guessed,
            background: call.background,
            conditional: true,
            feed: None,
            ..place.clone()
        }
    }

    /// The body was judged where it is defined; a call is followed when its
    /// arguments or later variables decide what it does.
    fn follow_function(&mut self, call: &Call, place: &Place<'_>) {
        let name = &call.program.text;
        let Some(function) = self.functions.get(name).filter(|function| function.undecided).cloned() else {
            return;
        };
        let arguments: Vec<String> = call.args.iter().map(|arg| arg.text.clone()).collect();
        if self.active.contains(name)
            || self.active.len() >= MOST_FRAMES
            || !self.followed.insert((name.clone(), arguments.clone()))
            || !self.charge(super::FUNCTION, call.span)
        {
            return;
        }
        self.active.push(name.clone());
        let outer = std::mem::replace(&mut self.positional, arguments);
        let mut inner = place.clone();
        inner.feed.clone_from(&call.feed);
        // The text of the body may be gone by now.
        inner.origin = function.origin;
        inner.text = "";
        self.command(&function.body, &inner);
        self.positional = outer;
        self.active.pop();
    }

    fn follow_alias(&mut self, call: &Call, place: &Place<'_>) {
        let Some(alias) = self.aliases.get(&call.program.text).cloned() else {
            return;
        };
        if self.active.contains(&call.program.text) || self.active.len() >= MOST_FRAMES {
            return;
        }
        self.active.push(call.program.text.clone());
        let arguments: Vec<&str> = call.args.iter().map(|arg| arg.text.as_str()).collect();
        let mut inner = self.inside(call, place);
        inner.origin = Origin::From(call.span);
        self.text(&format!("{alias} {}", arguments.join(" ")), &inner);
        self.active.pop();
    }

    /// A file that was written by a literal and is run now.
    fn follow_file(&mut self, call: &Call, place: &Place<'_>) {
        if self.files.is_empty() {
            return;
        }
        let Some(script) = unwrap::script_file(call) else {
            return;
        };
        let Some(text) = self.files.get(plain_path(&script.text)).cloned() else {
            return;
        };
        let mut inner = self.inside(call, place);
        inner.origin = Origin::From(call.span);
        self.text(&text, &inner);
    }

    /// Words that a search or a list fills in name a secret when that does.
    fn opened_by(&self, call: &Call, mut words: Vec<Value>) -> Vec<Value> {
        if !call.is(&["find", "gfind", "fd", "fdfind", "xargs", "gxargs", "parallel"]) {
            return words;
        }
        let setting = Setting {
            cwd: self.cwd.as_deref(),
            ..*self.setting
        };
        let scene = Scene {
            setting: &setting,
            executable: &self.executable,
            fetched: &self.fetched,
            secrets: &self.secrets,
        };
        let own = call.args.iter().find(|arg| rules::is_private(&arg.text, &scene));
        let named = call.feed.as_ref().and_then(|feed| feed.named.or(feed.secret));
        if let Some(secret) = own.map(|arg| arg.span).or(named) {
            for word in words.iter_mut().filter(|word| !word.known || word.text.contains("{}")) {
                word.secret = Some(secret);
            }
        }
        words
    }

    /// Files that hold what a secret was copied or packed into.
    fn remember_secrets(&mut self, call: &Call, fed: &Feed) {
        let carries = fed.secret.is_some() || call.args.iter().any(|arg| arg.secret.is_some());
        if !carries || self.secrets.len() >= 64 {
            return;
        }
        let names = call.writes.iter().filter(|write| write.how != How::Delete);
        let names = names
            .filter_map(|write| write.path.rsplit('/').next())
            .filter(|name| !name.is_empty());
        self.secrets.extend(names.map(str::to_owned).take(8));
    }

    /// Files that a download leaves behind.
    fn remember_downloads(&mut self, call: &Call, fed: &Feed) {
        let copied = call.is(&["scp", "rsync"]) && call.operands().next().is_some_and(|from| from.text.contains(':'));
        if !(fed.fetched || copied) || self.fetched.len() >= 64 {
            return;
        }
        let fetches = rules::FETCHERS.contains(&call.name.as_str()) || call.is(&["scp", "rsync", "sftp"]);
        let named = call.writes.iter().map(|write| write.path.as_str());
        let by_address = call.operands().map(|address| address.text.as_str()).filter(|_| fetches);
        let files = named
            .chain(by_address)
            .filter_map(|path| path.split(['?', '#']).next()?.rsplit(['/', ':']).next());
        self.fetched
            .extend(files.filter(|name| !name.is_empty()).map(str::to_owned).take(8));
    }

    fn remember_writes(&mut self, call: &Call, fed: &Feed, place: &Place<'_>) {
        let Some(text) = &fed.text else { return };
        for write in call
            .writes
            .iter()
            .filter(|write| matches!(write.how, How::Redirect | How::Tee) || call.name == "dd")
        {
            let path = plain_path(&write.path).to_owned();
            if is_shell_file(&path) {
                let mut inner = self.inside(call, place);
                // Nothing runs yet: worth a question, not the floor.
                inner.guessed = true;
                inner.origin = Origin::From(call.span);
                self.text(text, &inner);
            }
            if !self.charge(text.len(), call.span) {
                return;
            }
            let content = self.files.entry(path).or_default();
            if content.len() + text.len() <= 64 * 1024 {
                content.push_str(text);
            }
        }
    }

    fn fed_by(&mut self, call: &Call) -> Feed {
        let setting = Setting {
            cwd: self.cwd.as_deref(),
            ..*self.setting
        };
        let scene = Scene {
            setting: &setting,
            executable: &self.executable,
            fetched: &self.fetched,
            secrets: &self.secrets,
        };
        let mut feed = rules::feed(call, &scene);
        feed.span = call.span;
        let size = call.input_text().map_or(0, |(text, _)| text.len());
        let cost = if call.name == "tr" { size * 64 } else { size };
        if self.charge(cost, call.span) {
            feed.text = literal_output(call);
        }
        match &call.feed {
            Some(before) => feed.after(before),
            None => feed,
        }
    }

    /// What a compound command may hand to the next stage of a pipeline.
    pub(super) fn feed_of_heard(&self, mark: usize, span: Span) -> Feed {
        let heard = self.heard.get(mark..).unwrap_or_default();
        let fetched = heard.iter().any(|name| rules::FETCHERS.contains(&name.as_str()));
        Feed {
            fetched,
            span,
            ..Feed::default()
        }
    }
}

/// Units of an invocation. Rules look at every word, and wrappers copy them all: a
/// command of thousands costs more than as many short ones.
fn price(words: usize) -> usize {
    32 + 12 * words + 36 * words.saturating_sub(FEW_WORDS)
}

/// What a wrapper reads is read by the program it starts.
fn read_by(call: &Call) -> Vec<Redirected> {
    let reads = |redirect: &&Redirected| matches!(redirect.operator, Operator::Read | Operator::DuplicateIn);
    call.redirects.iter().filter(reads).cloned().collect()
}

/// What the commands of the code find on standard input.
fn left_for_code(call: &Call) -> Option<Rc<Feed>> {
    match &call.input {
        Some(input) => {
            let text = input.value.known.then(|| input.value.text.clone());
            Some(Rc::new(Feed {
                text,
                span: input.value.span,
                ..Feed::default()
            }))
        }
        None => call.feed.clone(),
    }
}

fn plain_path(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}

fn is_shell_file(path: &str) -> bool {
    matches!(path.rsplit_once('.'), Some((_, "sh" | "bash" | "zsh" | "ksh")))
}

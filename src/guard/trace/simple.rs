//! Simple commands: assignments, redirects, and every argv they may have.

use std::rc::Rc;

use super::{Place, Tracer};
use crate::guard::Span;
use crate::guard::call::{Call, Input, Redirected};
use crate::guard::resolve::{Content, Feed, Value};
use crate::guard::shell::{Assigned, Assignment, Command, Operator, Redirect, Simple};

/// Alternatives of one command line that are judged one by one.
const MOST_CHOICES: usize = 8;

impl Tracer<'_> {
    pub(super) fn simple(
        &mut self,
        simple: &Simple,
        redirects: &[Redirect],
        span: Span,
        place: &Place<'_>,
    ) -> Option<Rc<Feed>> {
        let outer = (
            std::mem::take(&mut self.choice),
            std::mem::replace(&mut self.choices, 1),
        );
        let mut fed = None;
        loop {
            let (call, waiting) = self.call(simple, redirects, span, place);
            let lasting = call.program.text.is_empty() && call.args.is_empty();
            let seen = call.is(&["eval", "source", "."]) || self.functions.contains_key(&call.program.text);
            if lasting || seen {
                // Code that runs in this shell sees the assignments before it.
                let inner = Place {
                    conditional: place.conditional || seen,
                    ..place.clone()
                };
                for (assignment, content) in waiting {
                    self.assign(assignment, content, &inner);
                }
            }
            let feed = self.invoke(call, place, 0);
            if self.choice == 0 {
                fed = feed;
            }
            self.choice += 1;
            if self.choice >= self.choices.min(MOST_CHOICES) || self.work == 0 {
                break;
            }
        }
        (self.choice, self.choices) = outer;
        fed
    }

    /// The invocation, and the assignments that are for it alone.
    fn call<'s>(
        &mut self,
        simple: &'s Simple,
        redirects: &[Redirect],
        span: Span,
        place: &Place<'_>,
    ) -> (Call, Vec<(&'s Assignment, Content)>) {
        let mut assigned = Vec::new();
        let mut waiting = Vec::new();
        for assignment in &simple.assignments {
            let (value, content) = self.assigned(assignment, place);
            assigned.push((assignment.name.clone(), value));
            // Without a command each is seen by the next; `declare` keeps arrays.
            if simple.words.is_empty() || matches!(assignment.value, Assigned::Array(_)) {
                self.assign(assignment, content, place);
            } else {
                waiting.push((assignment, content));
            }
        }
        let mut words = self.words(&simple.words, place).into_iter();
        let program = words.next().unwrap_or_default();
        let mut call = Call {
            name: program_name(&program),
            program,
            args: words.collect(),
            assigned,
            span,
            background: place.background,
            wrappers: place.wrappers.clone(),
            feed: place.feed.clone(),
            contained: place.contained,
            guessed: place.guessed,
            ..Call::default()
        };
        for redirect in redirects {
            self.redirect(redirect, &mut call, place);
        }
        (call, waiting)
    }

    fn redirect(&mut self, redirect: &Redirect, call: &mut Call, place: &Place<'_>) {
        let target = self.single(&redirect.target, place);
        match redirect.operator {
            Operator::HereString => {
                let text = format!("{}\n", target.text);
                call.input = Some(Input {
                    value: Value {
                        text,
                        verbatim: target.verbatim,
                        ..target
                    },
                });
            }
            Operator::HereDocument => {
                let body = redirect.body.as_ref().and_then(|body| body.get());
                let value = body.map(|body| self.single(body, place)).unwrap_or_default();
                call.input = Some(Input { value });
            }
            operator => {
                if operator == Operator::Read {
                    let file = target.content.clone().or_else(|| self.files.get(&target.text).cloned());
                    if let Some(text) = file {
                        call.feed = Some(Rc::new(Feed {
                            text: Some(text),
                            span: target.span,
                            ..Feed::default()
                        }));
                    }
                }
                call.redirects.push(Redirected { operator, target });
            }
        }
    }

    fn assigned(&mut self, assignment: &Assignment, place: &Place<'_>) -> (Value, Content) {
        if let Some(index) = &assignment.index {
            self.single(index, place);
        }
        match &assignment.value {
            Assigned::One(word) => {
                let value = self.single(word, place);
                if let Some(secret) = value.secret {
                    self.tainted.insert(assignment.name.clone(), secret);
                }
                let content = value.known.then(|| vec![value.text.clone()]);
                (value, content)
            }
            Assigned::Array(words) => {
                let values = self.words(words, place);
                let known = values.iter().all(|value| value.known);
                let span = place.origin.place(assignment.span);
                let runs = values.iter().flat_map(|value| value.runs.iter().cloned()).collect();
                let joined = Value {
                    known,
                    span,
                    runs,
                    ..Value::default()
                };
                (
                    joined,
                    known.then(|| values.into_iter().map(|value| value.text).collect()),
                )
            }
        }
    }

    fn assign(&mut self, assignment: &Assignment, content: Content, place: &Place<'_>) {
        for text in content.iter().flatten() {
            self.index_in(text, place.origin.place(assignment.span), place);
        }
        let content = content.filter(|_| assignment.index.is_none());
        self.remember(&assignment.name, content, assignment.append, place);
    }

    pub(super) fn remember(&mut self, name: &str, content: Content, append: bool, place: &Place<'_>) {
        let size: usize = content.iter().flatten().map(String::len).sum();
        // Doubling a value over and over would fill the memory.
        let content = if size > 4 * 1024 { None } else { content };
        let certain = !place.conditional && self.choice == 0;
        if append {
            self.variables.append(name, &content, certain);
        } else {
            self.variables.set(name, content, certain);
        }
    }

    /// Redirects of a compound command: judged on their own, and its input
    /// becomes what the commands inside read.
    pub(super) fn compound_redirects(&mut self, command: &Command, inner: &mut Place<'_>) {
        if command.redirects.is_empty() {
            return;
        }
        let span = inner.origin.place(command.span);
        let mut call = Call {
            span,
            contained: inner.contained,
            guessed: inner.guessed,
            feed: inner.feed.clone(),
            ..Call::default()
        };
        for redirect in &command.redirects {
            self.redirect(redirect, &mut call, inner);
        }
        if let Some(input) = &call.input {
            let text = input.value.known.then(|| input.value.text.clone());
            inner.feed = Some(Rc::new(Feed {
                text,
                span: input.value.span,
                ..Feed::default()
            }));
        } else if let Some(read) = call
            .redirects
            .iter()
            .find(|redirect| redirect.operator == Operator::Read)
        {
            let fetched = read.target.ran(crate::guard::rules::FETCHERS);
            let text = call.feed.as_ref().and_then(|feed| feed.text.clone());
            let secret = self.secret_in(&read.target);
            inner.feed = Some(Rc::new(Feed {
                text,
                fetched,
                secret,
                span: read.target.span,
                ..Feed::default()
            }));
        }
        call.input = None;
        self.invoke(call, inner, 0);
    }
}

/// A name that the shell looks up among the files: `r?`, `r[m]`, not `[`.
pub(super) fn is_pattern(base: &str) -> bool {
    base.len() > 1 && (base.contains(['*', '?']) || (base.contains('[') && base.contains(']') && base != "[]"))
}

/// Lower-case base name without `.exe`; empty when decided at run time.
pub(super) fn program_name(program: &Value) -> String {
    let Some(base) = program.base_name() else {
        return String::new();
    };
    if is_pattern(base) {
        return String::new();
    }
    let name = base.to_lowercase();
    name.strip_suffix(".exe").map(str::to_owned).unwrap_or(name)
}

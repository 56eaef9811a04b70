//! What a person sees of a turn. Text is written as it comes; what is stored in
//! the end decides, so after a break only what is missing is added.

use std::borrow::Cow;
use std::io::IsTerminal;

use crate::base::text::first_chars;
use crate::cli::print::{self, harmless};
use crate::model::call::{CallStatus, ToolCall};
use crate::model::event::{Event, EventBody};
use crate::model::id::MessageId;
use crate::model::message::{Message, Role, text_of};

use super::client::ChatError;

/// So much of a call's arguments stands in its line.
const LINE_CHARS: usize = 200;

pub(super) struct Screen {
    /// Only the last answer counts, and it is written at the end.
    quiet: bool,
    terminal: bool,
    answer: String,
    /// The message that is being written, and the text of it that stands here.
    open: Option<(MessageId, String)>,
}

impl Screen {
    pub(super) fn talkative() -> Self {
        Self {
            quiet: false,
            terminal: std::io::stdout().is_terminal(),
            answer: String::new(),
            open: None,
        }
    }

    pub(super) fn quiet() -> Self {
        Self {
            quiet: true,
            ..Self::talkative()
        }
    }

    pub(super) fn show(&mut self, event: &Event) -> Result<(), ChatError> {
        match &event.body {
            EventBody::MessageDelta(delta) if !self.quiet => self.write(delta.message_id, &delta.text)?,
            EventBody::MessageCompleted(data) if data.message.role == Role::Assistant => self.finish(&data.message)?,
            EventBody::ToolCallStarted(data) => self.beside(&started(&data.tool_call)),
            EventBody::ToolCallCompleted(data)
            | EventBody::ToolCallDenied(data)
            | EventBody::ToolCallCancelled(data)
            | EventBody::ToolCallUnknown(data) => self.beside(&finished(&data.tool_call)),
            EventBody::TurnQueued(_) => print::aside("another turn runs; this one waits for it"),
            EventBody::ModelRetrying(data) => {
                self.broken()?;
                print::aside(&format!("the model is asked again: {}", data.error.detail));
            }
            EventBody::TurnResumed(_) => self.broken()?,
            _ => {}
        }
        Ok(())
    }

    /// Writes the last answer, alone.
    pub(super) fn answer(&self) -> Result<(), ChatError> {
        match self.answer.is_empty() {
            true => Ok(()),
            false => print::out(&format!("{}\n", self.fit(&self.answer))).map_err(ChatError::Output),
        }
    }

    fn write(&mut self, id: MessageId, text: &str) -> Result<(), ChatError> {
        match &mut self.open {
            Some((open, written)) if *open == id => written.push_str(text),
            _ => self.open = Some((id, text.to_owned())),
        }
        print::out(&self.fit(text)).map_err(ChatError::Output)
    }

    /// The text is final: what is missing of it is added.
    fn finish(&mut self, message: &Message) -> Result<(), ChatError> {
        let text = text_of(&message.content);
        if !text.is_empty() {
            self.answer.clone_from(&text);
        }
        let written = self
            .open
            .take()
            .filter(|(id, _)| *id == message.id)
            .map(|(_, text)| text);
        if self.quiet || text.is_empty() {
            return Ok(());
        }
        let rest = match written {
            Some(written) => text
                .strip_prefix(written.as_str())
                .map_or_else(|| format!("\n{text}"), str::to_owned),
            None => text,
        };
        print::out(&format!("{}\n", self.fit(&rest))).map_err(ChatError::Output)
    }

    /// What was being written is void; it comes anew.
    fn broken(&mut self) -> Result<(), ChatError> {
        match self.open.take() {
            Some(_) if !self.quiet => print::out("\n").map_err(ChatError::Output),
            _ => Ok(()),
        }
    }

    /// A file gets the text as it is; a terminal must not be steered by it.
    fn fit<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.terminal {
            true => Cow::Owned(harmless(text)),
            false => Cow::Borrowed(text),
        }
    }

    fn beside(&self, line: &str) {
        if !self.quiet {
            print::aside(line);
        }
    }
}

fn started(call: &ToolCall) -> String {
    let arguments = call.arguments.to_string();
    let cut = first_chars(&arguments, LINE_CHARS);
    let more = if cut.len() < arguments.len() { " …" } else { "" };
    format!("  {} {}{more}", call.name, harmless(cut))
}

fn finished(call: &ToolCall) -> String {
    let how = match (call.status, call.exit_code) {
        (CallStatus::Succeeded, None | Some(0)) => "done".to_owned(),
        (CallStatus::Succeeded | CallStatus::Failed, Some(code)) => format!("ended with status {code}"),
        (CallStatus::Denied, _) => "denied".to_owned(),
        (CallStatus::Cancelled, _) => "not run".to_owned(),
        (CallStatus::Unknown, _) => "its effect is unknown".to_owned(),
        _ => "failed".to_owned(),
    };
    format!("  {}: {how}", call.name)
}

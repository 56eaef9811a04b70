//! What a model says, on its way to viewers and to the record: the server's own
//! secrets are masked in one place before both, so that the pieces joined are the
//! text that is stored.

use crate::guard::redact::{Known, KnownStream};
use crate::live::drafts::Item;
use crate::live::hub::Pen;
use crate::model::id::MessageId;
use crate::provider::{Answer, Delta};

/// One answer while it comes.
pub(super) struct Said<'p> {
    pen: &'p Pen,
    message: MessageId,
    text: KnownStream,
    reasoning: KnownStream,
}

impl<'p> Said<'p> {
    pub(super) fn new(pen: &'p Pen, message: MessageId, known: &Known) -> Self {
        Self {
            pen,
            message,
            text: known.stream(),
            reasoning: known.stream(),
        }
    }

    pub(super) fn take(&mut self, delta: Delta) {
        match delta {
            Delta::Text(text) => {
                // What was thought before an answer is not shown behind its beginning.
                let thought = self.reasoning.finish();
                self.show(Item::Reasoning(self.message), &thought);
                let shown = self.text.push(&text);
                self.show(Item::Message(self.message), &shown);
            }
            Delta::Reasoning(text) => {
                let shown = self.reasoning.push(&text);
                self.show(Item::Reasoning(self.message), &shown);
            }
        }
    }

    /// Nothing more comes: what was held back goes on.
    pub(super) fn finish(&mut self) {
        let (text, reasoning) = (self.text.finish(), self.reasoning.finish());
        self.show(Item::Reasoning(self.message), &reasoning);
        self.show(Item::Message(self.message), &text);
    }

    fn show(&self, item: Item, text: &str) {
        if !text.is_empty() {
            self.pen.push(item, text);
        }
    }
}

/// The answer as it is stored, and as its calls are carried out.
pub(super) fn masked(answer: Answer, known: &Known) -> Answer {
    let mut calls = answer.calls;
    for call in &mut calls {
        call.arguments = known.mask(&call.arguments);
    }
    Answer {
        text: known.mask(&answer.text),
        reasoning: known.mask(&answer.reasoning),
        calls,
        ..answer
    }
}

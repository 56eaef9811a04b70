//! The events of a response with their growing numbers. Who comes back behind a
//! number is sent what has a larger one.

use std::fmt::Write;

use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use serde_json::Value;

use super::fold::{Fold, Told};
use super::numbers::{Number, STORED, TEXT};
use crate::api::compat::stream::Encode;
use crate::live::cursor::Cursor;
use crate::live::follow::Frame;
use crate::model::event::{Event, EventBody};

pub(super) struct ResponseStream {
    fold: Fold,
    /// Nothing up to this number is sent.
    after: i64,
    /// Where the response begins.
    beginning: Cursor,
    /// What is there already when the stream opens.
    past: Vec<Event>,
    cursor: Cursor,
}

impl ResponseStream {
    /// From the beginning.
    pub(super) fn new(fold: Fold, beginning: Cursor) -> Self {
        Self {
            fold,
            after: -1,
            beginning,
            past: Vec::new(),
            cursor: beginning,
        }
    }

    /// Behind a number; `past` is the log from the beginning to there.
    pub(super) fn behind(fold: Fold, beginning: Cursor, after: i64, past: Vec<Event>) -> Self {
        Self {
            after,
            past,
            ..Self::new(fold, beginning)
        }
    }

    /// What is left to say of a response that is over, where the reader has it all
    /// or nearly.
    pub(super) fn at_end(mut self) -> Response {
        let mut text = String::new();
        self.begin(&mut text);
        ([(CONTENT_TYPE, "text/event-stream")], text).into_response()
    }

    fn write(&self, told: Vec<Told>, cursor: Cursor, is_delta: bool, out: &mut String) {
        // A delta stands in the same place whether it opens its message or not.
        let first = match (is_delta, told.len()) {
            (false, _) => STORED,
            (true, count) => TEXT + 1 - i64::try_from(count).unwrap_or(1).min(TEXT + 1),
        };
        for (sub, (name, mut fields)) in (first..).zip(told) {
            let number = Number {
                cursor,
                open: self.fold.is_open(),
                sub,
            };
            let number = number.encode();
            if number <= self.after {
                continue;
            }
            let mut event = serde_json::Map::new();
            event.insert("type".to_owned(), Value::from(name));
            event.insert("sequence_number".to_owned(), Value::from(number));
            if let Some(fields) = fields.as_object_mut() {
                event.extend(std::mem::take(fields));
            }
            // Writing to a String cannot fail.
            let _written = write!(out, "event: {name}\ndata: {}\n\n", Value::Object(event));
        }
    }

    fn event(&mut self, body: &EventBody, cursor: Cursor, out: &mut String) -> bool {
        let mut told = Vec::new();
        let over = self.fold.take(body, &mut told);
        self.write(told, cursor, matches!(body, EventBody::MessageDelta(_)), out);
        over
    }
}

impl Encode for ResponseStream {
    fn begin(&mut self, out: &mut String) {
        let begun = self.fold.begun().into();
        self.write(begun, self.beginning, false, out);
        for event in std::mem::take(&mut self.past) {
            let cursor = Cursor { seq: event.seq, d: 0 };
            self.event(&event.body, cursor, out);
        }
        let from = Number::decode(self.after);
        if 0 < self.after && from.open {
            self.fold.reopen();
        }
    }

    fn frame(&mut self, frame: &Frame, out: &mut String) -> bool {
        self.cursor = frame.cursor.unwrap_or(self.cursor);
        self.event(&frame.event.body, self.cursor, out)
    }

    fn broken_off(&mut self, out: &mut String) {
        out.push_str(": the server ends this stream; come back behind the last number\n\n");
    }
}

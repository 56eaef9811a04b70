//! The tool calls of one answer, put together from fragments. Servers differ in
//! what a fragment carries, so each is placed by what it has: index, id, name, or
//! only its order. Ids leave here present and unique within the answer.

use std::collections::HashSet;

use serde::de::IgnoredAny;
use serde_json::Value;

use super::chunk::{CallPiece, Function};
use crate::base::text::without_nul;
use crate::provider::Call;

#[derive(Default)]
pub(super) struct Calls {
    slots: Vec<Slot>,
}

#[derive(Default)]
struct Slot {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

/// What a fragment says about which call it belongs to.
struct Mark<'a> {
    /// The fragment's place in its chunk.
    place: usize,
    index: Option<u64>,
    id: &'a str,
    name: &'a str,
}

impl Calls {
    /// Takes the fragments of one chunk; returns how many bytes they brought.
    pub(super) fn add(&mut self, pieces: Vec<CallPiece>) -> usize {
        let mut bytes = 0;
        for (place, piece) in pieces.into_iter().enumerate() {
            let (id, name) = (string(piece.id), string(piece.function.name));
            let mark = Mark {
                place,
                index: number(&piece.index),
                id: &id,
                name: &name,
            };
            let index = mark.index;
            let slot = self.slot(&mark);
            slot.index = slot.index.or(index);
            if slot.id.is_empty() {
                slot.id.push_str(&id);
            }
            bytes += id.len() + name.len() + slot.add_arguments(piece.function.arguments);
            slot.add_name(&name);
        }
        bytes
    }

    /// Takes a fragment of the older form, which knows a single call.
    pub(super) fn add_only(&mut self, function: Function) -> usize {
        self.add(vec![CallPiece {
            index: Value::from(0),
            id: Value::Null,
            function,
        }])
    }

    /// The call that a fragment continues, or a new one.
    fn slot(&mut self, mark: &Mark<'_>) -> &mut Slot {
        let found = match mark.index {
            // The newest call of that index: some servers number all calls 0.
            Some(_) => self.slots.iter().rposition(|slot| slot.index == mark.index),
            None => None,
        };
        let found = found
            .or_else(|| self.place_without_index(mark))
            .filter(|at| self.slots.get(*at).is_some_and(|slot| !slot.is_another(mark)));
        let at = found.unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() - 1
        });
        #[allow(clippy::indexing_slicing, reason = "`at` was found in, or just pushed to, `slots`")]
        &mut self.slots[at]
    }

    fn place_without_index(&self, mark: &Mark<'_>) -> Option<usize> {
        // Two different indexes are two calls, whatever else agrees.
        let may_be = |slot: &Slot| mark.index.is_none() || slot.index.is_none();
        let known = self
            .slots
            .iter()
            .rposition(|slot| !mark.id.is_empty() && slot.id == mark.id && may_be(slot));
        known.or_else(|| {
            let slot = self.slots.last().filter(|slot| may_be(slot))?;
            // Neighbours in one chunk are different calls; so is a named
            // fragment after a call that is whole.
            let begins = !mark.name.is_empty() && (mark.place != 0 || is_json(&slot.arguments));
            if begins { None } else { self.slots.len().checked_sub(1) }
        })
    }

    /// The finished calls, in the order in which they began.
    pub(super) fn finish(self) -> Vec<Call> {
        let given: HashSet<String> = self.slots.iter().map(|slot| slot.id.clone()).collect();
        let mut used = HashSet::new();
        let mut fresh = (1..)
            .map(|number: u32| format!("call_{number}"))
            .filter(|id| !given.contains(id));
        self.slots
            .into_iter()
            .filter(|slot| !slot.name.is_empty() || !slot.arguments.is_empty())
            .map(|slot| {
                let is_fine = !slot.id.is_empty() && used.insert(slot.id.clone());
                let id = if is_fine {
                    slot.id
                } else {
                    fresh.next().unwrap_or_default()
                };
                let (name, arguments) = undouble(slot.name, slot.arguments);
                Call {
                    id: without_nul(id),
                    name: without_nul(name),
                    arguments: without_nul(arguments),
                }
            })
            .collect()
    }
}

impl Slot {
    /// A fragment with this call's index that nevertheless begins another call.
    fn is_another(&self, mark: &Mark<'_>) -> bool {
        let other_id = !mark.id.is_empty() && !self.id.is_empty() && mark.id != self.id;
        other_id && !mark.name.is_empty() && !self.name.is_empty()
    }

    /// A name comes once, in parts, or whole with every fragment.
    fn add_name(&mut self, piece: &str) {
        if piece != self.name {
            self.name.push_str(piece);
        }
    }

    /// Arguments come as text in parts, or whole as text or as an object.
    fn add_arguments(&mut self, piece: Value) -> usize {
        match piece {
            Value::Null => 0,
            Value::String(text) => {
                // Some servers close with the whole arguments once more.
                let is_repeated = text == self.arguments && is_json(&text);
                if !is_repeated {
                    self.arguments.push_str(&text);
                }
                text.len()
            }
            whole => {
                self.arguments = whole.to_string();
                self.arguments.len()
            }
        }
    }
}

/// A server that repeats a whole call inside itself (`todotodo` with `{}{}`)
/// means it once.
fn undouble(name: String, arguments: String) -> (String, String) {
    let half = |text: &str| {
        let (first, second) = text.split_at_checked(text.len() / 2)?;
        (first == second && !first.is_empty()).then(|| first.to_owned())
    };
    match half(&arguments).filter(|half| is_json(half)) {
        Some(arguments) => (half(&name).unwrap_or(name), arguments),
        None => (name, arguments),
    }
}

/// Whether the text is one whole JSON object or array.
fn is_json(text: &str) -> bool {
    let text = text.trim();
    (text.ends_with('}') || text.ends_with(']')) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn string(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// One string of JSON a chunk; the calls as `id name arguments`.
    fn calls(chunks: &[&str]) -> Vec<String> {
        let mut calls = Calls::default();
        for chunk in chunks {
            calls.add(serde_json::from_str(chunk).unwrap());
        }
        calls
            .finish()
            .into_iter()
            .map(|call| format!("{} {} {}", call.id, call.name, call.arguments))
            .collect()
    }

    #[test]
    fn fragments_of_two_calls_come_together_by_index() {
        assert_eq!(
            calls(&[
                r#"[{"index": 0, "id": "a", "type": "function", "function": {"name": "one", "arguments": ""}}]"#,
                r#"[{"index": 0, "function": {"arguments": "{\"x\":"}}, {"index": 1, "id": "b", "function": {"name": "two"}}]"#,
                r#"[{"index": 1, "function": {"arguments": "{}"}}]"#,
                r#"[{"index": 0, "id": "", "function": {"name": "", "arguments": "1}"}}]"#,
            ]),
            [r#"a one {"x":1}"#, "b two {}"]
        );
    }

    #[test]
    fn a_fragment_without_index_belongs_to_its_id_or_to_the_newest_call() {
        assert_eq!(
            calls(&[
                r#"[{"id": "a", "function": {"name": "one", "arguments": "{"}}]"#,
                r#"[{"id": "b", "function": {"name": "two", "arguments": "{"}}]"#,
                r#"[{"function": {"arguments": "}"}}]"#,
                r#"[{"id": "a", "function": {"arguments": "}"}}]"#,
            ]),
            ["a one {}", "b two {}"]
        );
    }

    #[test]
    fn calls_without_index_and_id_are_told_apart_and_named() {
        let whole = r#"{"function": {"name": "one", "arguments": {"x": 1}}}"#;
        assert_eq!(
            calls(&[&format!("[{whole}, {whole}]")]),
            [r#"call_1 one {"x":1}"#, r#"call_2 one {"x":1}"#]
        );
        assert_eq!(calls(&[&format!("[{whole}]"), &format!("[{whole}]")]).len(), 2);
        assert_eq!(
            calls(&[
                r#"[{"function": {"name": "one", "arguments": "{\"x\""}}]"#,
                r#"[{"function": {"name": "one", "arguments": ":1}"}}]"#
            ]),
            [r#"call_1 one {"x":1}"#]
        );
    }

    #[test]
    fn calls_that_share_index_zero_are_told_apart_by_id() {
        assert_eq!(
            calls(&[
                r#"[{"index": 0, "id": "a", "function": {"name": "one", "arguments": "{}"}}]"#,
                r#"[{"index": 0, "id": "b", "function": {"name": "one", "arguments": "{"}}]"#,
                r#"[{"index": 0, "function": {"arguments": "}"}}]"#,
                r#"[{"index": 0, "id": "changes", "function": {"arguments": " "}}]"#,
            ]),
            ["a one {}", "b one {} "]
        );
    }

    #[test]
    fn names_may_be_split_or_repeated() {
        let named = |parts: &[&str]| {
            let chunks: Vec<String> = parts
                .iter()
                .map(|part| format!(r#"[{{"index": 0, "id": "a", "function": {{"name": "{part}"}}}}]"#))
                .collect();
            calls(&chunks.iter().map(String::as_str).collect::<Vec<_>>())
        };
        for parts in [&["read_", "file"][..], &["read_file", "read_file"], &["read_file", ""]] {
            assert_eq!(named(parts), ["a read_file "], "{parts:?}");
        }
    }

    #[test]
    fn a_call_may_be_cut_anywhere() {
        let arguments = r#"{"path": "한 \\"a\\"", "lines": [1, 22]}"#;
        let piece =
            |name: &str, arguments: &str| json!([{"index": 0, "function": {"name": name, "arguments": arguments}}]);
        for (at, _) in arguments.char_indices() {
            let (first, second) = arguments.split_at(at);
            let chunks = [piece("read_file", first).to_string(), piece("", second).to_string()];
            assert_eq!(
                calls(&[&chunks[0], &chunks[1]]),
                [format!("call_1 read_file {arguments}")],
                "cut at {at}"
            );
            let bare = [
                piece("read_file", first).to_string(),
                json!([{"function": {"arguments": second}}]).to_string(),
            ];
            assert_eq!(
                calls(&[&bare[0], &bare[1]]),
                [format!("call_1 read_file {arguments}")],
                "cut at {at}"
            );
        }
        for at in 0..9 {
            let (first, second) = "read_file".split_at(at);
            let chunks = [piece(first, "").to_string(), piece(second, arguments).to_string()];
            assert_eq!(
                calls(&[&chunks[0], &chunks[1]]),
                [format!("call_1 read_file {arguments}")],
                "cut at {at}"
            );
        }
    }

    #[test]
    fn arguments_sent_again_whole_count_once() {
        let again = r#"[{"index": 0, "id": "a", "function": {"name": "one", "arguments": "{\"x\":1}"}}]"#;
        assert_eq!(calls(&[again, again]), [r#"a one {"x":1}"#]);
        let parts = r#"[{"index": 0, "function": {"name": "f", "arguments": "1"}}]"#;
        assert_eq!(calls(&[parts, parts]), ["call_1 f 11"], "digits are no whole arguments");
    }

    #[test]
    fn duplicate_and_missing_ids_are_replaced() {
        assert_eq!(
            calls(&[
                r#"[{"index": 0, "id": "call_1", "function": {"name": "f"}}, {"index": 1, "function": {"name": "g"}}]"#,
                r#"[{"index": 2, "id": "call_1", "function": {"name": "h"}}, {"index": "3", "id": 7, "function": {"name": "i"}}]"#,
                r#"[{"index": 4, "id": "x", "function": null}]"#,
            ]),
            ["call_1 f ", "call_2 g ", "call_3 h ", "7 i "]
        );
    }

    /// FC-019.
    #[test]
    fn a_call_doubled_within_itself_is_one_call() {
        let doubled = r#"[{"id": "c1", "function": {"name": "read_fileread_file", "arguments": "{\"path\":\"a.txt\"}{\"path\":\"a.txt\"}"}}]"#;
        assert_eq!(calls(&[doubled]), [r#"c1 read_file {"path":"a.txt"}"#]);
    }
}

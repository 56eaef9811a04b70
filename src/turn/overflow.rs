//! Results that are too long beside each other. Each fits alone; together they
//! would fill the model's window, so it is shown the beginning of the longest.
//! The record keeps them whole: this is about what is sent only, and comes out
//! the same every time it is asked.

use std::collections::HashMap;
use std::path::Path;

use crate::model::id::{CallId, MessageId};
use crate::model::message::{Role, text_of};
use crate::model::record::{CallRecord, MessageRecord};
use crate::tool::budget::{self, Budget, Length, STORED_TAG};

/// What is shown in the place of results, by call.
pub(super) type Shortened = HashMap<CallId, String>;

/// The results that each batch of calls has too much of; `directory` is where
/// they are stored whole.
pub(super) fn shortened(
    messages: &[MessageRecord],
    calls: &[CallRecord],
    budget: &Budget,
    directory: &Path,
) -> Shortened {
    let batch_of: HashMap<CallId, MessageId> = calls.iter().map(|call| (call.call_id, call.message_id)).collect();
    let mut batches: Vec<(MessageId, Vec<(CallId, String)>)> = Vec::new();
    for message in messages.iter().filter(|message| message.role == Role::Tool) {
        let Some(call) = message.call_id else { continue };
        let Some(batch) = batch_of.get(&call) else { continue };
        let result = (call, text_of(&message.content));
        match batches.last_mut().filter(|(last, _)| last == batch) {
            Some((_, results)) => results.push(result),
            None => batches.push((*batch, vec![result])),
        }
    }
    batches
        .into_iter()
        .flat_map(|(_, results)| of_batch(results, budget, directory))
        .collect()
}

fn of_batch(results: Vec<(CallId, String)>, budget: &Budget, directory: &Path) -> Vec<(CallId, String)> {
    // Bytes are never fewer than characters: most batches need no counting.
    if results.iter().map(|(_, text)| text.len()).sum::<usize>() <= budget.per_turn {
        return Vec::new();
    }
    let lengths: Vec<Length> = results
        .iter()
        .map(|(_, text)| Length {
            length: text.chars().count(),
            is_stored: text.contains(STORED_TAG),
        })
        .collect();
    let chosen = budget.to_store(&lengths);
    let results = results.into_iter().zip(chosen).filter(|(_, chosen)| *chosen);
    results
        .map(|((call, text), _)| {
            let path = directory.join(budget::file_name(&call.to_string()));
            (call, budget::stored_text(&text, &path.to_string_lossy()))
        })
        .collect()
}

/// The whole texts of those that belong to the newest answer: they are stored
/// now, the others were before.
pub(super) fn fresh(messages: &[MessageRecord], shortened: &Shortened) -> Vec<(CallId, String)> {
    let newest = messages
        .iter()
        .rev()
        .take_while(|message| message.role != Role::Assistant);
    let results = newest.filter_map(|message| Some((message.call_id?, message)));
    let results = results.filter(|(call, _)| shortened.contains_key(call));
    results
        .map(|(call, message)| (call, text_of(&message.content)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Id, Timestamp};
    use crate::model::call::{CallStatus, Effect, Execution};
    use crate::model::message::Part;

    fn call(number: u128, batch: u128) -> CallRecord {
        CallRecord {
            call_id: Id::from_bits(number),
            turn_id: Id::from_bits(1),
            message_id: Id::from_bits(batch),
            batch_index: 0,
            position: 0,
            name: "look".to_owned(),
            provider_id: String::new(),
            arguments_raw: "{}".to_owned(),
            arguments: serde_json::json!({}),
            edited: None,
            effect: Effect::Read,
            execution: Execution::Server,
            segment: 0,
            parallel: true,
            status: CallStatus::Succeeded,
            exit_code: None,
            created_at: Timestamp(0),
            started_at: None,
            finished_at: None,
            nested: None,
        }
    }

    fn message(role: Role, call: Option<u128>, text: &str) -> MessageRecord {
        MessageRecord {
            position: 0,
            message_id: Id::from_bits(9),
            turn_id: Id::from_bits(1),
            role,
            content: vec![Part::text(text.to_owned())],
            reasoning: None,
            finish_reason: None,
            call_id: call.map(Id::from_bits),
            steered: false,
            external_id: None,
            created_at: Timestamp(0),
        }
    }

    #[test]
    fn of_each_batch_the_longest_results_are_shortened_until_the_rest_fits() {
        let budget = Budget {
            per_result: 8_000,
            per_turn: 16_000,
        };
        let text = |chars: usize| "x".repeat(chars);
        let messages = [
            message(Role::Assistant, None, ""),
            message(Role::Tool, Some(1), &text(7_900)),
            message(Role::Tool, Some(2), &text(7_000)),
            message(Role::Assistant, None, ""),
            message(Role::Tool, Some(3), &text(7_000)),
            message(Role::Tool, Some(4), &text(7_900)),
            message(Role::Tool, Some(5), &text(3_000)),
        ];
        let calls = [call(1, 10), call(2, 10), call(3, 11), call(4, 11), call(5, 11)];
        let shortened = shortened(&messages, &calls, &budget, Path::new("/tmp/results"));
        assert_eq!(shortened.keys().collect::<Vec<_>>(), [&Id::from_bits(4)]);
        let shown = shortened.values().next().unwrap();
        assert!(
            shown.starts_with(STORED_TAG) && shown.contains("/tmp/results/call_"),
            "{shown}"
        );
        let fresh = fresh(&messages, &shortened);
        assert_eq!(fresh, [(Id::from_bits(4), text(7_900))]);
        // Behind a later answer they are stored already.
        let later: Vec<_> = messages
            .iter()
            .cloned()
            .chain([message(Role::Assistant, None, "so")])
            .collect();
        assert!(super::fresh(&later, &shortened).is_empty());
    }
}

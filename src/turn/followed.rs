//! Whether a call is known to be followed by another of its tool, for which
//! something can be made ready while it runs. A guess for the sake of time: whatever
//! comes next is judged and started as if nobody had guessed.

use crate::model::call::CallStatus;
use crate::model::record::CallRecord;

/// Whether the next call of the answer is one of this tool and still to come.
pub(super) fn is_followed(calls: &[CallRecord], call: &CallRecord) -> bool {
    let mut siblings = calls
        .iter()
        .filter(|other| other.message_id == call.message_id && other.nested.is_none());
    let next = siblings.find(|other| other.batch_index == call.batch_index + 1);
    next.is_some_and(|next| next.name == call.name && next.status == CallStatus::Proposed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Id, Timestamp};
    use crate::model::call::{Effect, Execution};
    use crate::model::record::Nested;

    fn call(number: u32, message: u128) -> CallRecord {
        CallRecord {
            call_id: Id::from_bits(number.into()),
            turn_id: Id::from_bits(1),
            message_id: Id::from_bits(message),
            batch_index: number,
            position: i64::from(number),
            name: "terminal".to_owned(),
            provider_id: String::new(),
            arguments_raw: "{}".to_owned(),
            arguments: serde_json::json!({}),
            edited: None,
            effect: Effect::Write,
            execution: Execution::Server,
            segment: 0,
            parallel: false,
            status: CallStatus::Proposed,
            exit_code: None,
            created_at: Timestamp(0),
            started_at: None,
            finished_at: None,
            nested: None,
        }
    }

    #[test]
    fn a_call_is_followed_by_one_of_its_tool_that_comes_next_and_has_to_ask_nobody() {
        let holds = |next: CallRecord| is_followed(&[next, call(3, 7)], &call(3, 7));
        assert!(holds(call(4, 7)));
        assert!(!holds(call(2, 7)), "it was before");
        assert!(!holds(call(5, 7)), "another comes between");
        assert!(!holds(call(4, 8)), "of another answer");
        let (name, nested) = ("read_file".to_owned(), None);
        assert!(!holds(CallRecord { name, ..call(4, 7) }));
        for status in [CallStatus::Waiting, CallStatus::Running, CallStatus::Denied] {
            assert!(!holds(CallRecord { status, ..call(4, 7) }), "{status:?}");
        }
        let parent = Id::from_bits(3);
        let within = CallRecord {
            nested: Some(Nested { parent, result: nested }),
            ..call(4, 7)
        };
        assert!(!holds(within), "of a program of its own");
    }
}

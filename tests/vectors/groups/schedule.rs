//! `schedule`: what the text of a job's schedule means.

use hermes_server::base::Timestamp;
use hermes_server::model::schedule::{self, Schedule};
use serde_json::{Value, json};

use crate::case::{Case, Relation};

const HOUR_MS: i64 = 3_600_000;
/// Two instants before every date of the cases.
const NOW: Timestamp = Timestamp(1_750_000_000_000);
const LATER: Timestamp = Timestamp(NOW.0 + HOUR_MS);

pub fn judge(case: &Case) -> Result<(), String> {
    let stricter = |_: &Value, got: &Value| match got["error"] == true {
        true => Relation::Stricter,
        false => Relation::Looser,
    };
    case.check_by(read(case.text("schedule")), stricter)
}

fn read(text: &str) -> Value {
    match (schedule::parse(text, "UTC", NOW), schedule::parse(text, "UTC", LATER)) {
        (Ok(Schedule::Interval { minutes }), _) => json!({"kind": "interval", "minutes": minutes}),
        (Ok(Schedule::Cron { expr, .. }), _) => json!({"kind": "cron", "expr": expr}),
        // What is counted from now on moves with it.
        (Ok(Schedule::Once { at }), Ok(Schedule::Once { at: later })) if at != later => {
            json!({"kind": "once", "absolute": false, "in_minutes": (at.0 - NOW.0) / 60_000})
        }
        (Ok(Schedule::Once { .. }), _) => json!({"kind": "once", "absolute": true}),
        (Err(_), _) => json!({"error": true}),
    }
}

//! `tool_loop_guardrails`: when a turn that goes round in circles is told so,
//! and when it is stopped.

use super::section::Section;
use crate::model::guardrail::{Limits, Thresholds};

pub(super) fn read(section: &mut Section<'_>) -> Limits {
    let default = Limits::default();
    Limits {
        warns: section.flag("warnings_enabled", default.warns),
        stops: section.flag("hard_stop_enabled", default.stops),
        warn_after: section.section("warn_after", |section| thresholds(section, default.warn_after)),
        stop_after: section.section("hard_stop_after", |section| thresholds(section, default.stop_after)),
    }
}

fn thresholds(section: &mut Section<'_>, default: Thresholds) -> Thresholds {
    Thresholds {
        exact_failure: section.number("exact_failure", default.exact_failure, 1..=1_000),
        same_tool_failure: section.number("same_tool_failure", default.same_tool_failure, 1..=1_000),
        idempotent_no_progress: section.number("idempotent_no_progress", default.idempotent_no_progress, 1..=1_000),
    }
}

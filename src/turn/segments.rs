//! Which calls of one model answer may run side by side.
//!
//! A pure plan over what each call declared to touch. Segments run one after
//! another; within a parallel one no call writes what another reads or writes.

use std::path::Path;

use crate::model::call::Footprint;

/// Where a call stands in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Counts from 0.
    pub segment: u32,
    /// Whether the calls of the segment run together or in their order.
    pub parallel: bool,
}

/// Plans the calls of one answer; the slots are in the order of the calls.
pub fn plan(calls: &[Footprint]) -> Vec<Slot> {
    let mut slots = Vec::with_capacity(calls.len());
    let mut segment = 0;
    let mut was_parallel = None;
    for group in groups(calls) {
        let parallel = 1 < group;
        // Sequential neighbours are one segment.
        if was_parallel.is_some_and(|was| was || parallel) {
            segment += 1;
        }
        was_parallel = Some(parallel);
        slots.extend(std::iter::repeat_n(Slot { segment, parallel }, group));
    }
    slots
}

/// Sizes of the longest runs of calls that do not disturb each other.
fn groups(calls: &[Footprint]) -> Vec<usize> {
    let mut groups = Vec::new();
    let mut run: &[Footprint] = &[];
    for (place, call) in calls.iter().enumerate() {
        let from = place - run.len();
        if run.iter().any(|earlier| disturbs(earlier, call)) {
            groups.push(run.len());
            run = calls.get(place..=place).unwrap_or_default();
        } else {
            run = calls.get(from..=place).unwrap_or_default();
        }
    }
    if !run.is_empty() {
        groups.push(run.len());
    }
    groups
}

/// Whether the order of two calls matters.
pub fn disturbs(a: &Footprint, b: &Footprint) -> bool {
    use Footprint::{Alone, Parallel, Reads, Writes};
    match (a, b) {
        (Alone, _) | (_, Alone) => true,
        (Parallel, _) | (_, Parallel) | (Reads(_), Reads(_)) => false,
        (Reads(a) | Writes(a), Reads(b) | Writes(b)) => a.iter().any(|a| b.iter().any(|b| overlap(a, b))),
    }
}

/// Equal, or one lies inside the other.
fn overlap(a: &Path, b: &Path) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_count_up_and_a_lone_call_is_sequential() {
        let reads = |path: &str| Footprint::Reads(vec![path.into()]);
        let writes = |path: &str| Footprint::Writes(vec![path.into()]);
        let slots = plan(&[
            reads("/a"),
            reads("/b"),
            writes("/a/x"),
            Footprint::Alone,
            reads("/a"),
            reads("/a"),
        ]);
        let got: Vec<(u32, bool)> = slots.iter().map(|slot| (slot.segment, slot.parallel)).collect();
        assert_eq!(
            got,
            [(0, true), (0, true), (1, false), (1, false), (2, true), (2, true)]
        );
        assert_eq!(plan(&[]), []);
    }

    #[test]
    fn no_parallel_segment_holds_calls_that_disturb_each_other() {
        let pool = [
            Footprint::Parallel,
            Footprint::Alone,
            Footprint::Reads(vec!["/w/a".into()]),
            Footprint::Writes(vec!["/w/a/b".into()]),
            Footprint::Writes(vec!["/w/ab".into(), "/x".into()]),
        ];
        // Every sequence of five calls out of the pool.
        for number in 0..pool.len().pow(5) {
            let calls: Vec<Footprint> = (0..5)
                .map(|at| pool[number / pool.len().pow(at) % pool.len()].clone())
                .collect();
            let slots = plan(&calls);
            for (i, a) in slots.iter().enumerate() {
                for (j, b) in slots.iter().enumerate().skip(i + 1) {
                    assert!(a.segment <= b.segment, "{calls:?}");
                    let together = a.segment == b.segment && a.parallel;
                    assert!(!(together && disturbs(&calls[i], &calls[j])), "{calls:?}: {i} and {j}");
                }
            }
        }
    }
}

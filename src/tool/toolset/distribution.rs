//! Toolsets drawn by chance, for runs of many sessions: each one of a
//! distribution by its own percentage. The same seed draws the same.

use serde::Serialize;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

/// Name, and the percentage of each toolset.
type Distribution = (&'static str, &'static [(&'static str, u8)]);

#[rustfmt::skip]
const ALL: &[Distribution] = &[
    ("default", &[("web", 100), ("vision", 100), ("image_gen", 100), ("terminal", 100), ("file", 100), ("browser", 100)]),
    ("image_gen", &[("image_gen", 90), ("vision", 90), ("web", 55), ("terminal", 45)]),
    ("research", &[("web", 90), ("browser", 70), ("vision", 50), ("terminal", 10)]),
    ("science", &[("web", 94), ("terminal", 94), ("file", 94), ("vision", 65), ("browser", 50), ("image_gen", 15)]),
    ("development", &[("terminal", 80), ("file", 80), ("web", 30), ("vision", 10)]),
    ("safe", &[("web", 80), ("browser", 70), ("vision", 60), ("image_gen", 60)]),
    ("balanced", &[("web", 50), ("vision", 50), ("image_gen", 50), ("terminal", 50), ("file", 50), ("browser", 50)]),
    ("minimal", &[("web", 100)]),
    ("terminal_only", &[("terminal", 100), ("file", 100)]),
    ("terminal_web", &[("terminal", 100), ("file", 100), ("web", 100)]),
    ("creative", &[("image_gen", 90), ("vision", 90), ("web", 30)]),
    ("reasoning", &[("web", 90), ("file", 60), ("terminal", 20)]),
    ("browser_use", &[("browser", 100), ("web", 80), ("vision", 70)]),
    ("browser_only", &[("browser", 100)]),
    ("browser_tasks", &[("browser", 97), ("vision", 12), ("terminal", 15)]),
    ("terminal_tasks", &[("terminal", 97), ("file", 97), ("web", 97), ("browser", 75), ("vision", 50), ("image_gen", 10)]),
    ("mixed_tasks", &[("browser", 92), ("terminal", 92), ("file", 92), ("web", 35), ("vision", 15), ("image_gen", 15)]),
];

/// One toolset of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Chance {
    pub toolset: &'static str,
    /// How often it is drawn, in percent.
    pub percent: u8,
}

/// The names of all distributions.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|(name, _)| *name).collect()
}

/// What a distribution holds; `None` if there is none of this name.
pub fn chances(name: &str) -> Option<Vec<Chance>> {
    let (_, toolsets) = ALL.iter().find(|(own, _)| *own == name)?;
    let toolsets = toolsets.iter();
    Some(
        toolsets
            .map(|&(toolset, percent)| Chance { toolset, percent })
            .collect(),
    )
}

/// One draw: the toolsets of a distribution that came up, or the likeliest one.
/// Draws of one seed are numbered.
pub fn draw(chances: &[Chance], seed: u64, number: u64) -> Vec<&'static str> {
    let drawn: Vec<&'static str> = chances
        .iter()
        .zip(0u64..)
        .filter(|(chance, place)| fraction(seed, number, *place) * 100.0 < f64::from(chance.percent))
        .map(|(chance, _)| chance.toolset)
        .collect();
    if !drawn.is_empty() {
        return drawn;
    }
    // The first of those that are equally likely.
    let likeliest = chances.iter().rev().max_by_key(|chance| chance.percent);
    likeliest.map(|chance| chance.toolset).into_iter().collect()
}

/// A number from 0 up to but not 1, evenly spread: the first 53 bits of a digest,
/// which are the same on every machine and in every version.
fn fraction(seed: u64, number: u64, place: u64) -> f64 {
    let mut digest = Sha256::new();
    for part in [seed, number, place] {
        digest.update(part.to_be_bytes());
    }
    let bits = digest
        .finalize()
        .iter()
        .take(8)
        .fold(0u64, |all, byte| all << 8 | u64::from(*byte));
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::toolset::Catalog;

    #[test]
    fn every_distribution_names_toolsets_that_exist() {
        let catalog = Catalog::new([], []);
        assert_eq!(names().len(), 17);
        for name in names() {
            for chance in chances(name).unwrap() {
                assert!(catalog.is_valid(chance.toolset), "{name}: {}", chance.toolset);
            }
        }
        assert_eq!(chances("moa"), None);
    }

    #[test]
    fn a_seed_draws_the_same_again_and_others_differ() {
        let balanced = chances("balanced").unwrap();
        let drawn = |seed| (0..50).map(|number| draw(&balanced, seed, number)).collect::<Vec<_>>();
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
    }

    #[test]
    fn toolsets_come_up_as_often_as_their_percentage_says() {
        for name in ["science", "terminal_tasks", "default"] {
            let chances = chances(name).unwrap();
            let draws: Vec<_> = (0..4000).map(|number| draw(&chances, 1, number)).collect();
            for chance in &chances {
                let share = draws.iter().filter(|drawn| drawn.contains(&chance.toolset)).count() as f64 / 40.0;
                assert!(
                    (share - f64::from(chance.percent)).abs() < 3.0,
                    "{name} {}: {share} %",
                    chance.toolset
                );
            }
        }
    }

    #[test]
    fn when_nothing_comes_up_the_likeliest_is_taken() {
        let rare = [("a", 1), ("b", 2), ("c", 2)].map(|(toolset, percent)| Chance { toolset, percent });
        let draws: Vec<_> = (0..500).map(|number| draw(&rare, 3, number)).collect();
        assert!(draws.iter().all(|drawn| !drawn.is_empty()));
        assert!(400 < draws.iter().filter(|drawn| **drawn == ["b"]).count());
    }
}

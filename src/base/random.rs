//! Chance, where nobody must be able to guess: keys and secrets. Ids have
//! their own in [`crate::base::Clock`].

/// The machine has no randomness.
#[derive(Debug, thiserror::Error)]
#[error("the operating system's random source failed: {0}")]
pub struct NoRandomness(getrandom::Error);

/// 256 bits from the operating system.
pub fn unguessable() -> Result<[u8; 32], NoRandomness> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(NoRandomness)?;
    Ok(bytes)
}

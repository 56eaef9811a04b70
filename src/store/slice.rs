//! A part of a log, bounded in rows and in bytes: one input may be megabytes,
//! and a page of them would be gigabytes.

use crate::model::message::{Message, Part};

/// A slice holds about this much text, and always at least one item.
pub(super) const BYTES: usize = 8 * 1024 * 1024;

/// Consecutive items of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice<T> {
    pub items: Vec<T>,
    /// Cut before the limit of rows, because its texts are large: more is there.
    pub cut: bool,
}

/// The bytes of content, roughly.
pub(super) fn weight(parts: &[Part]) -> usize {
    let bytes = parts.iter().map(|part| match part {
        Part::Text { text } => text.len(),
        Part::ImageUrl { image_url } => image_url.url.len(),
    });
    bytes.sum()
}

pub(super) fn weight_of(message: &Message) -> usize {
    weight(&message.content) + message.reasoning.as_ref().map_or(0, String::len)
}

//! Which tools a query is about: BM25 over the words of their names,
//! descriptions and parameters. Ties go by name, so that the order is stable.

use std::collections::HashMap;
use std::sync::Arc;

use crate::tool::registry::Entry;

/// How soon more of the same word counts for nothing, and how much long texts
/// are held back (the usual figures, as the original's).
const K1: f64 = 1.5;
const B: f64 = 0.75;

struct Document<'a> {
    tool: &'a Arc<Entry>,
    counts: HashMap<String, f64>,
    length: f64,
}

/// The best first; where no word is known, those whose name holds the query.
pub(super) fn ranked<'a>(query: &str, tools: &'a [Arc<Entry>]) -> Vec<&'a Arc<Entry>> {
    let documents: Vec<Document<'a>> = tools.iter().map(document).collect();
    let mean = documents.iter().map(|document| document.length).sum::<f64>() / (documents.len().max(1) as f64);
    let mut words: Vec<String> = words(query).collect();
    words.sort();
    words.dedup();
    let mut scored: Vec<(f64, &Arc<Entry>)> = documents
        .iter()
        .map(|document| (score(&words, document, &documents, mean), document.tool))
        .filter(|(score, _)| 0.0 < *score)
        .collect();
    scored.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.name().cmp(other.name())));
    if !scored.is_empty() {
        return scored.into_iter().map(|(_, tool)| tool).collect();
    }
    let part = query.trim().to_lowercase();
    let holds = |tool: &&Arc<Entry>| !part.is_empty() && tool.name().to_lowercase().contains(&part);
    tools.iter().filter(holds).collect()
}

fn document(tool: &Arc<Entry>) -> Document<'_> {
    let properties = tool
        .schema()
        .get("properties")
        .and_then(|properties| properties.as_object());
    let parameters = properties.into_iter().flatten().map(|(name, _)| name.as_str());
    let texts = [tool.name(), tool.description()].into_iter().chain(parameters);
    let (mut counts, mut length) = (HashMap::new(), 0.0);
    for word in texts.flat_map(words) {
        *counts.entry(word).or_insert(0.0) += 1.0;
        length += 1.0;
    }
    Document { tool, counts, length }
}

/// Lower-case runs of letters and digits.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

fn score(words: &[String], document: &Document<'_>, all: &[Document<'_>], mean: f64) -> f64 {
    let of_word = |word: &String| {
        let count = document.counts.get(word)?;
        let holding = all.iter().filter(|other| other.counts.contains_key(word)).count() as f64;
        let rarity = (1.0 + (all.len() as f64 - holding + 0.5) / (holding + 0.5)).ln();
        let length = 1.0 - B + B * document.length / mean;
        Some(rarity * count * (K1 + 1.0) / (count + K1 * length))
    };
    words.iter().filter_map(of_word).sum()
}

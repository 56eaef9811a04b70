//! Bodies that a schema forbids, made from the schema: each is right but for one
//! place.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::isolation::least;

/// No schema of the document is nested deeper.
const DEEPEST: usize = 8;

/// A body and the place at which it is wrong, or of interest.
pub struct Sample {
    pub at: String,
    pub body: Value,
}

/// What to make at the places of a schema.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// A value of a type that the schema does not have there.
    WrongType,
    /// A text with U+0000, where any text may stand.
    Nul,
}

struct Maker<'a> {
    document: &'a Value,
    kind: Kind,
    samples: Vec<Sample>,
}

/// One body for each place and wrong value.
pub fn of(document: &Value, schema: &Value, kind: Kind) -> Vec<Sample> {
    let mut maker = Maker {
        document,
        kind,
        samples: Vec::new(),
    };
    maker.walk(schema, "", &|value| value, DEEPEST);
    maker.samples
}

impl Maker<'_> {
    fn walk(&mut self, schema: &Value, at: &str, wrap: &dyn Fn(Value) -> Value, deeper: usize) {
        let values = match self.kind {
            Kind::WrongType => self.wrong(schema),
            Kind::Nul => nul(self.document, schema),
        };
        for value in values {
            self.samples.push(Sample {
                at: at.to_owned(),
                body: wrap(value),
            });
        }
        let Some(deeper) = deeper.checked_sub(1) else { return };
        for option in options(self.document, schema) {
            if let Some(fields) = option["properties"].as_object() {
                let base = least(self.document, &option);
                for (name, field) in fields {
                    let place = |value| {
                        let mut whole = base.clone();
                        whole[name] = value;
                        wrap(whole)
                    };
                    self.walk(field, &format!("{at}/{name}"), &place, deeper);
                }
            }
            if option["items"].is_object() {
                let place = |value| wrap(json!([value]));
                self.walk(&option["items"], &format!("{at}/0"), &place, deeper);
            }
        }
    }

    fn wrong(&self, schema: &Value) -> Vec<Value> {
        let allowed = types(self.document, schema);
        let candidates = [
            ("null", json!(null)),
            ("boolean", json!(true)),
            ("number", json!(1.5)),
            ("number", json!(1e300)),
            ("string", json!("no such thing")),
            ("array", json!([])),
            ("object", json!({})),
        ];
        let fits = |name: &str| allowed.contains(name) || allowed.contains("any");
        let mut wrong: Vec<Value> = candidates
            .into_iter()
            .filter(|(name, _)| !fits(name))
            .map(|(_, value)| value)
            .collect();
        if !fits("number") && !fits("integer") {
            wrong.push(json!(7));
        }
        // No count of this surface is below zero.
        if fits("integer") && !fits("number") {
            wrong.push(json!(-7));
        }
        wrong
    }
}

fn nul(document: &Value, schema: &Value) -> Vec<Value> {
    let takes = types(document, schema).contains("string");
    takes.then(|| json!("a\0b")).into_iter().collect()
}

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        Some(name) => resolved(document, &document["components"]["schemas"][name]),
        None => schema,
    }
}

/// The schemas of which one has to hold.
fn options(document: &Value, schema: &Value) -> Vec<Value> {
    let schema = resolved(document, schema);
    for list in ["oneOf", "anyOf"] {
        if let Some(all) = schema[list].as_array() {
            return all.iter().flat_map(|one| options(document, one)).collect();
        }
    }
    match schema["allOf"].as_array() {
        Some(all) if all.len() == 1 => options(document, &all[0]),
        _ => vec![schema.clone()],
    }
}

/// The types that a value may have; of texts only those that are not a choice
/// or a form.
fn types(document: &Value, schema: &Value) -> BTreeSet<String> {
    let mut types = BTreeSet::new();
    for option in options(document, schema) {
        let formed = option["enum"].is_array() || option["format"].is_string() || option["pattern"].is_string();
        let named = match &option["type"] {
            Value::String(name) => vec![name.as_str()],
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            _ => vec!["any"],
        };
        let kept = named.into_iter().filter(|name| *name != "string" || !formed);
        types.extend(kept.map(str::to_owned));
    }
    types
}

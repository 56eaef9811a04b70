//! One recorded case, and what counts as an answer to it.
//!
//! The tolerances of the data are judged here and nowhere else; a group only
//! says how its answer relates to the recorded one.

use serde_json::{Value, json};

pub struct Case {
    /// What is given; the whole row where it has no field `input`.
    pub input: Value,
    pub expect: Value,
    tolerance: Tolerance,
    alternative: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tolerance {
    /// The recorded answer and no other.
    None,
    StricterOk,
    LooserOk,
    KeepTextOk,
    /// The alternative is as right; where none is named, anything is.
    Either,
}

/// How an answer that is not the recorded one relates to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// It refuses, asks or removes more.
    Stricter,
    /// It passes or leaves more.
    Looser,
    /// The text is as it was given.
    KeepsText,
    Unrelated,
}

impl Case {
    /// A row of a file; the error names what is wrong with it.
    pub fn read(row: &Value) -> Result<Self, String> {
        let id = row["id"]
            .as_str()
            .ok_or_else(|| format!("a case without `id`: {row}"))?;
        let drift = &row["drift"];
        let tolerance = match drift["tolerance"].as_str() {
            None | Some("exact") => Tolerance::None,
            Some("stricter_ok") => Tolerance::StricterOk,
            Some("looser_ok") => Tolerance::LooserOk,
            Some("keep_text_ok") => Tolerance::KeepTextOk,
            Some("either") => Tolerance::Either,
            Some(other) => return Err(format!("{id}: no tolerance is named `{other}`")),
        };
        Ok(Self {
            input: row.get("input").unwrap_or(row).clone(),
            expect: row["expect"].clone(),
            tolerance,
            alternative: drift.get("alternative").cloned(),
        })
    }

    /// One text field of the input, empty when it is absent or null.
    pub fn text(&self, field: &str) -> &str {
        self.input[field].as_str().unwrap_or_default()
    }

    /// A text that the input gives as such, or describes by `generate`.
    pub fn long_text(&self, field: &str) -> String {
        let generate = &self.input["generate"];
        match generate["repeat"].as_str() {
            Some(unit) => unit.repeat(count(&generate["times"])) + generate["suffix"].as_str().unwrap_or_default(),
            None => self.text(field).to_owned(),
        }
    }

    /// No other answer than the recorded one is right.
    pub fn is_exact(&self) -> bool {
        self.tolerance == Tolerance::None
    }

    /// Right is the recorded answer, or what a tolerance of `either` names.
    pub fn check(&self, got: impl Into<Value>) -> Result<(), String> {
        self.check_as(&self.expect, got, |_, _| Relation::Unrelated)
    }

    /// As [`Case::check`], where the group can tell stricter from looser.
    pub fn check_by(&self, got: impl Into<Value>, relation: impl Fn(&Value, &Value) -> Relation) -> Result<(), String> {
        self.check_as(&self.expect, got, relation)
    }

    /// Against an answer that the group derived from the recorded one. The
    /// relation is asked for the expected and the given answer.
    pub fn check_as(
        &self,
        expected: &Value,
        got: impl Into<Value>,
        relation: impl Fn(&Value, &Value) -> Relation,
    ) -> Result<(), String> {
        let got = got.into();
        let is_right = got == *expected
            || match self.tolerance {
                Tolerance::None => false,
                Tolerance::StricterOk => relation(expected, &got) == Relation::Stricter,
                Tolerance::LooserOk => relation(expected, &got) == Relation::Looser,
                Tolerance::KeepTextOk => relation(expected, &got) == Relation::KeepsText,
                Tolerance::Either => self.alternative.as_ref().is_none_or(|alternative| *alternative == got),
            };
        if is_right {
            return Ok(());
        }
        Err(format!("expected {}, got {}", short(expected), short(&got)))
    }

    /// For input that no function answers.
    pub fn unknown(&self, what: &str) -> Result<(), String> {
        Err(format!("no function answers `{what}`"))
    }
}

pub fn count(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

pub fn strings(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// Enough of a value to see what is wrong.
fn short(value: &Value) -> String {
    const CHARS: usize = 600;
    let text = value.to_string();
    match text.char_indices().nth(CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[test]
fn each_tolerance_lets_through_what_it_names_and_nothing_else() {
    let relations = [
        Relation::Stricter,
        Relation::Looser,
        Relation::KeepsText,
        Relation::Unrelated,
    ];
    for (tolerance, passes) in [
        ("stricter_ok", Some(Relation::Stricter)),
        ("looser_ok", Some(Relation::Looser)),
        ("keep_text_ok", Some(Relation::KeepsText)),
        ("exact", None),
    ] {
        let case = Case::read(&json!({"id": "x-1", "expect": 1, "drift": {"tolerance": tolerance}})).unwrap();
        assert_eq!(case.check(1), Ok(()), "{tolerance}");
        for relation in relations {
            let is_right = case.check_by(2, |_, _| relation).is_ok();
            assert_eq!(is_right, passes == Some(relation), "{tolerance} {relation:?}");
        }
    }
    let named = json!({"id": "x-1", "expect": 1, "drift": {"tolerance": "either", "alternative": 2}});
    let named = Case::read(&named).unwrap();
    assert!(named.check(1).is_ok() && named.check(2).is_ok() && named.check(3).is_err());
    let anything = Case::read(&json!({"id": "x-1", "expect": 1, "drift": {"tolerance": "either"}})).unwrap();
    assert!(anything.check(3).is_ok());
    assert!(Case::read(&json!({"id": "x-1", "drift": {"tolerance": "lenient"}})).is_err());
}

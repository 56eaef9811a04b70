//! Recorded answers (`tests/data/vectors/`), read by unit tests only.
//!
//! A case is right when it equals the recorded answer, or the alternative a
//! tolerance of `either` names; the other tolerances are judged by the test
//! that knows what stricter or looser means for its subject.

use serde_json::Value;

pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) input: Value,
    pub(crate) expect: Value,
    pub(crate) tolerance: String,
    pub(crate) alternative: Option<Value>,
}

impl Case {
    /// One text field of the input, empty when it is absent or null.
    pub(crate) fn text(&self, field: &str) -> &str {
        self.input[field].as_str().unwrap_or_default()
    }

    /// Fails unless `got` is one of the recorded answers.
    pub(crate) fn check(&self, got: &Value) {
        let right = *got == self.expect
            || (self.tolerance == "either" && self.alternative.as_ref().is_none_or(|alternative| alternative == got));
        assert!(
            right,
            "{}: {}\nexpected {}\n     got {got}",
            self.id, self.input, self.expect
        );
    }
}

/// Every case of a group; fails when there is none.
pub(crate) fn cases(group: &str) -> Vec<Case> {
    let path = format!("{}/tests/data/vectors/{group}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let file: Value = serde_json::from_str(&text).unwrap();
    let cases: Vec<Case> = file["cases"].as_array().unwrap().iter().map(parse).collect();
    assert!(!cases.is_empty(), "{group} has no cases");
    cases
}

/// The cases of a group whose input names this operation.
pub(crate) fn cases_of(group: &str, op: &str) -> Vec<Case> {
    let cases: Vec<Case> = cases(group).into_iter().filter(|case| case.input["op"] == op).collect();
    assert!(!cases.is_empty(), "{group} has no case of `{op}`");
    cases
}

fn parse(case: &Value) -> Case {
    let drift = &case["drift"];
    Case {
        id: case["id"].as_str().unwrap().to_owned(),
        input: case["input"].clone(),
        expect: case["expect"].clone(),
        tolerance: drift["tolerance"].as_str().unwrap_or_default().to_owned(),
        alternative: drift.get("alternative").cloned(),
    }
}

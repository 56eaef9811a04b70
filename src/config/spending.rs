//! `usage` and `budgets`: what models cost, and how much may be spent. Amounts
//! are read digit by digit into whole billionths; no sum ever sees a float.

use std::collections::BTreeMap;

use serde_json::json;

use super::node::{Node, Value};
use super::section::Section;
use crate::model::budget::{BudgetScope, BudgetUnit, Budgets, Ceiling, MAX_CEILING};
use crate::model::usage::{NANOS, Price, Prices};

const AMOUNT: &str = "an amount up to 1000000 with at most 9 decimals, such as 2.50";

/// `usage`: the price table.
#[derive(Clone, Debug)]
pub struct Usage {
    /// The name of what prices are in, as it is shown.
    pub currency: String,
    pub prices: Prices,
}

impl Usage {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        Self {
            currency: section.text("currency", "USD"),
            prices: Prices(section.section("prices", read_prices)),
        }
    }
}

fn read_prices(section: &mut Section<'_>) -> BTreeMap<String, Price> {
    let models = section.names();
    let prices = models.into_iter().map(|model| {
        let price = section.section_named(&model, read_price);
        (model, price)
    });
    prices.collect()
}

/// For a million tokens.
fn read_price(section: &mut Section<'_>) -> Price {
    let input = section.amount("input").unwrap_or_default();
    let output = section.amount("output").unwrap_or_default();
    Price {
        input,
        cached_input: section.amount("cached_input").unwrap_or(input),
        output,
        reasoning: section.amount("reasoning").unwrap_or(output),
    }
}

pub(super) fn read_budgets(section: &mut Section<'_>) -> Budgets {
    let defaults = Budgets::default();
    let warn_percent = section.number("warn_percent", defaults.warn_percent, 1..=100);
    let grant_percent = section.number("grant_percent", defaults.grant_percent, 1..=1000);
    let scopes = [
        ("turn", BudgetScope::Turn),
        ("session", BudgetScope::Session),
        ("user", BudgetScope::User),
        ("tenant", BudgetScope::Tenant),
        ("day", BudgetScope::Day),
    ];
    let ceilings = scopes.into_iter().flat_map(|(name, scope)| {
        section.section(name, |section| {
            let ceiling = |unit, limit: Option<u64>| limit.map(|limit| Ceiling { scope, unit, limit });
            let tokens = section.take(
                "tokens",
                None,
                &format!("a whole number from 1 to {MAX_CEILING}"),
                |node| tokens(node).map(Some),
                |limit| json!(limit),
            );
            let cost = section.amount_where("cost", |cost| 0 < cost);
            [
                ceiling(BudgetUnit::Tokens, tokens),
                ceiling(BudgetUnit::CostNanos, cost),
            ]
        })
    });
    Budgets {
        ceilings: ceilings.flatten().collect(),
        warn_percent,
        grant_percent,
    }
}

fn tokens(node: &Node) -> Option<u64> {
    let Value::Integer(number) = node.value else {
        return None;
    };
    u64::try_from(number)
        .ok()
        .filter(|limit| (1..=MAX_CEILING).contains(limit))
}

impl Section<'_> {
    /// An amount of the currency, in billionths.
    fn amount(&mut self, name: &'static str) -> Option<u64> {
        self.amount_where(name, |_| true)
    }

    fn amount_where(&mut self, name: &'static str, fits: impl Fn(u64) -> bool) -> Option<u64> {
        let read = |node: &Node| match &node.value {
            Value::Integer(_) | Value::Float(_) | Value::Text(_) => {
                nanos(&node.shown()).filter(|nanos| fits(*nanos)).map(Some)
            }
            _ => None,
        };
        self.take(name, None, AMOUNT, read, |amount| json!(amount.map(shown)))
    }
}

/// The billionths that a decimal number names.
fn nanos(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || 9 < fraction.len() {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    let nanos = whole.checked_mul(NANOS)?.checked_add(fraction)?;
    Some(nanos).filter(|nanos| *nanos <= MAX_CEILING)
}

fn shown(nanos: u64) -> String {
    let text = format!("{}.{:09}", nanos / NANOS, nanos % NANOS);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_exactly() {
        for (text, expected) in [
            ("0", Some(0)),
            ("2.5", Some(2_500_000_000)),
            ("0.000000001", Some(1)),
            ("1000000", Some(MAX_CEILING)),
            ("1000000.000000001", None),
            ("0.0000000001", None),
            ("-1", None),
            ("1e3", None),
            (".5", None),
            ("5.", None),
            ("", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(nanos(text), expected, "{text}");
        }
        // What a file's parser makes of it, shown again, is what was written.
        assert_eq!(nanos(&0.075_f64.to_string()), Some(75_000_000));
        assert_eq!((shown(2_500_000_000), shown(0)), ("2.5".to_owned(), "0".to_owned()));
    }
}

//! Prices, budgets, and the models that they are for.

use super::*;

#[test]
fn prices_and_budgets_are_exact_amounts() {
    let yaml = "
usage:
  currency: EUR
  prices:
    gpt-5.2: {input: 1.25, cached_input: 0.125, output: 10}
    '*': {output: '0.000000001', reasoning: 3}
budgets:
  turn: {cost: 2.50}
  day: {tokens: 1000}";
    let config = load(yaml, &[("HERMES__BUDGETS__TURN__TOKENS", "500")]).unwrap();
    let price = |input, cached_input, output, reasoning| Price {
        input,
        cached_input,
        output,
        reasoning,
    };
    let prices = &config.usage.prices;
    let named = price(1_250_000_000, 125_000_000, 10_000_000_000, 10_000_000_000);
    assert_eq!(
        (prices.of("gpt-5.2"), prices.of("x")),
        (named, price(0, 0, 1, 3_000_000_000))
    );
    let ceiling = |scope, unit| config.budgets.ceiling(scope, unit);
    assert_eq!(ceiling(BudgetScope::Turn, BudgetUnit::CostNanos), Some(2_500_000_000));
    assert_eq!(ceiling(BudgetScope::Turn, BudgetUnit::Tokens), Some(500));
    assert_eq!(ceiling(BudgetScope::Day, BudgetUnit::Tokens), Some(1000));
    assert_eq!(config.budgets.ceilings.len(), 3);
    assert!(config.check().is_ok());
}

#[test]
fn routes_are_names_of_models_in_either_form() {
    let yaml = "model_routes: {fast: gpt-5.2-mini, deep: {model: gpt-5.2, provider: openai}}";
    let routes = load(yaml, &[]).unwrap().model_routes;
    let expected = [("deep", "gpt-5.2"), ("fast", "gpt-5.2-mini")];
    assert!(
        routes.iter().map(|(a, b)| (a.as_str(), b.as_str())).eq(expected),
        "{routes:?}"
    );
    for wrong in ["[fast]", "fast", "{fast: 5}", "{fast: {}}", "{fast: ''}", "{' ': x}"] {
        let text = refusal(&format!("model_routes: {wrong}"), &[]);
        assert!(text.contains("`model_routes`"), "{wrong}: {text}");
    }
}

#[test]
fn a_wrong_price_or_budget_is_refused_by_its_key() {
    for (yaml, key) in [
        ("usage: {prices: {m: {input: -1}}}", "usage.prices.m.input"),
        ("usage: {prices: {m: {input: 1.0000000001}}}", "usage.prices.m.input"),
        ("usage: {prices: {m: {inputs: 1}}}", "usage.prices.m.inputs"),
        ("usage: {prices: {m: 3}}", "usage.prices.m"),
        ("usage: {prices: 3}", "usage.prices"),
        ("budgets: {turn: {cost: 0}}", "budgets.turn.cost"),
        ("budgets: {turn: {cost: lots}}", "budgets.turn.cost"),
        ("budgets: {day: {tokens: 0}}", "budgets.day.tokens"),
        ("budgets: {day: {tokens: 1.5}}", "budgets.day.tokens"),
        ("budgets: {week: {tokens: 1}}", "budgets.week"),
        ("budgets: {warn_percent: 101}", "budgets.warn_percent"),
    ] {
        let text = refusal(yaml, &[]);
        assert!(text.contains(&format!("`{key}`")), "{yaml}: {text}");
    }
}

//! What model calls take and cost. Money is whole billionths of the configured
//! currency, so that sums are exact; a call's cost is rounded up once. Figures
//! are a model server's word: they are bounded here, before anything adds them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::id::{SessionId, TurnId, UsageId};
use super::turn::Usage;
use crate::base::Timestamp;

/// Billionths in one unit of the currency.
pub const NANOS: u64 = 1_000_000_000;

/// Prices are for so many tokens.
const PRICED_TOKENS: u128 = 1_000_000;

/// No model takes or writes so many tokens in one call; what claims more is
/// wrong and would spoil the sums.
const MAX_TOKENS: u64 = 1_000_000_000;

/// A million units of the currency for one call: as above.
const MAX_COST: u64 = 1_000_000 * NANOS;

/// What a model was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A step of a turn.
    Turn,
    Compaction,
    Review,
    Judge,
    Title,
    Vision,
}

/// Tokens of one model call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUsage {
    pub input: u64,
    pub output: u64,
    /// The part of `input` that a prompt cache served.
    pub cached_input: u64,
    /// The part of `output` that was reasoning.
    pub reasoning: u64,
}

impl TokenUsage {
    /// Parts are never more than their wholes.
    fn bounded(self) -> Self {
        let (input, output) = (self.input.min(MAX_TOKENS), self.output.min(MAX_TOKENS));
        Self {
            input,
            output,
            cached_input: self.cached_input.min(input),
            reasoning: self.reasoning.min(output),
        }
    }
}

/// What a model takes for a million tokens, in billionths of the currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Price {
    pub input: u64,
    pub cached_input: u64,
    pub output: u64,
    pub reasoning: u64,
}

impl Price {
    /// The cost of a call, rounded up to a whole billionth.
    pub fn cost(&self, tokens: &TokenUsage) -> u64 {
        let tokens = tokens.bounded();
        let part = |count: u64, price: u64| u128::from(count) * u128::from(price);
        let whole = part(tokens.input - tokens.cached_input, self.input)
            + part(tokens.cached_input, self.cached_input)
            + part(tokens.output - tokens.reasoning, self.output)
            + part(tokens.reasoning, self.reasoning);
        u64::try_from(whole.div_ceil(PRICED_TOKENS)).map_or(MAX_COST, |cost| cost.min(MAX_COST))
    }
}

/// Prices by the model's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prices(pub BTreeMap<String, Price>);

impl Prices {
    /// The price of every model that has none of its own.
    pub const ANY: &'static str = "*";

    /// A model without a price costs nothing.
    pub fn of(&self, model: &str) -> Price {
        let price = self.0.get(model).or_else(|| self.0.get(Self::ANY));
        price.copied().unwrap_or_default()
    }
}

/// What one model call took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    pub purpose: Purpose,
    pub model: String,
    pub tokens: TokenUsage,
    pub cost_nanos: u64,
    /// What the next call takes at least.
    pub foreseen: Foreseen,
}

impl Spent {
    /// A step of a turn. A server that does not count is taken at its word:
    /// nothing.
    pub fn in_turn(model: &str, tokens: Option<TokenUsage>, prices: &Prices) -> Self {
        let tokens = tokens.unwrap_or_default().bounded();
        let price = prices.of(model);
        // The conversation only grows within a turn, so the same is sent again,
        // at best from a cache.
        let again = TokenUsage {
            input: tokens.input,
            cached_input: if price.cached_input < price.input {
                tokens.input
            } else {
                0
            },
            ..TokenUsage::default()
        };
        Self {
            purpose: Purpose::Turn,
            cost_nanos: price.cost(&tokens),
            foreseen: Foreseen {
                tokens: tokens.input,
                cost_nanos: price.cost(&again),
            },
            model: model.to_owned(),
            tokens,
        }
    }

    /// What it adds to the usage of a turn and a session.
    pub fn usage(&self) -> Usage {
        Usage {
            input_tokens: self.tokens.input,
            output_tokens: self.tokens.output,
            cached_input_tokens: self.tokens.cached_input,
            reasoning_tokens: self.tokens.reasoning,
            steps: 1,
            cost_nanos: self.cost_nanos,
        }
    }

    /// What counts against a budget of tokens.
    pub fn total_tokens(&self) -> u64 {
        self.tokens.input + self.tokens.output
    }
}

/// The least that a model call will take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreseen {
    pub tokens: u64,
    pub cost_nanos: u64,
}

/// One model call as stored; never changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRecord {
    pub usage_id: UsageId,
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub user_id: String,
    pub spent: Spent,
    pub at: Timestamp,
}

/// By what usage is summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageGroup {
    /// Days of UTC.
    #[default]
    Day,
    Model,
    Session,
    User,
    Purpose,
    Turn,
}

impl UsageGroup {
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Model => "model",
            Self::Session => "session",
            Self::User => "user",
            Self::Purpose => "purpose",
            Self::Turn => "turn",
        }
    }
}

/// The model calls of one group, summed up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageSum {
    /// What the group is of: a day such as `2026-01-31`, the name of a model, an
    /// id, a purpose.
    pub key: String,
    pub calls: u64,
    pub input_tokens: u64,
    /// The part of the input that a prompt cache served.
    pub cached_input_tokens: u64,
    pub output_tokens: u64,
    /// The part of the output that was reasoning.
    pub reasoning_tokens: u64,
    /// In billionths of the server's currency.
    pub cost_nanos: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price {
        input: 1_250_000_000,
        cached_input: 125_000_000,
        output: 10_000_000_000,
        reasoning: 12_000_000_000,
    };

    fn tokens(input: u64, cached_input: u64, output: u64, reasoning: u64) -> TokenUsage {
        TokenUsage {
            input,
            output,
            cached_input,
            reasoning,
        }
    }

    #[test]
    fn a_cost_is_exact_and_rounded_up_once() {
        // 600 · 1,250 + 400 · 125 + 80 · 10,000 + 20 · 12,000 billionths.
        assert_eq!(PRICE.cost(&tokens(1000, 400, 100, 20)), 1_840_000);
        let small = Price {
            input: 1,
            ..Price::default()
        };
        assert_eq!(small.cost(&tokens(1, 0, 0, 0)), 1);
        assert_eq!(small.cost(&tokens(1_000_001, 0, 0, 0)), 2);
        assert_eq!(small.cost(&tokens(0, 0, 9, 0)), 0);
    }

    #[test]
    fn absurd_figures_are_bounded_and_cannot_overflow() {
        let absurd = tokens(u64::MAX, u64::MAX, u64::MAX, u64::MAX);
        let dear = Price {
            input: u64::MAX,
            cached_input: u64::MAX,
            output: u64::MAX,
            reasoning: u64::MAX,
        };
        assert_eq!(dear.cost(&absurd), MAX_COST);
        let spent = Spent::in_turn("m", Some(absurd), &Prices::default());
        assert_eq!(spent.tokens, tokens(MAX_TOKENS, MAX_TOKENS, MAX_TOKENS, MAX_TOKENS));
        assert_eq!(
            Spent::in_turn("m", Some(tokens(1, 5, 1, 7)), &Prices::default()).tokens,
            tokens(1, 1, 1, 1),
            "a part is no more than its whole"
        );
    }

    #[test]
    fn a_model_has_its_own_price_or_that_of_any() {
        let mut prices = Prices::default();
        assert_eq!(prices.of("a"), Price::default());
        prices.0.insert("a".to_owned(), PRICE);
        assert_eq!((prices.of("a"), prices.of("b")), (PRICE, Price::default()));
        prices.0.insert(Prices::ANY.to_owned(), PRICE);
        assert_eq!(prices.of("b"), PRICE);
    }

    #[test]
    fn the_next_call_is_foreseen_to_send_the_same_again() {
        let mut prices = Prices::default();
        prices.0.insert("m".to_owned(), PRICE);
        let spent = Spent::in_turn("m", Some(tokens(1000, 0, 100, 0)), &prices);
        assert_eq!(
            spent.foreseen,
            Foreseen {
                tokens: 1000,
                cost_nanos: 125_000
            }
        );
        assert_eq!(spent.total_tokens(), 1100);
    }
}

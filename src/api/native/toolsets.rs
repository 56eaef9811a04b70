//! What a choice of toolsets comes to, before any session is made with it.

use std::collections::BTreeMap;

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::tools::registry;
use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::payload::Payload;
use crate::api::state::ApiState;
use crate::model::principal::Scope;
use crate::model::session::ToolsetSelection;
use crate::tool::registry::Selection;
use crate::tool::toolset::distribution::{self, Chance};

/// Draws of one request.
const MAX_DRAWS: u32 = 1_000;
/// Names in one choice.
const MAX_NAMES: usize = 100;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(resolve_toolsets))
        .routes(routes!(sample_toolsets))
}

/// A choice of toolsets.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolsetChoice {
    /// The toolset to begin with. Without it, and without `enabled`, what
    /// sessions of this server begin with.
    #[serde(default)]
    preset: Option<String>,
    /// Toolsets to add.
    #[serde(default)]
    enabled: Option<Vec<String>>,
    /// Toolsets to take out, last of all.
    #[serde(default)]
    disabled: Vec<String>,
}

/// What the choice comes to.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ResolvedTools {
    /// Sorted by name.
    tools: Vec<ResolvedTool>,
    /// Grows whenever tools come or go.
    generation: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ResolvedTool {
    name: String,
    state: ToolState,
    /// Why it is absent.
    reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToolState {
    /// The model is told of it and may call it.
    Offered,
    /// The toolsets name it and it is not offered.
    Absent,
}

/// Resolve a choice of toolsets into tools; nothing changes.
#[utoipa::path(post, path = "/v1/toolsets/resolve", tag = "tools",
    request_body = ToolsetChoice,
    responses((status = 200, description = "Every tool of the toolsets, offered or absent.", body = ResolvedTools)))]
pub(super) async fn resolve_toolsets(
    State(state): State<ApiState>,
    caller: Caller,
    payload: Payload,
) -> Result<Json<ResolvedTools>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let choice: ToolsetChoice = payload.json().await?;
    for (pointer, names) in [
        ("/enabled", choice.enabled.as_deref().unwrap_or_default()),
        ("/disabled", &choice.disabled),
    ] {
        if MAX_NAMES < names.len() {
            return Err(Failure::field(pointer, format!("expected at most {MAX_NAMES} names")));
        }
    }
    let presets = match (choice.preset, &choice.enabled) {
        (Some(preset), _) => vec![preset],
        (None, Some(_)) => Vec::new(),
        (None, None) => state.toolsets.clone(),
    };
    let session = ToolsetSelection {
        enabled: choice.enabled,
        disabled: choice.disabled,
    };
    let selection = Selection {
        presets: &presets,
        session: Some(&session),
        turn: None,
        ceiling: caller.principal.tools.as_deref(),
    };
    let registry = registry(&state, &caller).await;
    let offers = state.engine.tools().offers(state.engine.host());
    let tools = registry.select(&selection, offers).map_err(|unknown| {
        let named = |names: &[String]| names.contains(&unknown.name);
        let pointer = match &session {
            session if named(&presets) && !session.enabled.as_deref().is_some_and(named) => "/preset",
            session if named(&session.disabled) => "/disabled",
            _ => "/enabled",
        };
        Failure::field(pointer, unknown.to_string())
    })?;
    let offered = tools.names().into_iter().map(|name| (name.to_owned(), None));
    let absent = tools.absent().iter();
    let absent = absent.map(|absent| (absent.name.clone(), Some(absent.reason.clone())));
    let all: BTreeMap<String, Option<String>> = offered.chain(absent).collect();
    let tools = all.into_iter().map(|(name, reason)| ResolvedTool {
        name,
        state: if reason.is_none() {
            ToolState::Offered
        } else {
            ToolState::Absent
        },
        reason,
    });
    Ok(Json(ResolvedTools {
        tools: tools.collect(),
        generation: registry.generation(),
    }))
}

/// What to draw.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolsetDraw {
    /// The name of a distribution.
    #[schema(example = "balanced")]
    distribution: String,
    /// The same seed draws the same; without one the server makes one.
    #[serde(default)]
    seed: Option<u64>,
    /// How many draws, 1 to 1000.
    #[serde(default = "one")]
    #[schema(required = false, minimum = 1, maximum = 1000)]
    count: u32,
}

fn one() -> u32 {
    1
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ToolsetSample {
    distribution: String,
    /// What it holds.
    chances: Vec<Chance>,
    /// Draws the same again.
    seed: u64,
    /// The toolsets of each draw; none is empty.
    draws: Vec<Vec<&'static str>>,
}

/// Draw toolsets of a distribution by chance; nothing changes.
#[utoipa::path(post, path = "/v1/toolsets/sample", tag = "tools",
    request_body = ToolsetDraw,
    responses((status = 200, description = "The draws, and the seed that repeats them.", body = ToolsetSample)))]
pub(super) async fn sample_toolsets(
    State(state): State<ApiState>,
    caller: Caller,
    payload: Payload,
) -> Result<Json<ToolsetSample>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let asked: ToolsetDraw = payload.json().await?;
    let Some(chances) = distribution::chances(&asked.distribution) else {
        let known = distribution::names().join(", ");
        return Err(Failure::field("/distribution", format!("expected one of: {known}")));
    };
    if !(1..=MAX_DRAWS).contains(&asked.count) {
        return Err(Failure::field("/count", format!("expected 1 to {MAX_DRAWS}")));
    }
    let seed = asked.seed.unwrap_or_else(|| fresh_seed(&state));
    let draws = (0..u64::from(asked.count)).map(|number| distribution::draw(&chances, seed, number));
    Ok(Json(ToolsetSample {
        draws: draws.collect(),
        distribution: asked.distribution,
        chances,
        seed,
    }))
}

/// From an id, whose end is chance. JSON of any client holds 53 bits.
fn fresh_seed(state: &ApiState) -> u64 {
    let id = crate::model::id::TurnId::new(state.engine.clock()).to_string();
    let mixed = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |all, byte| {
        (all ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mixed >> 11
}

//! What every stream can be asked: which types of events, whether with deltas,
//! and in whose name where no header can say it.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::api::failure::Failure;
use crate::live::follow::Shown;
use crate::model::event_types::{Types, UnknownType};

/// Whether frames of items in flight are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Deltas {
    #[default]
    On,
    Off,
}

/// What a reader of a session wants to see.
pub(super) fn shown(types: Option<&str>, deltas: Option<Deltas>) -> Result<Shown, Failure> {
    Ok(Shown {
        types: checked(types.map(Types::of_session))?,
        deltas: deltas.unwrap_or_default() == Deltas::On,
    })
}

/// What a reader of a tenant's lists wants to see.
pub(super) fn shown_of_tenant(types: Option<&str>) -> Result<Types, Failure> {
    checked(types.map(Types::of_tenant))
}

fn checked(types: Option<Result<Types, UnknownType>>) -> Result<Types, Failure> {
    let types = types.unwrap_or_else(|| Ok(Types::default()));
    types.map_err(|unknown| Failure::field("types", unknown.to_string()))
}

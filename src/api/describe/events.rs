//! Events as a union that generators understand: one named schema for each type,
//! told apart by `type`. What the derive gives, an envelope beside a nameless
//! choice of bodies, says the same and is read by few of them.

use std::collections::BTreeMap;

use utoipa::openapi::schema::{Discriminator, OneOfBuilder};
use utoipa::openapi::{AllOfBuilder, Ref, RefOr, Schema};

type Schemas = BTreeMap<String, RefOr<Schema>>;

const EVENT: &str = "Event";
const BODY: &str = "EventBody";
const ENVELOPE: &str = "EventEnvelope";

/// Replaces `Event` and the choice it is made of by the union. Without them
/// nothing changes.
pub(super) fn as_union(schemas: &mut Schemas) {
    let Some(envelope) = envelope(schemas) else { return };
    let Some(RefOr::T(Schema::OneOf(bodies))) = schemas.remove(BODY) else {
        return;
    };
    schemas.insert(ENVELOPE.to_owned(), envelope);
    let mut union = OneOfBuilder::new().description(bodies.description);
    let mut mapping = Vec::new();
    for body in bodies.items {
        let Some(kind) = kind(&body) else { continue };
        let name = schema_name(&kind);
        let shared = Ref::from_schema_name(ENVELOPE);
        mapping.push((kind, Ref::from_schema_name(&name).ref_location));
        union = union.item(Ref::from_schema_name(&name));
        let whole = AllOfBuilder::new().item(shared).item(body).build();
        schemas.insert(name, RefOr::T(whole.into()));
    }
    let told_apart = Discriminator::with_mapping("type", mapping);
    let union = union.discriminator(Some(told_apart)).build();
    schemas.insert(EVENT.to_owned(), RefOr::T(union.into()));
}

/// What every event has beside its type and data.
fn envelope(schemas: &Schemas) -> Option<RefOr<Schema>> {
    let Some(RefOr::T(Schema::AllOf(event))) = schemas.get(EVENT) else {
        return None;
    };
    let own = |item: &&RefOr<Schema>| matches!(item, RefOr::T(Schema::Object(_)));
    event.items.iter().find(own).cloned()
}

/// The one value of `type` that goes with a body.
fn kind(body: &RefOr<Schema>) -> Option<String> {
    let RefOr::T(Schema::Object(body)) = body else {
        return None;
    };
    let Some(RefOr::T(Schema::Object(kind))) = body.properties.get("type") else {
        return None;
    };
    let only = kind.enum_values.as_ref()?.first()?;
    only.as_str().map(str::to_owned)
}

/// `tool_call.output_delta` becomes `ToolCallOutputDeltaEvent`.
fn schema_name(kind: &str) -> String {
    let words = kind.split(['.', '_']).map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    words.collect::<String>() + "Event"
}

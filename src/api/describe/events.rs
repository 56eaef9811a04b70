//! Events as a union that generators understand: one named schema for each type,
//! told apart by `type`. What the derive gives, an envelope beside a nameless
//! choice of bodies, says the same and is read by few of them.

use std::collections::BTreeMap;

use utoipa::openapi::schema::{Discriminator, OneOfBuilder};
use utoipa::openapi::{AllOfBuilder, Ref, RefOr, Schema};

type Schemas = BTreeMap<String, RefOr<Schema>>;

/// An event as the derive names it.
struct Event {
    name: &'static str,
    body: &'static str,
    envelope: &'static str,
    /// Before the names of its types.
    prefix: &'static str,
}

const EVENTS: [Event; 2] = [
    Event {
        name: "Event",
        body: "EventBody",
        envelope: "EventEnvelope",
        prefix: "",
    },
    Event {
        name: "TenantEvent",
        body: "TenantEventBody",
        envelope: "TenantEventEnvelope",
        prefix: "Tenant",
    },
];

/// Replaces each event and the choice it is made of by a union. Without them
/// nothing changes.
pub(super) fn as_unions(schemas: &mut Schemas) {
    for event in &EVENTS {
        as_union(schemas, event);
    }
}

fn as_union(schemas: &mut Schemas, event: &Event) {
    let Some(envelope) = envelope(schemas, event) else {
        return;
    };
    let Some(RefOr::T(Schema::OneOf(bodies))) = schemas.remove(event.body) else {
        return;
    };
    schemas.insert(event.envelope.to_owned(), envelope);
    let mut union = OneOfBuilder::new().description(bodies.description);
    let mut mapping = Vec::new();
    for body in bodies.items {
        let Some(kind) = kind(&body) else { continue };
        let name = format!("{}{}", event.prefix, schema_name(&kind));
        let shared = Ref::from_schema_name(event.envelope);
        mapping.push((kind, Ref::from_schema_name(&name).ref_location));
        union = union.item(Ref::from_schema_name(&name));
        let whole = AllOfBuilder::new().item(shared).item(body).build();
        schemas.insert(name, RefOr::T(whole.into()));
    }
    let told_apart = Discriminator::with_mapping("type", mapping);
    let union = union.discriminator(Some(told_apart)).build();
    schemas.insert(event.name.to_owned(), RefOr::T(union.into()));
}

/// What every event has beside its type and data.
fn envelope(schemas: &Schemas, event: &Event) -> Option<RefOr<Schema>> {
    let Some(RefOr::T(Schema::AllOf(event))) = schemas.get(event.name) else {
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

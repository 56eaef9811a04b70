//! Objects that take no other fields, beside fields that are added to them. The
//! derive puts both into an `allOf`, which nothing fits then: the closed part
//! refuses what the other asks for. Here they become one object.

use std::collections::BTreeMap;

use utoipa::openapi::schema::{AdditionalProperties, Discriminator, Object, OneOf};
use utoipa::openapi::{Ref, RefOr, Schema};

type Schemas = BTreeMap<String, RefOr<Schema>>;

/// Every such object and every union of such objects.
pub(super) fn as_wholes(schemas: &mut Schemas) {
    let names: Vec<String> = schemas.keys().cloned().collect();
    for name in names {
        match schemas.get(&name) {
            Some(RefOr::T(Schema::AllOf(parts))) => {
                let description = parts.description.clone();
                let Some((_, mut whole)) = whole(schemas, &parts.items) else {
                    continue;
                };
                whole.description = description.or(whole.description);
                schemas.insert(name, RefOr::T(whole.into()));
            }
            Some(RefOr::T(Schema::OneOf(union))) => {
                let union = union.clone();
                if let Some(union) = union_of_wholes(schemas, union) {
                    schemas.insert(name, RefOr::T(union.into()));
                }
            }
            _ => {}
        }
    }
}

/// Each variant's own object gets the `type` that tells it apart, and the union
/// names them.
fn union_of_wholes(schemas: &mut Schemas, mut union: OneOf) -> Option<OneOf> {
    let variant = |item: &RefOr<Schema>| match item {
        RefOr::T(Schema::AllOf(parts)) => whole(schemas, &parts.items),
        _ => None,
    };
    let variants = union.items.iter().map(variant).collect::<Option<Vec<_>>>()?;
    let mut mapping = Vec::new();
    union.items.clear();
    for (name, object) in variants {
        let reference = Ref::from_schema_name(&name);
        mapping.push((kind(&object)?, reference.ref_location.clone()));
        union.items.push(reference.into());
        schemas.insert(name, RefOr::T(object.into()));
    }
    union.discriminator = Some(Discriminator::with_mapping("type", mapping));
    Some(union)
}

/// The named part with the fields of the other, if it takes no others.
fn whole(schemas: &Schemas, parts: &[RefOr<Schema>]) -> Option<(String, Object)> {
    let [RefOr::Ref(named), RefOr::T(Schema::Object(added))] = parts else {
        return None;
    };
    let name = named.ref_location.rsplit('/').next()?;
    let RefOr::T(Schema::Object(closed)) = schemas.get(name)? else {
        return None;
    };
    if !matches!(
        closed.additional_properties.as_deref(),
        Some(AdditionalProperties::FreeForm(false))
    ) {
        return None;
    }
    let mut whole = closed.clone();
    whole.properties.extend(added.properties.clone());
    whole.required.extend(added.required.iter().cloned());
    Some((name.to_owned(), whole))
}

/// The one value of the object's `type`.
fn kind(object: &Object) -> Option<String> {
    let Some(RefOr::T(Schema::Object(kind))) = object.properties.get("type") else {
        return None;
    };
    kind.enum_values.as_ref()?.first()?.as_str().map(str::to_owned)
}

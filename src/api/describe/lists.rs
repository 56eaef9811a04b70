//! Lists name what they hold. The derive writes the schema of an element into
//! each list once more; generators would make a second type of it.

use std::collections::BTreeMap;

use utoipa::openapi::schema::Object;
use utoipa::openapi::{Ref, RefOr, Schema};

type Schemas = BTreeMap<String, RefOr<Schema>>;

/// How the schemas of lists begin; what they are lists of follows.
const LISTS: [&str; 2] = ["Page_", "Listing_"];

/// Puts a reference wherever a list holds what has a schema of its own.
pub(super) fn by_name(schemas: &mut Schemas) {
    let names: Vec<String> = schemas.keys().cloned().collect();
    for name in &names {
        let element = LISTS.iter().find_map(|list| name.strip_prefix(list));
        let Some(element) = element.filter(|element| names.iter().any(|name| name == element)) else {
            continue;
        };
        if let Some(RefOr::T(Schema::Object(list))) = schemas.get_mut(name) {
            refer(list, element);
        }
    }
}

fn refer(list: &mut Object, element: &str) {
    if let Some(RefOr::T(Schema::Array(data))) = list.properties.get_mut("data") {
        data.items = RefOr::<Schema>::Ref(Ref::from_schema_name(element)).into();
    }
}

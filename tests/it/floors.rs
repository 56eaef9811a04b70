//! The structure of the house, kept by tests.
//!
//! Every rule is a function from scanned source to findings, tried on a bad and
//! on a good sample before it is let loose on `src`, so that a rule which can no
//! longer fail is noticed. Rules about effects judge product code only; the
//! direction of imports holds for test code as well.

mod rules;
mod sample;
mod source;

use source::Source;

fn product() -> Vec<Source> {
    source::read("src")
}

/// Fails with one line for each finding.
fn none(what: &str, findings: &[String]) {
    assert!(findings.is_empty(), "{what}:\n  {}\n", findings.join("\n  "));
}

fn on_each(sources: &[Source], rule: fn(&Source) -> Vec<String>) -> Vec<String> {
    sources.iter().flat_map(rule).collect()
}

#[test]
fn no_module_names_a_higher_floor() {
    none(
        "imports against the floors",
        &on_each(&product(), rules::upward_imports),
    );
}

#[test]
fn every_module_stands_on_a_floor_and_every_floor_exists() {
    let sources = product();
    none("modules", &rules::modules_without_floor(&sources));
    for name in rules::floor_names() {
        assert!(
            sources.iter().any(|s| s.module() == name),
            "no module `{name}`, yet it has a floor"
        );
    }
}

#[test]
fn sql_is_written_in_the_store_only() {
    none("sqlx outside store", &on_each(&product(), rules::sql_outside_store));
}

#[test]
fn the_environment_is_read_in_config_only() {
    none(
        "environment reads outside config",
        &on_each(&product(), rules::environment_reads),
    );
}

#[test]
fn processes_are_started_in_environment_only() {
    none(
        "process starts outside environment",
        &on_each(&product(), rules::process_starts),
    );
}

#[test]
fn outbound_http_is_spoken_to_configured_addresses_only() {
    none(
        "HTTP clients outside provider and fetch",
        &on_each(&product(), rules::http_clients),
    );
}

#[test]
fn time_and_ids_come_from_base_only() {
    none(
        "wall clock or fresh ids outside base",
        &on_each(&product(), rules::clocks_and_ids),
    );
}

#[test]
fn nothing_mutable_is_static() {
    none("mutable statics", &on_each(&product(), rules::mutable_statics));
}

#[test]
fn every_file_says_what_lives_in_it() {
    let sources: Vec<Source> = product().into_iter().chain(source::read("tests")).collect();
    none(
        "files without a `//!` header",
        &on_each(&sources, rules::missing_header),
    );
}

#[test]
fn no_file_outgrows_five_hundred_lines() {
    none("files over the limit", &on_each(&product(), rules::too_long));
    none(
        "test files over the limit",
        &on_each(&source::read("tests"), rules::too_long),
    );
}

#[test]
fn every_query_on_a_tenants_table_names_the_tenant() {
    let sources = product();
    let tables = rules::tenant_tables(&rules::migration_text("sqlite"));
    assert!(tables.len() > 5, "few tables with a tenant_id: {tables:?}");
    let queries: usize = sources.iter().map(|s| rules::tenant_queries(s, &tables).len()).sum();
    assert!(queries > 10, "the check no longer recognises queries: {queries}");
    let findings: Vec<_> = sources
        .iter()
        .flat_map(|s| rules::queries_without_tenant(s, &tables))
        .collect();
    none("queries that could reach another tenant's rows", &findings);
}

#[test]
fn every_query_on_a_tenants_table_stands_in_a_function_with_a_scope() {
    let tables = rules::tenant_tables(&rules::migration_text("sqlite"));
    let findings: Vec<_> = product()
        .iter()
        .flat_map(|s| rules::queries_without_scope(s, &tables))
        .collect();
    none("functions without a scope outside `across_tenants`", &findings);
}

/// The page that everybody reads first names nothing that is not there.
#[test]
fn the_architecture_page_names_only_what_exists() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let named = regex::Regex::new(r"`((?:tests|src|docs|scripts|migrations|openapi)/[\w/.-]+)`").unwrap();
    let names: Vec<&str> = named
        .captures_iter(&page)
        .map(|found| found.get(1).unwrap().as_str())
        .collect();
    assert!(10 < names.len(), "the page names its tests");
    let missing: Vec<&str> = names.into_iter().filter(|name| !root.join(name).exists()).collect();
    assert!(
        missing.is_empty(),
        "ARCHITECTURE.md names what is not there: {missing:?}"
    );
}

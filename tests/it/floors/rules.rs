//! The rules of the house as functions from source to findings.
//!
//! Text and patterns, no type information: a rule may be fooled on purpose, it
//! is there for the honest mistake. `sample.rs` shows each one failing.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use regex::Regex;

use super::source::{Source, closing_brace};

/// Bottom up. What is not listed has no floor, and that is a finding.
const FLOORS: [&[&str]; 10] = [
    &["base"],
    &["config", "model", "guard"],
    &["environment", "provider", "store"],
    &["live", "tool"],
    &["turn"],
    &["schedule"],
    &["app"],
    &["api"],
    &["cli"],
    &["main"],
];

/// Imports on one floor that are allowed: who may use whom. Never both ways.
const NEIGHBOURS: [(&str, &str); 4] = [
    ("model", "guard"),
    ("config", "model"),
    ("config", "guard"),
    ("tool", "live"),
];

const MAX_LINES: usize = 500;

pub(super) fn floor_names() -> impl Iterator<Item = &'static str> {
    FLOORS.into_iter().flatten().copied()
}

fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|names| names.contains(&module))
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern")
}

/// Findings for every match of `text` in product code outside `home`.
fn outside(source: &Source, home: &str, text: &str) -> Vec<String> {
    if source.module() == home {
        return Vec::new();
    }
    pattern(text)
        .find_iter(&source.product)
        .map(|hit| {
            format!(
                "{}: {}",
                source.at(hit.start()),
                hit.as_str().split_whitespace().collect::<String>()
            )
        })
        .collect()
}

pub(super) fn modules_without_floor(sources: &[Source]) -> Vec<String> {
    let names: BTreeSet<&str> = sources.iter().map(Source::module).filter(|m| *m != "lib").collect();
    names
        .into_iter()
        .filter(|m| floor(m).is_none())
        .map(|m| format!("`{m}` is on no floor"))
        .collect()
}

pub(super) fn upward_imports(source: &Source) -> Vec<String> {
    let own = source.module();
    // The list of modules names all of them; that is what it is for.
    let Some(own_floor) = floor(own) else { return Vec::new() };
    named_modules(source)
        .into_iter()
        .filter(|(_, other)| {
            let below = floor(other).is_some_and(|other_floor| other_floor < own_floor);
            let beside = NEIGHBOURS.contains(&(own, other.as_str()));
            floor(other).is_some() && other != own && !below && !beside
        })
        .map(|(offset, other)| format!("{}: `{own}` names `{other}`", source.at(offset)))
        .collect()
}

/// Every module of the crate's root that the code names, and where.
fn named_modules(source: &Source) -> Vec<(usize, String)> {
    let mut named = Vec::new();
    for hit in pattern(r"\b(?:crate|hermes_server)\s*::\s*(\w+|\{)").captures_iter(&source.code) {
        let word = hit.get(1).expect("a group");
        if word.as_str() == "{" {
            let end = closing_brace(&source.code, word.start());
            named.extend(heads_of_group(source, word.end()..end - 1));
        } else {
            named.push((word.start(), word.as_str().to_owned()));
        }
    }
    // `super` as often as the file is deep reaches the root as well.
    for hit in pattern(r"\b((?:super\s*::\s*)+)(\w+)").captures_iter(&source.code) {
        let word = hit.get(2).expect("a group");
        if hit[1].matches("super").count() == source.depth() && !has_child(source, word.as_str()) {
            named.push((word.start(), word.as_str().to_owned()));
        }
    }
    named
}

/// Inside an inline module one `super` more is needed, so the count alone may
/// point at a child of this file instead of at the root.
fn has_child(source: &Source, name: &str) -> bool {
    pattern(&format!(r"\bmod\s+{name}\b")).is_match(&source.code)
}

/// The first words of the members of `{a::b, c::{d, e}}`.
fn heads_of_group(source: &Source, inside: Range<usize>) -> Vec<(usize, String)> {
    let (mut depth, mut at_head, mut heads) = (0_usize, true, Vec::new());
    for word in pattern(r"\w+|[{},]").find_iter(&source.code[inside.clone()]) {
        match word.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," => at_head = depth == 0,
            name if at_head && depth == 0 => {
                heads.push((inside.start + word.start(), name.to_owned()));
                at_head = false;
            }
            _ => {}
        }
    }
    heads
}

pub(super) fn sql_outside_store(source: &Source) -> Vec<String> {
    outside(source, "store", r"\bsqlx\b")
}

pub(super) fn environment_reads(source: &Source) -> Vec<String> {
    outside(
        source,
        "config",
        r"\benv\s*::\s*(?:\{[^}]*\b)?(?:vars?|vars?_os|set_var|remove_var)\b|#\[arg\((?:[^\]]*,\s*)?env\b[^\]]*\]",
    )
}

pub(super) fn process_starts(source: &Source) -> Vec<String> {
    outside(
        source,
        "environment",
        r"\bprocess\s*::\s*(?:\{[^}]*\b)?Command\b|\btokio\s*::\s*process\b|\b(?:v?fork|execv\w*|fexecve|posix_spawnp?)\s*\(",
    )
}

pub(super) fn http_clients(source: &Source) -> Vec<String> {
    // The terminal's client talks to a server that the person at it names.
    if source.path == "cli/chat/client.rs" {
        return Vec::new();
    }
    outside(
        source,
        "provider",
        r"\breqwest\b|\bhyper_util\s*::\s*client\b|\bhyper\s*::\s*client\b",
    )
}

pub(super) fn clocks_and_ids(source: &Source) -> Vec<String> {
    outside(
        source,
        "base",
        r"\bSystemTime\s*::\s*now\b|\b(?:Utc|Local)\s*::\s*now\b|\bnow_v[67]\b|\b(?:Uuid\s*::\s*)new_v[1467]\b",
    )
}

pub(super) fn mutable_statics(source: &Source) -> Vec<String> {
    let item = pattern(r"(?:^|[^'\w])static\s+(mut\s+)?(\w+)\s*:\s*([^;=]+)|\b(thread_local)!");
    let changes =
        pattern(r"\b(?:\w*Mutex|\w*RwLock|Atomic\w+|\w*Cell|Semaphore|Notify|DashMap|ArcSwap\w*|Sender|Receiver)\b");
    // Filled once with what never changes.
    let compiled =
        pattern(r"\bOnceLock\s*<\s*(?:\[\s*|Vec\s*<\s*)?(?:regex\s*::\s*(?:bytes\s*::\s*)?)?Regex(?:Set)?\b");
    item.captures_iter(&source.product)
        .filter(|hit| {
            let kind = hit.get(3).map_or("", |k| k.as_str());
            let filled_late = kind.contains("OnceLock") && !compiled.is_match(kind);
            hit.get(1).is_some() || hit.get(4).is_some() || changes.is_match(kind) || filled_late
        })
        .map(|hit| format!("{}: {}", source.at(hit.get(0).map_or(0, |m| m.end())), hit[0].trim()))
        .collect()
}

pub(super) fn missing_header(source: &Source) -> Vec<String> {
    if source.text.starts_with("//! ") {
        Vec::new()
    } else {
        vec![source.path.clone()]
    }
}

pub(super) fn too_long(source: &Source) -> Vec<String> {
    let lines = source.text.lines().count();
    if lines > MAX_LINES {
        vec![format!("{}: {lines} lines", source.path)]
    } else {
        Vec::new()
    }
}

/// All migrations of one database, one after the other.
pub(super) fn migration_text(database: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(database);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("`{}`: {e}", folder.display()))
        .map(|entry| entry.expect("a readable folder entry").path())
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| std::fs::read_to_string(file).expect("migrations are UTF-8"))
        .collect()
}

/// The tables that have a column `tenant_id`.
pub(super) fn tenant_tables(migrations: &str) -> BTreeSet<String> {
    let plain = pattern(r"--[^\n]*").replace_all(migrations, "");
    let create = pattern(r"(?is)\bcreate\s+table\s+(?:if\s+not\s+exists\s+)?(\w+)\s*\(([^;]*);");
    create
        .captures_iter(&plain)
        .filter(|table| pattern(r"(?i)\btenant_id\b").is_match(&table[2]))
        .map(|table| table[1].to_lowercase())
        .collect()
}

/// The string literals of product code in `store` that read or write one of `tables`.
pub(super) fn tenant_queries(source: &Source, tables: &BTreeSet<String>) -> Vec<Range<usize>> {
    if source.module() != "store" {
        return Vec::new();
    }
    let table = pattern(r"(?i)\b(?:from|into|update|join)\s+(\w+)");
    let is_query = |string: &Range<usize>| {
        let is_product = source.product.as_bytes()[string.start - 1] == b'"';
        let mut named = table.captures_iter(&source.text[string.clone()]);
        is_product && named.any(|hit| tables.contains(&hit[1].to_lowercase()))
    };
    source.strings.iter().filter(|s| is_query(s)).cloned().collect()
}

pub(super) fn queries_without_tenant(source: &Source, tables: &BTreeSet<String>) -> Vec<String> {
    if source.path.contains("across_tenants") {
        return Vec::new();
    }
    tenant_queries(source, tables)
        .into_iter()
        .filter(|string| !source.text[string.clone()].contains("tenant_id"))
        .map(|string| format!("{}: {}", source.at(string.start), first_words(&source.text[string])))
        .collect()
}

pub(super) fn queries_without_scope(source: &Source, tables: &BTreeSet<String>) -> Vec<String> {
    if source.path.contains("across_tenants") {
        return Vec::new();
    }
    let scoped = scoped_code(source);
    let functions = functions(source);
    tenant_queries(source, tables)
        .into_iter()
        // A text that stands in no function is judged where it is used.
        .filter(|string| functions.iter().any(|f| f.contains(&string.start)))
        .filter(|string| !scoped.iter().any(|span| span.contains(&string.start)))
        .map(|string| format!("{}: {}", source.at(string.start), first_words(&source.text[string])))
        .collect()
}

/// Implementations of a scope and of its rows (which hold its tenant), and functions whose code (their SQL apart) has a
/// scope, a tenant's id or a record that carries one.
fn scoped_code(source: &Source) -> Vec<Range<usize>> {
    let names_tenant = pattern(r"\b(?:Scope|Rows|TenantId|tenant_id)\b");
    let implementation = pattern(r"(?m)^[ \t]*impl\b[^{;]*\{");
    let mut spans: Vec<_> = implementation
        .find_iter(&source.product)
        .filter(|head| names_tenant.is_match(head.as_str()))
        .map(|head| head.start()..closing_brace(&source.product, head.end() - 1))
        .collect();
    spans.extend(
        functions(source)
            .into_iter()
            .filter(|f| names_tenant.is_match(&source.product[f.clone()])),
    );
    spans
}

/// Functions with a body, from `fn` to the closing brace.
fn functions(source: &Source) -> Vec<Range<usize>> {
    pattern(r"\bfn\s+\w+(?:\[[^\]]*\]|[^{;])*\{")
        .find_iter(&source.product)
        .map(|head| head.start()..closing_brace(&source.product, head.end() - 1))
        .collect()
}

fn first_words(sql: &str) -> String {
    sql.split_whitespace().take(8).collect::<Vec<_>>().join(" ")
}

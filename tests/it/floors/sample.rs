//! Each rule on a sample it must refuse and on one it must accept.

use std::collections::BTreeSet;

use super::rules;
use super::source::Source;

type Rule = fn(&Source) -> Vec<String>;

#[track_caller]
fn refuses(rule: Rule, path: &str, text: &str) {
    assert!(
        !rule(&Source::new(path, text)).is_empty(),
        "`{path}` was accepted: {text}"
    );
}

#[track_caller]
fn accepts(rule: Rule, path: &str, text: &str) {
    let findings = rule(&Source::new(path, text));
    assert!(findings.is_empty(), "`{path}` was refused: {findings:?}: {text}");
}

#[test]
fn an_upward_import_is_refused_in_every_spelling() {
    let rule = rules::upward_imports;
    refuses(rule, "store/keys.rs", "use crate::turn::Turn;");
    refuses(rule, "store/keys.rs", "use crate::{base::Id, turn};");
    refuses(
        rule,
        "store/keys.rs",
        "use crate::{base::{Id, Clock}, model,\n  api::Failure};",
    );
    refuses(rule, "store/keys.rs", "fn a() { crate::live::ring() }");
    refuses(rule, "store/keys.rs", "use super::super::turn::Turn;");
    refuses(rule, "store/mod.rs", "use super::turn::Turn;");
    refuses(rule, "app.rs", "use super::api::router;");
    refuses(
        rule,
        "store/keys.rs",
        "#[cfg(test)] mod tests { use crate::turn::Turn; }",
    );
    refuses(rule, "store/keys.rs", "use crate::provider::Model;");
    refuses(rule, "live/mod.rs", "use crate::tool::Tool;");
    refuses(rule, "guard/mod.rs", "use crate::model::Verdict;");
    refuses(rule, "model/mod.rs", "use crate::config::Config;");
    refuses(rule, "base/id.rs", "use crate::model::Turn;");
}

#[test]
fn imports_from_below_and_from_allowed_neighbours_are_accepted() {
    let rule = rules::upward_imports;
    accepts(
        rule,
        "store/keys.rs",
        "use crate::base::{Id, turn};\nuse crate::model::Key;\nuse crate::store::Scope;",
    );
    accepts(
        rule,
        "tool/file/read.rs",
        "use crate::live::Report; use super::super::schema;",
    );
    accepts(
        rule,
        "config/mod.rs",
        "use crate::model::Policy; mod guard; fn a(g: super::config::A) {}",
    );
    accepts(
        rule,
        "guard/mod.rs",
        "// once crate::turn asked\nconst A: &str = \"crate::turn\"; use crate::base::Id;",
    );
    accepts(
        rule,
        "config/mod.rs",
        "mod store; #[cfg(test)] mod tests { use super::store::Section; }",
    );
    accepts(rule, "model/approval.rs", "use crate::guard::Finding;");
    accepts(rule, "main.rs", "fn main() { hermes_server::cli::run() }");
    accepts(rule, "lib.rs", "pub mod api; pub mod base;");
}

#[test]
fn a_module_on_no_floor_is_refused() {
    let sources = [
        Source::new("helpers/mod.rs", ""),
        Source::new("base/mod.rs", ""),
        Source::new("lib.rs", ""),
    ];
    assert_eq!(rules::modules_without_floor(&sources), ["`helpers` is on no floor"]);
}

#[test]
fn effects_outside_their_module_are_refused() {
    refuses(rules::sql_outside_store, "turn/run.rs", "sqlx::query(\"select 1\")");
    accepts(rules::sql_outside_store, "store/keys.rs", "sqlx::query(\"select 1\")");
    accepts(
        rules::sql_outside_store,
        "turn/run.rs",
        "// sqlx::query\n#[cfg(test)] mod tests { fn a() { sqlx::query(); } }",
    );

    let environment = rules::environment_reads;
    refuses(environment, "tool/mod.rs", "let a = std::env::var(\"HOME\");");
    refuses(environment, "tool/mod.rs", "use std::env::{self, var_os};");
    refuses(environment, "tool/mod.rs", "for a in env::vars_os() {}");
    refuses(
        environment,
        "cli/serve.rs",
        "#[arg(long, env = \"HERMES_LISTEN\")]\nlisten: String,",
    );
    accepts(environment, "config/mod.rs", "let a = std::env::var(\"HOME\");");
    accepts(
        environment,
        "cli/serve.rs",
        "let a = std::env::args(); let b = env!(\"CARGO_PKG_VERSION\"); env::current_dir();",
    );

    let processes = rules::process_starts;
    refuses(
        processes,
        "tool/terminal.rs",
        "let a = std::process::Command::new(\"ls\");",
    );
    refuses(processes, "tool/terminal.rs", "use std::process::{Command, Stdio};");
    refuses(processes, "cli/mod.rs", "use tokio::process::Command;");
    refuses(processes, "guard/mod.rs", "libc::execve(a, b, c)");
    accepts(
        processes,
        "environment/local.rs",
        "let a = std::process::Command::new(\"ls\");",
    );
    accepts(
        processes,
        "cli/mod.rs",
        "fn a() -> std::process::ExitCode { clap::Command::new(\"a\"); std::process::id(); b }",
    );

    refuses(rules::http_clients, "tool/web.rs", "let c = reqwest::Client::new();");
    refuses(
        rules::http_clients,
        "cli/mod.rs",
        "use hyper_util::client::legacy::Client;",
    );
    accepts(
        rules::http_clients,
        "provider/openai.rs",
        "let c = reqwest::Client::new();",
    );
    accepts(rules::http_clients, "fetch/mod.rs", "let c = reqwest::Client::new();");
    accepts(
        rules::http_clients,
        "api/mod.rs",
        "use hyper_util::server::conn::auto::Builder;",
    );

    let clocks = rules::clocks_and_ids;
    refuses(clocks, "turn/run.rs", "let a = std::time::SystemTime::now();");
    refuses(clocks, "turn/run.rs", "let a = chrono::Utc::now();");
    refuses(clocks, "turn/run.rs", "let a = Uuid::now_v7();");
    accepts(clocks, "base/clock.rs", "let a = std::time::SystemTime::now();");
    accepts(
        clocks,
        "turn/run.rs",
        "let a = tokio::time::Instant::now(); clock.now();",
    );
}

#[test]
fn a_static_that_can_change_is_refused() {
    let rule = rules::mutable_statics;
    for text in [
        "static mut A: u8 = 0;",
        "pub static A: Mutex<u8> = Mutex::new(0);",
        "static A: std::sync::atomic::AtomicU64 = AtomicU64::new(0);",
        "static A: LazyLock<RwLock<Vec<u8>>> = LazyLock::new(a);",
        "static A: OnceLock<String> = OnceLock::new();",
        "fn a() { static B: tokio::sync::OnceCell<u8> = OnceCell::const_new(); }",
        "thread_local! { static A: u8 = 0; }",
    ] {
        refuses(rule, "turn/run.rs", text);
    }
    for text in [
        "static A: &[&str] = &[\"Mutex\"];",
        "static A: LazyLock<Regex> = LazyLock::new(a);",
        "static A: OnceLock<regex::RegexSet> = OnceLock::new();",
        "static A: OnceLock<Vec<Regex>> = OnceLock::new();",
        "#[global_allocator] static A: mimalloc::MiMalloc = mimalloc::MiMalloc;",
        "fn a(b: &'static Mutex<u8>) {}",
    ] {
        accepts(rule, "guard/rules.rs", text);
    }
}

#[test]
fn a_file_without_header_or_over_the_limit_is_refused() {
    refuses(rules::missing_header, "turn/run.rs", "use crate::base::Id;\n//! late");
    accepts(rules::missing_header, "turn/run.rs", "//! Runs a turn.\n");
    refuses(rules::too_long, "turn/run.rs", &"\n".repeat(501));
    accepts(rules::too_long, "turn/run.rs", &"\n".repeat(500));
}

const MIGRATION: &str = "create table turn (\n  tenant_id text not null, -- whose; always\n  turn_id text not null\n);\n\
     create table if not exists process (process_id text); -- no tenant_id here\n";

fn tables() -> BTreeSet<String> {
    rules::tenant_tables(MIGRATION)
}

#[test]
fn tenant_tables_are_those_with_the_column() {
    assert_eq!(tables().into_iter().collect::<Vec<_>>(), ["turn"]);
}

#[test]
fn a_query_that_forgets_the_tenant_is_refused() {
    let judge = |path: &str, sql: &str| {
        rules::queries_without_tenant(&Source::new(path, &format!("fn a() {{ q(r#\"{sql}\"#) }}")), &tables()).len()
    };
    assert_eq!(judge("store/turns.rs", "select * from turn where turn_id = $1"), 1);
    assert_eq!(judge("store/turns.rs", "update Turn\n set step = 1"), 1);
    assert_eq!(judge("store/turns.rs", "select * from turn where tenant_id = $1"), 0);
    assert_eq!(judge("store/turns.rs", "select * from process"), 0);
    assert_eq!(
        judge("store/across_tenants.rs", "select * from turn where turn_id = $1"),
        0
    );
}

#[test]
fn a_query_in_a_function_without_a_scope_is_refused() {
    let query = "{ q(\"select * from turn where tenant_id = $1\") }";
    let insert = "{ q(\"insert into turn (tenant_id) values ($1)\", &[turn.tenant_id]) }";
    let cases = [
        (1, "turns", format!("impl Store {{ fn a(&self) {query} }}")),
        (1, "turns", format!("fn a(tenant: &str) {query}")),
        (1, "turns", format!("fn a(hash: [u8; 32]) {query}")),
        (0, "turns", format!("impl<'a> Scope<'a> {{ fn a(&self) {query} }}")),
        (0, "turns", format!("impl Rows<'_> {{ fn a(&mut self) {query} }}")),
        (0, "turns", format!("fn a(scope: &Scope) {query}")),
        (0, "turns", format!("fn a(tenant: &TenantId) {query}")),
        (0, "turns", format!("fn a(turn: &Turn) {insert}")),
        (
            0,
            "turns",
            "const A: &str = \"select * from turn where tenant_id = $1\";".to_owned(),
        ),
        (0, "across_tenants", format!("impl Store {{ fn a(&self) {query} }}")),
    ];
    for (expected, file, text) in cases {
        let source = Source::new(&format!("store/{file}.rs"), &text);
        assert_eq!(
            rules::queries_without_scope(&source, &tables()).len(),
            expected,
            "{text}"
        );
    }
}

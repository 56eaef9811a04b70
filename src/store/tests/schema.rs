//! The two sets of migrations are twins, and what was applied is checked.

use std::collections::BTreeSet;

use sqlx::Connection;

use super::*;

fn files(folder: &str) -> BTreeSet<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("migrations")
        .join(folder);
    std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn the_migrations_of_both_databases_have_the_same_names() {
    assert_eq!(files("sqlite"), files("postgres"));
    assert!(!files("sqlite").is_empty());
}

#[test]
fn the_built_in_migrations_are_the_files_on_disk() {
    for (folder, built_in) in [
        ("sqlite", &super::super::sqlite::MIGRATIONS),
        ("postgres", &super::super::postgres::MIGRATIONS),
    ] {
        let names: BTreeSet<String> = built_in
            .iter()
            .map(|one| format!("{:04}_{}.sql", one.version, one.description.replace(' ', "_")))
            .collect();
        assert_eq!(names, files(folder));
    }
}

/// `table.column type nullability` of every table of the product. The index of
/// trigrams is SQLite's own and no table of the other.
async fn columns(store: &Store) -> BTreeSet<String> {
    let sql = match store.kind() {
        Kind::Sqlite => {
            "select m.name || '.' || c.name || case c.type when 'INTEGER' then ' bigint' else ' ' || lower(c.type) end \
             || case when c.\"notnull\" or c.pk > 0 then ' not null' else '' end as line \
             from pragma_table_list m join pragma_table_info(m.name) c \
             where m.schema = 'main' and m.type = 'table' and m.name not like 'sqlite\\_%' escape '\\' \
             and m.name not like '\\_sqlx%' escape '\\'"
        }
        Kind::Postgres => {
            "select table_name || '.' || column_name || ' ' || data_type \
             || case is_nullable when 'NO' then ' not null' else '' end as line \
             from information_schema.columns where table_schema = current_schema() and table_name not like '\\_sqlx%'"
        }
    };
    let read = store.read(Wall::Across, move |conn| {
        Box::pin(async move {
            let rows = conn.rows(sql, &[]).await?;
            rows.iter().map(|row| row.text("line")).collect()
        })
    });
    read.await.unwrap()
}

#[tokio::test]
async fn both_databases_have_the_same_tables_and_columns() {
    let sqlite = Bench::sqlite(None).await;
    let of_sqlite = columns(&sqlite.store).await;
    assert!(of_sqlite.contains("tenant.created_at bigint not null"), "{of_sqlite:?}");
    on_postgres(async |bench| assert_eq!(columns(&bench.store).await, of_sqlite)).await;
}

/// A statement on the database file, with the store closed.
async fn tampered(bench: &Bench, sql: &'static str) {
    bench.store.close().await;
    match &bench.options.target {
        Target::Sqlite { path } => {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
            let mut raw = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
            sqlx::query(sql).execute(&mut raw).await.unwrap();
            raw.close().await.unwrap();
        }
        Target::Postgres { .. } => {
            sqlx::query(sql).execute(&mut bench.raw_postgres().await).await.unwrap();
        }
    }
}

async fn refusal(bench: &Bench) -> String {
    match Store::open(bench.options.clone()).await {
        Err(StoreError::Migration(message)) => message,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("opened"),
    }
}

#[tokio::test]
async fn a_migration_that_changed_after_it_was_applied_stops_the_start() {
    on_both(async |bench| {
        tampered(bench, "update _sqlx_migrations set checksum = 'x' where version = 1").await;
        let message = refusal(bench).await;
        assert!(message.contains("migration 1 was applied in another form"), "{message}");
    })
    .await;
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_left_alone() {
    on_both(async |bench| {
        tampered(
            bench,
            "insert into _sqlx_migrations (version, description, success, checksum, execution_time) values (9000, 'later', true, 'x', 0)",
        )
        .await;
        let message = refusal(bench).await;
        assert!(message.contains("migration 9000") && message.contains("newer version"), "{message}");
    })
    .await;
}

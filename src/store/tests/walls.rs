//! The second wall: on Postgres a wrong query shows nobody else's rows.

use sqlx::Row as _;

use super::*;

/// Two tenants, each with one key.
async fn two_tenants(store: &Store) {
    for name in ["ours", "theirs"] {
        let work = store.write(Wall::Tenant(tenant_id(name)), "test", move |conn| {
            Box::pin(async move {
                insert(conn, name).await?;
                let sql = "insert into api_key (tenant_id, key_id, user_id, name, hash, scopes, created_at) \
                           values ($1, $2, 'user', $3, $3, '[]', 0)";
                conn.execute(sql, &[tenant_id(name).into(), Arg::Text(name), Arg::Text(name)])
                    .await
            })
        });
        work.await.unwrap();
    }
}

/// What a query that forgot its tenant sees from behind `wall`.
async fn seen(store: &Store, wall: Wall) -> Vec<String> {
    let read = store.read(wall, |conn| {
        Box::pin(async move {
            let rows = conn.rows("select name from api_key order by name", &[]).await?;
            rows.iter().map(|row| row.text("name")).collect()
        })
    });
    read.await.unwrap()
}

async fn checked(store: &Store) {
    two_tenants(store).await;
    let ours = Wall::Tenant(tenant_id("ours"));
    assert_eq!(seen(store, ours).await, ["ours"]);
    assert_eq!(seen(store, Wall::Tenant(tenant_id("stranger"))).await, [""; 0]);
    assert_eq!(seen(store, Wall::Across).await, ["ours", "theirs"]);

    let robbed = store.write(ours, "test", |conn| {
        Box::pin(async move {
            conn.execute("update api_key set name = 'mine' where name = 'theirs'", &[])
                .await
        })
    });
    assert_eq!(robbed.await.unwrap(), 0);
    let planted = store.write(ours, "test", |conn| {
        Box::pin(async move {
            let sql = "update api_key set tenant_id = $1 where name = 'ours'";
            conn.execute(sql, &[tenant_id("theirs").into()]).await
        })
    });
    assert!(matches!(planted.await, Err(StoreError::Database(_))));
    assert_eq!(seen(store, Wall::Across).await, ["ours", "theirs"]);
}

#[tokio::test]
async fn a_wrong_where_clause_shows_no_other_tenants_rows() {
    on_postgres(async |bench| checked(&bench.store).await).await;
}

/// The user of the tests is usually a superuser; a server's should not be.
#[tokio::test]
async fn the_walls_bind_an_ordinary_owner_without_the_role_too() {
    on_postgres(async |bench| {
        bench.store.close().await;
        let Target::Postgres { url, .. } = &bench.options.target else {
            panic!("not Postgres")
        };
        let mut url: url::Url = url.expose().parse().unwrap();
        let name = url.path().trim_start_matches('/').to_owned();
        let user = format!("{name}_owner");
        let mut raw = bench.raw_postgres().await;
        let sql = format!(
            "drop schema public cascade; create role {user} login password 'p'; \
             create schema public authorization {user}; grant all on database {name} to {user}"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut raw).await.unwrap();
        url.set_username(&user).unwrap();
        url.set_password(Some("p")).unwrap();
        let target = Target::Postgres {
            url: crate::base::Secret::new(url.as_str()),
            max_connections: 2,
        };
        let store = Store::open(crate::store::StoreOptions {
            target,
            ..bench.options.clone()
        })
        .await
        .unwrap();
        checked(&store).await;
        store.close().await;
        let sql = format!("drop owned by {user}; drop role {user}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut raw).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn every_table_with_a_tenant_stands_behind_the_wall() {
    on_postgres(async |bench| {
        let mut raw = bench.raw_postgres().await;
        let sql = "select c.relname, c.relrowsecurity and c.relforcerowsecurity as walled, \
                   (select count(*) from pg_policies p where p.tablename = c.relname) as policies, \
                   has_table_privilege('hermes_app', c.oid, 'select, insert, update, delete') as granted \
                   from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id' \
                   where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace";
        let rows = sqlx::query(sql).fetch_all(&mut raw).await.unwrap();
        assert!(9 <= rows.len());
        for row in rows {
            let table: String = row.get("relname");
            assert!(
                row.get::<bool, _>("walled"),
                "`{table}`: select raise_wall('{table}') is missing"
            );
            assert_eq!(row.get::<i64, _>("policies"), 2, "`{table}`");
            assert!(row.get::<bool, _>("granted"), "`{table}`");
        }
    })
    .await;
}

#[test]
fn only_files_named_so_look_across_tenants() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if std::fs::read_to_string(&path).unwrap().contains("Wall::Across") {
                found.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    // The list of processes belongs to no tenant; Postgres has to be told of it.
    let known = ["across_tenants", "/store/process.rs", "/store/postgres.rs", "/tests"];
    found.retain(|path| !known.iter().any(|known| path.contains(known)));
    assert_eq!(
        found, [""; 0],
        "`Wall::Across` belongs into a file with `across_tenants` in its name"
    );
}

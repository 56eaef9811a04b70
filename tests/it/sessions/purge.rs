//! A deleted session leaves nothing: no row in any table and no file.

use hermes_server::model::id::SessionId;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, Row};

use super::{say, session, text};
use crate::harness::client::Client;
use crate::harness::http::Answer;
use crate::harness::script::{guarded, mark};
use crate::harness::{PATIENCE, Place, on_both};

/// Tables that hold the id or the secret anywhere, by reading all of them.
async fn traces(place: &Place, id: &str) -> Vec<String> {
    let texts = match place.postgres_url() {
        Some(url) => of_postgres(url).await,
        None => of_sqlite(place).await,
    };
    // What calls cost and who decided what is kept, with ids that lead nowhere any
    // more; of what was said nothing.
    let kept = |row: &(String, String)| {
        matches!(row.0.as_str(), "usage" | "audit_entry") && !row.1.to_lowercase().contains("xylophone")
    };
    let tells = |row: &&(String, String)| !kept(row) && tells_of(&row.1, id);
    texts.iter().filter(tells).map(|(table, _)| table.clone()).collect()
}

fn tells_of(text: &str, id: &str) -> bool {
    text.contains(id) || text.to_lowercase().contains("xylophone")
}

async fn of_postgres(url: &str) -> Vec<(String, String)> {
    let mut link = sqlx::PgConnection::connect(url).await.unwrap();
    let tables = sqlx::query("select tablename from pg_tables where schemaname = current_schema()")
        .fetch_all(&mut link)
        .await
        .unwrap();
    let mut texts = Vec::new();
    for table in tables {
        let table: String = table.get(0);
        let sql = format!("select row_to_json(t)::text from {table} t");
        let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut link).await.unwrap();
        texts.extend(rows.iter().map(|row| (table.clone(), row.get(0))));
    }
    texts
}

async fn of_sqlite(place: &Place) -> Vec<(String, String)> {
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(place.config.server.data_dir.join("hermes.db"))
        .read_only(true);
    let mut link = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    let sql = "select m.name, group_concat('quote(\"' || c.name || '\")', ' || ') as columns \
               from sqlite_schema m join pragma_table_info(m.name) c \
               where m.type = 'table' and m.name <> 'search_trigram' group by m.name";
    let tables = sqlx::query(sql).fetch_all(&mut link).await.unwrap();
    let mut texts = Vec::new();
    for table in tables {
        let (name, columns): (String, String) = (table.get(0), table.get(1));
        let sql = format!("select {columns} from \"{name}\"");
        let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut link).await.unwrap();
        texts.extend(rows.iter().map(|row| (name.clone(), row.get(0))));
    }
    // The index holds trigrams: asked by its own language.
    let sql = "select count(*) from search_trigram where search_trigram match '\"xyl\" AND \"pho\"'";
    let left: i64 = sqlx::query_scalar(sql).fetch_one(&mut link).await.unwrap();
    texts.extend((0 < left).then(|| ("search_trigram".to_owned(), "xylophone".to_owned())));
    texts
}

/// A session of which every table has a trace.
async fn eventful(client: &Client) -> String {
    let new = json!({"title": "xylophone", "external_id": "xylophone", "metadata": {"xylophone": 1}});
    let request = client.request(reqwest::Method::POST, "/v1/sessions");
    let made = request.header("Idempotency-Key", "k").json(&new).send().await.unwrap();
    let path = Answer::of(made).await.header("location");
    say(client, &path, &format!("{}\n/then\n/say xylophone", mark("xylophone"))).await;
    let waits = say(client, &path, &format!("{}\n/then\n{}", guarded("one"), mark("two"))).await;
    let approval = text(&waits["approvals"][0]["id"]);
    let decision = format!("/v1/approvals/{approval}/decision");
    client.post(&decision, &json!({"choice": "session"})).await.expect(200);
    path
}

#[test]
fn a_deleted_session_leaves_no_row_and_no_file() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = eventful(&owner).await;
        let id: SessionId = path.rsplit('/').next().unwrap().parse().unwrap();
        let workspace = web.server.workspace(id);
        owner
            .stream(&web, &format!("{path}/stream?after=0"))
            .await
            .until("turn.completed")
            .await;
        assert!(workspace.join("xylophone").exists());
        let mut before = traces(&place, &id.to_string()).await;
        before.dedup();
        for table in [
            "session",
            "turn",
            "message",
            "tool_call",
            "approval",
            "standing_grant",
            "event",
            "idempotency",
            "search_entry",
        ] {
            assert!(before.iter().any(|found| found == table), "{table}: {before:?}");
        }
        let other = session(&owner, &json!({"title": "stays"})).await;
        assert_eq!(owner.delete(&path).await.status, 204);
        let gone = async {
            while !traces(&place, &id.to_string()).await.is_empty() || workspace.exists() {
                tokio::task::yield_now().await;
            }
        };
        if tokio::time::timeout(PATIENCE, gone).await.is_err() {
            panic!("left behind: {:?}", traces(&place, &id.to_string()).await);
        }
        assert_eq!(owner.get(&other).await.expect(200)["title"], "stays");
        assert_eq!(super::list(&owner, "/v1/search?q=stays").await.len(), 1);
        web.stop().await;
    });
}

//! What was counted stays as it was counted.

use super::*;

#[tokio::test]
async fn no_model_call_that_was_counted_can_be_changed_or_deleted() {
    on_both(async |bench| {
        let store = &bench.store;
        let tenant = tenant_id("ours");
        let run = async |sql: &'static str, of_tenant: bool| {
            let done = store.write(Wall::Across, "test", move |conn| {
                Box::pin(async move {
                    let args: &[Arg<'_>] = &[tenant.into()];
                    conn.execute(sql, if of_tenant { args } else { &[] }).await
                })
            });
            done.await
        };
        let counted = "
            insert into usage (tenant_id, usage_id, session_id, turn_id, user_id, purpose, model, input_tokens,
                cached_input_tokens, output_tokens, reasoning_tokens, cost_nanos, day, at)
            values ($1, 'u', 's', 't', 'ada', 'turn', 'm', 1, 0, 1, 0, 5, '2026-01-01', 7)";
        assert_eq!(run(counted, true).await.unwrap(), 1);
        let mut statements = vec![
            "update usage set cost_nanos = 0",
            "update usage set at = at",
            "delete from usage",
        ];
        if store.kind() == Kind::Postgres {
            statements.push("truncate usage");
        }
        for sql in statements {
            assert!(run(sql, false).await.is_err(), "{sql}");
        }
    })
    .await;
}

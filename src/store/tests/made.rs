//! What calls leave beside the transcript: artifacts, and the calls of programs.

use super::children::record;
use super::*;
use crate::base::Timestamp;
use crate::model::artifact::{Artifact, ArtifactKind, NewArtifact};
use crate::model::call::{CallStatus, Effect, Execution};
use crate::model::id::{ArtifactId, CallId};
use crate::model::record::{CallRecord, Nested};

fn artifact(number: u128, path: Option<&str>) -> Artifact {
    Artifact {
        id: ArtifactId::from_bits(number),
        session_id: session(1),
        turn_id: Id::from_bits(5),
        tool_call_id: Id::from_bits(6),
        tool: "write_file".to_owned(),
        kind: match path {
            Some(_) => ArtifactKind::File,
            None => ArtifactKind::Result,
        },
        name: "a \"b\" é.txt".to_owned(),
        path: path.map(str::to_owned),
        media_type: "text/plain".to_owned(),
        size: 1 << 40,
        sha256: "00ff".to_owned(),
        created_at: Timestamp(i64::try_from(number).unwrap()),
    }
}

#[tokio::test]
async fn artifacts_are_listed_newest_first_and_seen_in_their_session_only() {
    on_both(async |bench| {
        let store = &bench.store;
        write(store, "ours").await.unwrap();
        write(store, "theirs").await.unwrap();
        let all = [artifact(1, None), artifact(2, Some("out/a b.txt")), artifact(3, None)];
        let new = [
            (all[0].clone(), Some("whole\u{0}\n".replace('\u{0}', ""))),
            (all[1].clone(), None),
            (all[2].clone(), Some(String::new())),
        ]
        .map(|(artifact, content)| NewArtifact { artifact, content });
        let scope = store.scope(tenant_id("ours"));
        let done = scope.write("test", move |mut rows| {
            Box::pin(async move {
                let of = record(1, None);
                rows.add_session(&of).await?;
                rows.add_artifacts(&of.record, &[]).await?;
                rows.add_artifacts(&of.record, &new).await?;
                let newest = rows.artifacts(session(1), None, 2).await?;
                let before = newest.last().map(|last| last.id);
                let rest = rows.artifacts(session(1), before, 2).await?;
                let elsewhere = rows.artifacts(session(2), None, 2).await?;
                let whole = rows.artifact(session(1), ArtifactId::from_bits(1)).await?;
                let empty = rows.artifact(session(1), ArtifactId::from_bits(3)).await?;
                let file = rows.artifact(session(1), ArtifactId::from_bits(2)).await?;
                let astray = rows.artifact(session(2), ArtifactId::from_bits(1)).await?;
                Ok((newest, rest, elsewhere, [whole, empty, file, astray]))
            })
        });
        let (newest, rest, elsewhere, [whole, empty, file, astray]) = done.await.unwrap();
        assert_eq!(newest, [all[2].clone(), all[1].clone()]);
        assert_eq!(rest, [all[0].clone()]);
        assert!(elsewhere.is_empty() && astray.is_none());
        assert_eq!(whole, Some((all[0].clone(), Some("whole\n".to_owned()))));
        assert_eq!(empty, Some((all[2].clone(), Some(String::new()))));
        assert_eq!(file, Some((all[1].clone(), None)));
        let theirs = store.scope(tenant_id("theirs"));
        let read = theirs.read(|mut rows| Box::pin(async move { rows.artifacts(session(1), None, 9).await }));
        assert_eq!(read.await.unwrap(), []);
    })
    .await;
}

fn call(number: u128, nested: Option<Nested>) -> CallRecord {
    CallRecord {
        call_id: CallId::from_bits(number),
        turn_id: Id::from_bits(5),
        message_id: Id::from_bits(7),
        batch_index: u32::try_from(number).unwrap(),
        position: 0,
        name: "terminal".to_owned(),
        provider_id: String::new(),
        arguments_raw: String::new(),
        arguments: serde_json::json!({"command": "echo \"é\""}),
        edited: None,
        effect: Effect::Write,
        execution: Execution::Server,
        segment: 0,
        parallel: false,
        status: CallStatus::Running,
        exit_code: None,
        created_at: Timestamp(1),
        started_at: Some(Timestamp(2)),
        finished_at: None,
        nested,
    }
}

#[tokio::test]
async fn calls_of_programs_are_kept_with_their_results_behind_the_program() {
    on_both(async |bench| {
        let store = &bench.store;
        write(store, "ours").await.unwrap();
        let parent = call(1, None);
        let made = |number| {
            let nested = Nested {
                parent: CallId::from_bits(1),
                result: None,
            };
            call(number, Some(nested))
        };
        let new = [made(3), made(2)];
        let ended = CallRecord {
            status: CallStatus::Failed,
            exit_code: Some(3),
            edited: Some(serde_json::json!({"command": "ls"})),
            finished_at: Some(Timestamp(9)),
            nested: Some(Nested {
                parent: CallId::from_bits(1),
                result: Some("{\"output\": \"\\n\"}".into()),
            }),
            ..made(2)
        };
        let (stored, changed, running) = (new.clone(), ended.clone(), parent.clone());
        let scope = store.scope(tenant_id("ours"));
        let done = scope.write("test", move |mut rows| {
            Box::pin(async move {
                let of = record(1, None);
                rows.add_session(&of).await?;
                // A call of the model among them has its own table.
                let all = [stored[0].clone(), running.clone(), stored[1].clone()];
                rows.add_nested_calls(&of.record, &all).await?;
                rows.write_nested_calls(&of.record, &[running.clone(), changed]).await?;
                let open = rows.with_nested(vec![running.clone()]).await?;
                let settled = CallRecord {
                    status: CallStatus::Succeeded,
                    ..running
                };
                let over = rows.with_nested(vec![settled]).await?;
                let ids = [CallId::from_bits(2), CallId::from_bits(9)];
                let named = rows.nested_calls_by_id(session(1), &ids).await?;
                Ok((open, over.len(), named))
            })
        });
        let (open, over, named) = done.await.unwrap();
        assert_eq!(
            open,
            [parent, ended.clone(), new[0].clone()],
            "in the order they were made"
        );
        assert_eq!((over, named), (1, vec![ended]), "a program that is over has none open");
    })
    .await;
}

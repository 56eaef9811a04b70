//! What the drop-in surfaces ask of the store: a turn by its id alone, sessions as
//! a list for people shows them.

use hermes_server::model::id::TurnId;
use hermes_server::model::session::SessionStatus;
use hermes_server::store::{Overview, OverviewFilter, Scope};

use crate::harness::script::mark;
use crate::harness::{Place, Server, new_session, on_both};

async fn overviews(scope: &Scope, filter: OverviewFilter) -> Vec<Overview> {
    let read = scope.read(move |mut rows| Box::pin(async move { rows.overviews(&filter).await }));
    read.await.unwrap()
}

fn all() -> OverviewFilter {
    OverviewFilter {
        limit: 10,
        ..OverviewFilter::default()
    }
}

async fn titled(server: &Server, title: &str) -> hermes_server::model::session::Session {
    let mut new = new_session();
    (new.title, new.external_id) = (Some(title.to_owned()), Some(format!("name of {title}")));
    server.engine.create_session(&server.scope, new).await.unwrap()
}

#[test]
fn a_turn_is_found_by_its_id_and_only_by_those_who_may_see_it() {
    on_both(async |place: Place| {
        let server = place.start().await;
        let session = titled(&server, "a").await;
        let turn = server
            .turn(session.id, &format!("{}\n/then\n/say done", mark("x")))
            .await
            .turn;
        server.frames(session.id, turn.id).await;
        let story = async |scope: &Scope, turn: TurnId| {
            let read = scope.read(move |mut rows| Box::pin(async move { rows.story(turn).await }));
            read.await.unwrap()
        };
        let told = story(&server.scope, turn.id).await.unwrap();
        assert_eq!(
            (told.session.id, told.turn.turn_id, told.messages.len()),
            (session.id, turn.id, 4)
        );
        assert!(told.messages[1].tool_calls[0].result.is_some() && !told.is_deleted_response);
        let colleague = server.scope.clone().of_user("colleague".to_owned());
        assert!(story(&colleague, turn.id).await.is_none());
        assert!(story(&server.scope, TurnId::from_bits(1)).await.is_none());
        server
            .engine
            .delete_response(&server.scope, session.id, turn.id)
            .await
            .unwrap();
        assert!(story(&server.scope, turn.id).await.unwrap().is_deleted_response);
        assert!(
            server
                .engine
                .delete_response(&colleague, session.id, turn.id)
                .await
                .is_err()
        );
        for (scope, found) in [(&server.scope, Some(session.id)), (&colleague, None)] {
            let named = scope.read(|mut rows| Box::pin(async move { rows.session_named("any", "name of a").await }));
            assert_eq!(named.await.unwrap().map(|(id, _)| id), found);
        }
        server.stop().await;
    });
}

#[test]
fn an_overview_counts_what_is_in_a_session() {
    on_both(async |place: Place| {
        let server = place.start().await;
        let (first, second) = (titled(&server, "a").await, titled(&server, "b").await);
        let turn = server
            .turn(first.id, &format!("{}\n/then\n/say done", mark("x")))
            .await
            .turn;
        server.frames(first.id, turn.id).await;
        let list = overviews(&server.scope, all()).await;
        let seen: Vec<_> = list
            .iter()
            .map(|one| (one.session.id, one.messages, one.calls))
            .collect();
        assert_eq!(seen, [(first.id, 4, 1), (second.id, 0, 0)]);
        assert_eq!(list[0].session.status, SessionStatus::Idle);
        assert!(list[1].first_said.is_empty() && !list[0].first_said.is_empty());
        let by_title = OverviewFilter {
            title: Some("b".to_owned()),
            ..all()
        };
        assert_eq!(overviews(&server.scope, by_title).await[0].session.id, second.id);
        let behind = OverviewFilter { offset: 1, ..all() };
        assert_eq!(overviews(&server.scope, behind).await.len(), 1);
        server
            .engine
            .archive_session(&server.scope, second.id, true)
            .await
            .unwrap();
        assert_eq!(overviews(&server.scope, all()).await.len(), 1);
        assert_eq!(
            overviews(
                &server.scope,
                OverviewFilter {
                    archived: true,
                    ..all()
                }
            )
            .await
            .len(),
            2
        );
        let colleague = server.scope.clone().of_user("colleague".to_owned());
        assert!(
            overviews(
                &colleague,
                OverviewFilter {
                    id: Some(first.id),
                    ..all()
                }
            )
            .await
            .is_empty()
        );
        for (scope, except, taken) in [
            (&server.scope, None, true),
            (&server.scope, Some(first.id), false),
            (&colleague, None, false),
        ] {
            let read = scope.read(move |mut rows| Box::pin(async move { rows.title_is_taken("a", except).await }));
            assert_eq!(read.await.unwrap(), taken);
        }
        server.stop().await;
    });
}

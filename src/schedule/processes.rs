//! Processes in the background: what happens to them is stored as it comes, and
//! those that a dead server left are told as lost.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::model::background::Completion;
use crate::store::StoreError;
use crate::tool::processes::News;
use crate::turn::engine::Engine;
use crate::turn::requests::EngineError;

/// Pause between two tries while the store is away.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) async fn store(engine: Engine, lease: Duration, stop: CancellationToken) {
    let Some(mut news) = engine.host().processes().news() else {
        return;
    };
    // The death of another server makes no sound. This one's own earlier run is
    // known to be dead as soon as turns were looked for.
    let mut look = tokio::time::interval(lease / 3);
    loop {
        tokio::select! {
            Some(one) = news.recv() => keep(&engine, one, &stop).await,
            _ = look.tick() => {
                let looked = async {
                    engine.lose_processes().await?;
                    engine.end_processes_of_deleted().await
                };
                if let Err(error) = looked.await {
                    tracing::warn!(%error, "looking for lost processes failed");
                }
            }
            () = stop.cancelled() => return,
        }
    }
}

async fn keep(engine: &Engine, news: News, stop: &CancellationToken) {
    loop {
        let stored = match &news {
            // The next start tells it, and tells the model too.
            News::Ended { end, .. } if end.completion == Completion::Lost && engine.is_draining() => return,
            News::Ended { record, end, tell } => engine.process_ended(record.clone(), *end, tell.clone()).await,
            News::Watched { record, told } => engine.process_watched(record.clone(), told.clone()).await,
        };
        match stored {
            Err(EngineError::Store(StoreError::Unavailable(_) | StoreError::Unclear(_))) => {}
            Err(error) => {
                tracing::warn!(%error, "what happened to a process is not stored");
                return;
            }
            Ok(()) => return,
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = stop.cancelled() => return,
        }
    }
}

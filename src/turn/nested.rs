//! Calls of programs, on the side of whoever runs the turn: what programs ask for
//! comes in here, and what the record says of it goes back to them.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::consult::{Consulted, Wanted};
use super::state::State;
use super::step::NestedIn;
use crate::model::call::CallStatus;
use crate::model::id::CallId;
use crate::tool::nested::{Asked, Nest, Standing};
use crate::tool::registry::Entry;

/// Programs wait for each of their calls, so there is no more than one for each.
const WAITING: usize = 8;

pub(super) struct Programs {
    asks: mpsc::Sender<Asked>,
    asked: mpsc::Receiver<Asked>,
    /// Calls that hooks are asked about. Whoever waits for them is told that they
    /// are not made when this goes.
    consulted: FuturesUnordered<Consulted>,
    open: HashMap<CallId, Open>,
}

struct Open {
    told: watch::Sender<Standing>,
    cancel: CancellationToken,
}

impl Default for Programs {
    fn default() -> Self {
        let (asks, asked) = mpsc::channel(WAITING);
        Self {
            asks,
            asked,
            consulted: FuturesUnordered::new(),
            open: HashMap::new(),
        }
    }
}

impl Programs {
    /// What a call is given so that it can make others.
    pub(super) fn nest(&self, tools: &[Arc<Entry>]) -> Nest {
        let tools = tools.iter().map(|tool| tool.name().to_owned()).collect();
        Nest::new(tools, self.asks.clone())
    }

    /// The next call that a program wants, once `consult` is done with it. Dropping
    /// the future loses nothing.
    pub(super) async fn next(&mut self, consult: impl Fn(Asked) -> Consulted) -> Wanted {
        loop {
            tokio::select! {
                asked = self.asked.recv() => match asked {
                    Some(asked) => self.consulted.push(consult(asked)),
                    // Never: one end is held here.
                    None => std::future::pending().await,
                },
                Some(wanted) = self.consulted.next(), if !self.consulted.is_empty() => {
                    if let Some(wanted) = wanted {
                        return wanted;
                    }
                }
            }
        }
    }

    /// Notes who waits for the call, which is to be stored now.
    pub(super) fn begin(&mut self, wanted: Wanted) -> NestedIn {
        let Wanted { call_id, asked, before } = wanted;
        let open = Open {
            told: asked.told,
            cancel: asked.cancel,
        };
        self.open.insert(call_id, open);
        NestedIn {
            call_id,
            parent: asked.parent,
            name: asked.name,
            arguments: asked.arguments,
            before,
        }
    }

    /// What ends the call when its program is gone.
    pub(super) fn cancel_of(&self, call: CallId) -> Option<CancellationToken> {
        self.open.get(&call).map(|open| open.cancel.clone())
    }

    /// Tells programs how their calls stand in the record. One that is not in it
    /// was never begun, and nobody is left to tell of it.
    pub(super) fn tell(&mut self, state: &State) {
        self.open.retain(|id, open| {
            let Some(call) = state.call(*id) else { return false };
            let result = call.nested.as_ref().and_then(|nested| nested.result.clone());
            let standing = match (call.status, result) {
                (status, Some(result)) if status.is_settled() => Standing::Settled(result),
                (CallStatus::Waiting, _) => Standing::Asking,
                _ => Standing::Begun,
            };
            let is_over = matches!(standing, Standing::Settled(_));
            open.told.send_if_modified(|told| {
                let news = *told != standing;
                *told = standing;
                news
            });
            !is_over
        });
    }

    /// Whether a program waits for a person.
    pub(super) fn asks(&self) -> bool {
        self.open.values().any(|open| *open.told.borrow() == Standing::Asking)
    }
}

//! Who stands around a call while it runs, the outermost first. What is part of
//! the binary may run it, once, and change what came of it; what is configured is
//! asked before and may answer in its place. One that fails counts for nothing:
//! the call runs, and it runs once, whatever those around it do.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Action, After, Hook, Hooks, Subject, run};
use crate::config::HookPoint;
use crate::model::trace::{Trace, TraceAction};
use crate::tool::Done;

/// What a model will read of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    pub result: String,
    pub images: Vec<String>,
    pub failed: bool,
}

/// Runs the call, and whatever stands further inside. It can be used once, which
/// its type says.
pub struct Next(oneshot::Sender<oneshot::Sender<Told>>);

impl Next {
    /// An error only where the call is given up meanwhile.
    pub async fn call(self) -> Result<Told, String> {
        let gone = || "the call was given up".to_owned();
        let (told, answer) = oneshot::channel();
        self.0.send(told).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
    }
}

/// What stands around calls and is part of the binary: submitted where it is
/// written. It has ten seconds before the call and ten behind it.
pub struct CompiledMiddleware {
    pub name: &'static str,
    pub run: Middleware,
}

pub type Middleware = fn(Value, Next) -> BoxFuture<'static, Result<Told, String>>;

inventory::collect!(CompiledMiddleware);

/// The call that all this is about.
struct Around<'a> {
    hooks: &'a Hooks,
    subject: Subject,
    tool: &'a str,
    after: &'a After,
    cancel: CancellationToken,
}

/// What came of the call, and who did something to it.
type Ran = (Done, Vec<Trace>);

impl After {
    /// Runs the call within those who stand around it.
    pub async fn around(&mut self, tool: &str, cancel: CancellationToken, call: BoxFuture<'static, Done>) -> Done {
        let all = self.hooks.at(HookPoint::ToolExecution, Some(tool));
        let (mut done, trace) = {
            let around = Around {
                hooks: &self.hooks,
                subject: self.subject,
                tool,
                after: self,
                cancel,
            };
            around.through(&all, call).await
        };
        self.trace.extend(trace.iter().cloned());
        done.writes.trace = trace;
        done
    }
}

impl Around<'_> {
    fn through<'a>(&'a self, standing: &'a [Hook], call: BoxFuture<'static, Done>) -> BoxFuture<'a, Ran> {
        Box::pin(async move {
            let Some((first, further)) = standing.split_first() else {
                return (call.await, Vec::new());
            };
            match first.action {
                Action::Around(middleware) => self.within(first, middleware, (further, call)).await,
                _ => self.asked(first, (further, call)).await,
            }
        })
    }

    fn payload(&self, hook: &Hook) -> Value {
        let told = json!({"tool_name": self.tool, "args": self.after.arguments, "middleware_trace": self.after.trace});
        run::payload(hook, self.subject, "hermes.middleware.v1", told)
    }

    /// One that can only be asked before: it answers in the place of the call, or
    /// lets it run.
    async fn asked(&self, hook: &Hook, (further, call): (&[Hook], BoxFuture<'static, Done>)) -> Ran {
        let inner = &self.hooks.0;
        let answer = tokio::select! {
            answer = run::asked(&inner.host, &inner.documents, hook, self.payload(hook)) => answer,
            // The call itself knows what that means.
            () = self.cancel.cancelled() => Ok(json!({})),
        };
        let said = match answer {
            Ok(answer) => match answer.get("result") {
                Some(Value::String(result)) => {
                    let done = Done {
                        result: result.clone(),
                        ..Done::default()
                    };
                    let reason = answer.get("reason").and_then(Value::as_str).map(str::to_owned);
                    return (done, vec![did(hook, TraceAction::Answered, reason)]);
                }
                _ => None,
            },
            Err(error) => Some(skipped(hook, error)),
        };
        let (done, trace) = self.through(further, call).await;
        (done, said.into_iter().chain(trace).collect())
    }

    /// One that runs what is further inside itself.
    async fn within(
        &self,
        hook: &Hook,
        middleware: Middleware,
        (further, call): (&[Hook], BoxFuture<'static, Done>),
    ) -> Ran {
        let (next, mut wants) = oneshot::channel();
        let payload = self.payload(hook);
        let running = AssertUnwindSafe(async move { middleware(payload, Next(next)).await }).catch_unwind();
        let mut running =
            Box::pin(running.map(|ran| ran.unwrap_or_else(|_| Err("it stopped unexpectedly".to_owned()))));
        // It asks for the call, or is done without.
        let before = async {
            tokio::select! {
                biased;
                asked = &mut wants => match asked {
                    Ok(told) => Ok(told),
                    Err(_) => Err(running.as_mut().await),
                },
                ended = running.as_mut() => Err(ended),
                () = self.cancel.cancelled() => Err(Err("the call is being stopped".to_owned())),
            }
        };
        let before = timeout(hook.timeout, before).await;
        let told = match before.unwrap_or_else(|_| Err(Err(run::late(hook)))) {
            Ok(told) => told,
            Err(Ok(told)) => {
                let done = with(Done::default(), told);
                return (done, vec![did(hook, TraceAction::Answered, None)]);
            }
            Err(Err(error)) => {
                drop(wants);
                let (done, trace) = self.through(further, call).await;
                let said = skipped(hook, error);
                return (done, [vec![said], trace].concat());
            }
        };
        let (done, mut trace) = self.through(further, call).await;
        let came = Told {
            result: done.result.clone(),
            images: done.images.clone(),
            failed: done.failed,
        };
        // Whoever asked may have gone.
        let _ = told.send(came.clone());
        match timeout(hook.timeout, running)
            .await
            .unwrap_or_else(|_| Err(run::late(hook)))
        {
            Ok(told) if told == came => (done, trace),
            Ok(told) => {
                trace.push(did(hook, TraceAction::Replaced, None));
                (with(done, told), trace)
            }
            Err(error) => {
                trace.push(skipped(hook, error));
                (done, trace)
            }
        }
    }
}

/// What the call did stays true, whatever is told of it.
fn with(done: Done, told: Told) -> Done {
    Done {
        result: told.result,
        images: told.images,
        failed: told.failed,
        ..done
    }
}

fn did(hook: &Hook, action: TraceAction, reason: Option<String>) -> Trace {
    Trace {
        source: hook.point.name().to_owned(),
        name: hook.name.clone(),
        action,
        reason,
    }
}

fn skipped(hook: &Hook, error: String) -> Trace {
    tracing::warn!(hook = hook.name, error, "a hook failed and is skipped");
    did(hook, TraceAction::Skipped, Some(error))
}

#[cfg(test)]
mod tests;

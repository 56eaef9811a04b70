//! Plugins that are replaced, or taken away, after their call was committed and
//! before its handler started: neither the old nor the new one runs.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use hermes_server::store::Fate;
use hermes_server::turn::engine::Engine;
use serde_json::json;

use super::{call, plugin, program, results};
use crate::api_rest::Talk;
use crate::harness::{lines, on_both, probe};

fn manifest(handler: &str) -> String {
    format!("name: swift\ntools: [{{name: act, handler: {{command: [./{handler}]}}}}]")
}

/// Loads all plugins, on a thread that may wait for it.
fn reload(engine: &Engine, runtime: &tokio::runtime::Handle) {
    let (engine, runtime) = (engine.clone(), runtime.clone());
    let loaded = std::thread::spawn(move || {
        let host = Arc::clone(engine.host());
        runtime.block_on(engine.plugins().load(engine.tools(), &host));
    });
    loaded.join().unwrap();
}

/// What the model is told of a call whose plugin becomes another with the commit
/// of the answer that calls it.
async fn told(place: &mut crate::harness::Place, change: fn(&Path)) -> String {
    let folder = plugin(place, "swift", &manifest("old"));
    for name in ["old", "new"] {
        let script =
            format!("cat > /dev/null; echo ran >> {name}; echo '{{\"type\": \"text\", \"text\": \"{name}\"}}'");
        program(&folder, name, &script);
    }
    let engine: Arc<OnceLock<Engine>> = Arc::default();
    let (known, runtime) = (Arc::clone(&engine), tokio::runtime::Handle::current());
    let (answers, at) = (AtomicUsize::new(0), folder.clone());
    let fate = probe(move |label| {
        if label == "answer" && answers.fetch_add(1, Ordering::SeqCst) == 0 {
            change(&at);
            reload(known.get().unwrap(), &runtime);
        }
        Fate::Go
    });
    let web = place.serve_probed(fate).await;
    assert!(engine.set(web.server.engine.clone()).is_ok());
    let client = web.owner().await;
    let mut talk = Talk::new(&web, &client, &json!({"toolsets": {"enabled": ["swift"]}})).await;
    let told = results(&mut talk, &call("act", &json!({}))).await;
    let workspace = web.server.workspace(talk.session.parse().unwrap());
    assert_eq!(["old", "new"].map(|name| lines(&workspace.join(name))), [0, 0]);
    if folder.exists() {
        // The next call is judged with what is there now.
        results(&mut talk, &call("act", &json!({}))).await;
        assert_eq!(["old", "new"].map(|name| lines(&workspace.join(name))), [0, 1]);
    }
    web.stop().await;
    told.first().unwrap().clone()
}

#[test]
fn a_call_whose_plugin_is_replaced_between_its_commit_and_its_start_is_not_run() {
    on_both(async |mut place| {
        let replaced = told(&mut place, |folder| {
            std::fs::write(folder.join("plugin.yaml"), manifest("new")).unwrap();
        });
        let replaced = replaced.await;
        assert!(
            replaced.contains("was replaced just before the call would have started")
                && replaced.contains("was not run"),
            "{replaced}"
        );
        let gone = told(&mut place, |folder| std::fs::remove_dir_all(folder).unwrap()).await;
        assert!(gone.contains("is gone") && gone.contains("was not run"), "{gone}");
    });
}

//! What an operator adds without compiling: hooks, plugins, limits of results,
//! tried through the routes on both databases.

mod addresses;
mod around;
pub mod artifacts;
pub mod checkpoints;
mod handlers;
pub mod hooks;
mod meanwhile;
mod nested;
mod plugins;
mod replaced;
mod strangers;
mod tenants;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::api_rest::Talk;
use crate::harness::Place;

/// A program that everybody may run, somewhere the sandbox lets it be.
fn program(directory: &Path, name: &str, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(directory).unwrap();
    let path = directory.join(name);
    std::fs::write(&path, format!("#!/bin/bash\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn call(tool: &str, arguments: &Value) -> String {
    format!("/tool {tool} {arguments}")
}

/// Runs a turn to its end and gives the newest results of calls.
async fn results(talk: &mut Talk, text: &str) -> Vec<String> {
    let turn = talk.say(text).await;
    talk.events.until("turn.completed").await;
    let messages = talk.client.get(&talk.path("/messages?limit=200")).await.expect(200);
    let messages = messages["data"].as_array().unwrap().iter();
    let own = messages.filter(|message| message["turn_id"] == turn.as_str() && message["role"] == "tool");
    own.map(|message| message["content"][0]["text"].as_str().unwrap().to_owned())
        .collect()
}

/// Writes a plugin into the place's folder of plugins.
fn plugin(place: &Place, name: &str, manifest: &str) -> PathBuf {
    let folder = place.config.server.data_dir.join("plugins").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("plugin.yaml"), manifest).unwrap();
    folder
}

fn no_settings() -> Value {
    json!({})
}

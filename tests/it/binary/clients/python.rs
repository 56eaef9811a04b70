//! The Python example: a package by `openapi-python-client`.

use super::does_the_main_job;
use super::workshop::{PYTHON, Workshop};

const FILES: [&str; 4] = ["requirements.txt", "generator.yaml", "generate", "main.py"];

#[tokio::test]
async fn the_generated_python_client_imports_and_does_the_main_job() {
    let workshop = Workshop::of("examples/python", &FILES);
    if !workshop.has_python().await {
        return;
    }
    workshop.run("./generate", &[]).await;
    workshop.run(PYTHON, &["-c", EVERY_MODULE]).await;
    does_the_main_job(|| workshop.command(PYTHON, &["main.py"])).await;
}

/// Imports all of the generated package, and compares the events that the
/// example knows with those of the document.
const EVERY_MODULE: &str = r#"
import importlib, json, pkgutil
import hermes_server_client as client
for module in pkgutil.walk_packages(client.__path__, client.__name__ + "."):
    importlib.import_module(module.name)
import main
document = json.load(open("../../openapi/native.json"))
told = document["components"]["schemas"]["Event"]["discriminator"]["mapping"]
assert set(main.EVENTS) == set(told), set(main.EVENTS) ^ set(told)
operations = {o["operationId"] for p in document["paths"].values() for o in p.values() if "operationId" in o}
made = {m.name.rsplit(".", 1)[1] for m in pkgutil.walk_packages(client.api.__path__, client.api.__name__ + ".") if not m.ispkg}
assert made == operations, made ^ operations
"#;

//! The TypeScript example: types by `openapi-typescript`, calls by
//! `openapi-fetch`.

use super::does_the_main_job;
use super::workshop::{Workshop, is_here};

const FILES: [&str; 4] = ["package.json", "package-lock.json", "tsconfig.json", "main.ts"];

#[tokio::test]
async fn the_generated_typescript_client_compiles_and_does_the_main_job() {
    let recent = ["-e", "process.exit(+(parseInt(process.versions.node) < 20))"];
    if !is_here("node 20", "node", &recent).await || !is_here("npm", "npm", &["--version"]).await {
        return;
    }
    let workshop = Workshop::of("examples/typescript", &FILES);
    let mut install = workshop.command("npm", &["ci", "--no-audit", "--no-fund"]);
    install.args([
        "--fetch-retries=1",
        "--fetch-retry-mintimeout=1000",
        "--fetch-timeout=30000",
    ]);
    if !workshop.installed("package-lock.json", vec![install]).await {
        return;
    }
    workshop.run("npm", &["run", "build"]).await;
    does_the_main_job(|| workshop.command("node", &["dist/main.js"])).await;
}

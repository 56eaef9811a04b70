//! The load generator behind `make bench`. It starts the server's own release
//! binary with the `demo` model, drives it over HTTP on each store, and prints
//! what it measured beside floors measured in the same run, as a table and as
//! JSON. It judges nothing: `docs/performance.md` says what the figures mean.

mod commits;
mod drive;
mod floor;
mod memory;
mod probe;
mod report;
mod scenes;
mod server;
mod tools;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

use report::Report;
use scenes::Size;
use server::Database;

#[derive(Parser)]
#[command(about = "Measures hermes-server over HTTP, beside floors measured in the same run")]
struct Args {
    #[command(subcommand)]
    role: Option<Role>,
    /// A Postgres server whose superuser this URL names; without it only SQLite is measured
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
    /// Where the JSON goes besides the output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// A tenth of the turns: to see that it works, not to compare
    #[arg(long)]
    quick: bool,
    /// The server's binary
    #[arg(long, value_name = "FILE", default_value = env!("CARGO_BIN_EXE_hermes-server"))]
    server: PathBuf,
    /// Cargo says this to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Subcommand)]
enum Role {
    /// The bare server that others are compared with.
    #[command(hide = true)]
    Floor { address: String },
}

fn main() -> Result<()> {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match args.role {
            Some(Role::Floor { address }) => floor::serve(&address).await,
            None => measure(args).await,
        }
    })
}

async fn measure(args: Args) -> Result<()> {
    let size = if args.quick { Size::QUICK } else { Size::FULL };
    let mut report = Report::new(&args.server)?;
    let mut databases = vec![Database::Sqlite];
    if let Some(url) = args.postgres {
        databases.push(Database::Postgres(url));
    }
    for database in databases {
        scenes::all(&args.server, &database, size, &mut report).await?;
    }
    report.print(args.json.as_deref())
}

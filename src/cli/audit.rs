//! `audit`: the trail out of the database, and its proof without one.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::Subcommand;

use crate::app;
use crate::model::audit::export::{Proof, Verifier};
use crate::store::{AuditExport, Store, across_tenants};

use super::StoreArgs;
use super::error::CliError;
use super::load::load;
use super::print;

pub(super) const EXAMPLES: &str = "\
Examples:
  hermes-server audit export > audit.jsonl
  hermes-server audit export --tenant acme --output acme.jsonl
  hermes-server audit verify audit.jsonl
  hermes-server audit verify new.jsonl --passes 9f2c…    the hash that an earlier proof ended with
  curl -sH \"Authorization: Bearer $KEY\" localhost:8642/v1/audit/export | hermes-server audit verify -

Exit status of `verify`: 0 the export holds, 1 it does not; the first broken line is named.";

/// No line of an export comes near it; a file that is none must not fill memory.
const MAX_LINE_BYTES: u64 = 1 << 20;

#[derive(Debug, PartialEq, Subcommand)]
pub enum AuditCommand {
    /// Write the trail of a tenant as lines of JSON.
    ///
    /// Works on the database itself. On SQLite the server has to be stopped;
    /// `GET /v1/audit/export` gives the same while it runs.
    Export {
        /// The tenant's name
        #[arg(long, default_value = "default")]
        tenant: String,

        /// The file to write [default: the output]
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,

        #[command(flatten)]
        store: StoreArgs,
    },

    /// Prove an export: nothing was changed, dropped or moved.
    ///
    /// Needs neither server nor database. Names the entries that are not chained
    /// yet, and the first line that is broken.
    Verify {
        /// The export; `-` reads the input
        #[arg(value_name = "FILE")]
        file: PathBuf,

        /// A hash that the chain has to pass: what an earlier proof ended with
        #[arg(long, value_name = "HASH")]
        passes: Option<String>,
    },
}

pub(super) async fn run(command: AuditCommand) -> Result<(), CliError> {
    match command {
        AuditCommand::Export { tenant, output, store } => export(&tenant, output.as_deref(), store).await,
        AuditCommand::Verify { file, passes } => {
            let proof = verify(&file, passes)?;
            print::out(&said(&proof)).map_err(CliError::Output)
        }
    }
}

async fn export(tenant: &str, output: Option<&Path>, store: StoreArgs) -> Result<(), CliError> {
    let loaded = load(store)?;
    let store = app::open_store(&loaded.config, &loaded.around).await?;
    let done = write(&store, tenant, output).await;
    store.close().await;
    done
}

async fn write(store: &Store, tenant: &str, output: Option<&Path>) -> Result<(), CliError> {
    let found = across_tenants::tenant_named(store, tenant).await?;
    let found = found.ok_or_else(|| CliError::NoTenant(tenant.to_owned()))?;
    let unwritable = |source| CliError::file(output.unwrap_or(Path::new("-")), source);
    let mut file = output.map(File::create).transpose().map_err(unwritable)?;
    let mut export = AuditExport::new(store.scope(found.tenant_id));
    while let Some(part) = export.next().await? {
        match &mut file {
            Some(file) => std::io::Write::write_all(file, part.as_bytes()).map_err(unwritable)?,
            None => print::out(&part).map_err(CliError::Output)?,
        }
    }
    Ok(())
}

fn verify(file: &Path, passes: Option<String>) -> Result<Proof, CliError> {
    let unreadable = |source| CliError::file(file, source);
    let input: Box<dyn Read> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(File::open(file).map_err(unreadable)?)
    };
    let mut input = BufReader::new(input);
    let mut verifier = Verifier::new(passes);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
        if read.map_err(unreadable)? == 0 {
            return Ok(verifier.finish()?);
        }
        // A last line without its end was cut off in the middle.
        let whole = line.strip_suffix(b"\n").unwrap_or_default();
        verifier.line(std::str::from_utf8(whole).unwrap_or_default())?;
    }
}

fn said(proof: &Proof) -> String {
    let mut text = format!(
        "holds: {} entries of {} are chained; the last hash is {}\n",
        proof.chained, proof.tenant, proof.head_hash
    );
    if !proof.unchained.is_empty() {
        text.push_str("not chained yet, so that nothing proves their order or that none is missing:\n");
        for name in &proof.unchained {
            text.push_str(&format!("  {name}\n"));
        }
    }
    text
}

//! `tools`: what a session would be given.

use clap::Args;
use serde_json::json;

use crate::app;
use crate::tool::registry::Selection;
use crate::tool::session_tools::SessionTools;

use super::StoreArgs;
use super::error::CliError;
use super::load::load;
use super::print;

pub(super) const EXAMPLES: &str = "\
Examples:
  hermes-server tools
  hermes-server tools --preset hermes-cli
  hermes-server tools --all --json";

#[derive(Args, Debug, PartialEq)]
pub struct ToolsArgs {
    /// The preset or toolset to resolve [default: what `platform_toolsets.api_server` says]
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,

    /// List absent tools too, each with the reason
    #[arg(long)]
    pub all: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub store: StoreArgs,
}

/// Runs a trial command, as the server does at its start, to find out what this
/// machine offers.
pub(super) async fn run(args: ToolsArgs) -> Result<(), CliError> {
    let loaded = load(args.store)?;
    let host = app::open_host(&loaded.config, &loaded.around).await?;
    let presets = match args.preset {
        Some(preset) => vec![preset],
        None => loaded.config.platform_toolsets.api_server.clone(),
    };
    let selection = Selection {
        presets: &presets,
        ..Selection::default()
    };
    let live = app::tools(&loaded.config, &loaded.around.clock)?;
    let host = std::sync::Arc::new(host);
    if let Ok(documents) = crate::fetch::Documents::new() {
        app::plugins(&loaded.config, documents).load(&live, &host).await;
    }
    live.refresh(&live.shared()).await;
    let tools = live.shared().select(&selection, live.offers(&host));
    let tools = tools.map_err(CliError::Toolset)?;
    let text = if args.json {
        serde_json::to_string_pretty(&as_json(&tools, args.all))? + "\n"
    } else {
        as_table(&tools, args.all)
    };
    print::out(&text).map_err(CliError::Output)
}

fn as_json(tools: &SessionTools, all: bool) -> serde_json::Value {
    let offered = tools.offered().iter().map(|tool| {
        json!({"name": tool.name(), "toolset": tool.toolset(), "description": tool.description(),
            "parameters": tool.schema()})
    });
    let mut shown = json!({"offered": offered.collect::<Vec<_>>()});
    if let (true, Some(fields)) = (all, shown.as_object_mut()) {
        fields.insert("absent".to_owned(), json!(tools.absent()));
    }
    shown
}

fn as_table(tools: &SessionTools, all: bool) -> String {
    let offered = tools.offered().iter().map(|tool| {
        let summary = tool.description().split(". ").next().unwrap_or_default();
        format!("{:<20} {:<14} {summary}\n", tool.name(), tool.toolset())
    });
    let mut text: String = offered.collect();
    let absent = tools.absent();
    if all {
        let absent = absent
            .iter()
            .map(|tool| format!("{:<20} absent: {}\n", tool.name, tool.reason));
        text.extend(absent);
    } else if !absent.is_empty() {
        text.push_str(&format!("{} more are absent; --all says why\n", absent.len()));
    }
    text
}

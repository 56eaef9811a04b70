//! Plugins: folders of declared tools, for everybody or for one tenant, loaded
//! and loaded anew while the server runs. What a folder brings takes the place
//! of what it brought before, in one step.
//!
//! `<directory>/<name>/plugin.yaml` is for everybody,
//! `<directory>/tenants/<tenant id>/<name>/plugin.yaml` for one tenant. Skills in a
//! folder `skills` beside it come with it.

mod declared;
mod manifest;
mod parts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use utoipa::ToSchema;

use super::budget::ResultLimit;
use super::registry::live::{Bundle, Live, Reach};
use super::registry::{Entry, LeftOut, Registration};
use super::{Host, PluginShelf};
use crate::fetch::Documents;
use crate::model::id::TenantId;

use declared::{Check, Declared};
use manifest::{DeclaredTool, Manifest};

/// The folder of tenants' plugins; no plugin has this name.
const TENANTS: &str = "tenants";
const FILES: [&str; 2] = ["plugin.yaml", "plugin.json"];
const MAX_MANIFEST_BYTES: u64 = 256 << 10;
/// Folders of one directory that are looked at.
const MAX_FOLDERS: usize = 1_000;

/// What the operator says of one plugin (`plugins.entries`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    pub enabled: bool,
    /// Its tools may take the place of others.
    pub may_override: bool,
}

impl Default for Allowance {
    fn default() -> Self {
        Self {
            enabled: true,
            may_override: false,
        }
    }
}

/// A plugin as administrators see it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct PluginView {
    pub name: String,
    /// Whose it is; everybody's when absent.
    pub tenant_id: Option<TenantId>,
    pub description: String,
    #[schema(value_type = Option<String>)]
    pub version: Option<String>,
    pub status: PluginStatus,
    /// The tools that it brought.
    pub tools: Vec<String>,
    /// What is wrong with it, or with some of its tools.
    pub problems: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PluginStatus {
    Loaded,
    /// The operator turned it off.
    Disabled,
    /// Nothing of it could be loaded.
    Failed,
}

/// The plugins of a server.
pub struct Plugins {
    directory: PathBuf,
    allowances: BTreeMap<String, Allowance>,
    documents: Documents,
    /// As of the last loading. Held while one loads, so that two follow one
    /// another.
    loaded: tokio::sync::Mutex<()>,
    views: Mutex<Vec<PluginView>>,
}

type Found = BTreeMap<Reach, Vec<(String, Option<Bundle>)>>;

impl Plugins {
    pub fn new(directory: PathBuf, allowances: BTreeMap<String, Allowance>, documents: Documents) -> Self {
        Self {
            directory,
            allowances,
            documents,
            loaded: tokio::sync::Mutex::default(),
            views: Mutex::default(),
        }
    }

    /// As of the last loading, sorted by whose they are and their name.
    pub fn views(&self) -> Vec<PluginView> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads all folders and puts what they bring in place.
    pub async fn load(&self, live: &Live, host: &Arc<Host>) -> Vec<PluginView> {
        let _one = self.loaded.lock().await;
        let before = self.views();
        let (mut views, mut found) = self.read(host);
        for gone in before {
            let reach = gone.tenant_id.map_or(Reach::Everybody, Reach::Tenant);
            let changes = found.entry(reach).or_default();
            if !changes.iter().any(|(name, _)| *name == gone.name) {
                changes.push((gone.name, None));
            }
        }
        for (reach, changes) in found {
            let left_out = live.set_all(reach, changes);
            tell(&mut views, reach, &left_out);
        }
        host.set_plugin_skills(views.iter().filter_map(|view| self.shelf(view)).collect());
        *self.views.lock().unwrap_or_else(PoisonError::into_inner) = views.clone();
        views
    }

    /// The skills that a plugin brings, in `skills/` of its folder.
    fn shelf(&self, view: &PluginView) -> Option<PluginShelf> {
        let whose = match view.tenant_id {
            None => self.directory.clone(),
            Some(tenant) => self.directory.join(TENANTS).join(tenant.to_string()),
        };
        (view.status == PluginStatus::Loaded).then(|| PluginShelf {
            tenant: view.tenant_id,
            plugin: view.name.clone(),
            directory: whose.join(&view.name).join("skills"),
        })
    }

    fn read(&self, host: &Arc<Host>) -> (Vec<PluginView>, Found) {
        let (mut views, mut found) = (Vec::new(), Found::new());
        for folder in folders(&self.directory) {
            if name_of(&folder) != TENANTS {
                self.read_one(&folder, Reach::Everybody, host, (&mut views, &mut found));
            }
        }
        for tenant in folders(&self.directory.join(TENANTS)) {
            let Ok(id) = name_of(&tenant).parse::<TenantId>() else {
                tracing::warn!(folder = %tenant.display(), "a folder of plugins is named for no tenant");
                continue;
            };
            for folder in folders(&tenant) {
                self.read_one(&folder, Reach::Tenant(id), host, (&mut views, &mut found));
            }
        }
        (views, found)
    }

    fn read_one(
        &self,
        folder: &Path,
        reach: Reach,
        host: &Arc<Host>,
        (views, found): (&mut Vec<PluginView>, &mut Found),
    ) {
        let name = name_of(folder);
        let Some(text) = manifest_text(folder) else { return };
        let allowance = self.allowances.get(&name).copied().unwrap_or_default();
        let mut view = PluginView {
            name: name.clone(),
            tenant_id: match reach {
                Reach::Everybody => None,
                Reach::Tenant(id) => Some(id),
            },
            description: String::new(),
            version: None,
            status: PluginStatus::Failed,
            tools: Vec::new(),
            problems: Vec::new(),
        };
        let read = text.and_then(|text| Manifest::read(&text, &name).map_err(|fault| fault.to_string()));
        let bundle = match read {
            Err(problem) => {
                view.problems.push(problem);
                None
            }
            Ok(manifest) => {
                view.description.clone_from(&manifest.description);
                view.version = manifest.version.as_ref().map(|version| match version {
                    serde_json::Value::String(text) => text.clone(),
                    other => other.to_string(),
                });
                view.status = if allowance.enabled {
                    PluginStatus::Loaded
                } else {
                    PluginStatus::Disabled
                };
                let made = self.bundle(&manifest, folder, reach, host, &mut view.problems);
                allowance.enabled.then(|| registered(made, allowance, &mut view))
            }
        };
        for problem in &view.problems {
            tracing::warn!(plugin = name, problem, "a plugin, or a tool of it, was not loaded");
        }
        found.entry(reach).or_default().push((name, bundle));
        views.push(view);
    }

    fn bundle(
        &self,
        manifest: &Manifest,
        folder: &Path,
        reach: Reach,
        host: &Arc<Host>,
        problems: &mut Vec<String>,
    ) -> Vec<(Arc<Entry>, bool)> {
        let check = manifest.check().ok().flatten().map(|handled| {
            Arc::new(Check {
                key: format!("plugin {reach:?} {}", manifest.name),
                handled,
                folder: folder.to_path_buf(),
                documents: self.documents.clone(),
                host: Arc::clone(host),
            })
        });
        let mut made = Vec::new();
        for tool in &manifest.tools {
            match self.tool(manifest, tool, folder, check.clone()) {
                Ok(entry) => made.push((entry, tool.overrides)),
                Err(problem) => problems.push(problem),
            }
        }
        made
    }

    fn tool(
        &self,
        manifest: &Manifest,
        tool: &DeclaredTool,
        folder: &Path,
        check: Option<Arc<Check>>,
    ) -> Result<Arc<Entry>, String> {
        let handled = tool.handled().map_err(|fault| fault.to_string())?;
        let toolset = tool
            .toolset
            .as_ref()
            .or(manifest.toolset.as_ref())
            .unwrap_or(&manifest.name);
        let declared = Declared {
            plugin: manifest.name.clone(),
            name: tool.name.clone(),
            toolset: toolset.clone(),
            description: tool.description.clone(),
            emoji: tool.emoji.clone(),
            parameters: tool.parameters.clone(),
            effect: tool.effect,
            parallel: tool.parallel,
            approval: tool.approval,
            untrusted: tool.untrusted,
            limit: tool
                .max_result_size_chars
                .map_or(ResultLimit::Default, ResultLimit::Chars),
            handled,
            check,
            folder: folder.to_path_buf(),
            documents: self.documents.clone(),
        };
        Entry::loaded(Arc::new(declared), &manifest.name).ok_or_else(|| format!("`{}` has no name", tool.name))
    }
}

fn registered(made: Vec<(Arc<Entry>, bool)>, allowance: Allowance, view: &mut PluginView) -> Bundle {
    let tools = made.into_iter().map(|(tool, overrides)| {
        view.tools.push(tool.name().to_owned());
        view.problems
            .extend(tool.broken().map(|why| format!("`{}`: {why}", tool.name())));
        Registration {
            tool,
            overrides,
            may_override: allowance.may_override,
        }
    });
    Bundle {
        tools: tools.collect(),
        aliases: Vec::new(),
    }
}

/// Says of each plugin which of its tools the rules left out.
fn tell(views: &mut [PluginView], reach: Reach, left_out: &[LeftOut]) {
    let of_reach = |view: &&mut PluginView| view.tenant_id.map_or(Reach::Everybody, Reach::Tenant) == reach;
    for view in views.iter_mut().filter(of_reach) {
        for left_out in left_out
            .iter()
            .filter(|left_out| left_out.source() == Some(view.name.as_str()))
        {
            view.tools.retain(|name| left_out.tool() != Some(name));
            view.problems.push(left_out.to_string());
        }
    }
}

/// The manifest's text, or why there is none to be had; `None` where the folder
/// is no plugin.
fn manifest_text(folder: &Path) -> Option<Result<String, String>> {
    let path = FILES.iter().map(|file| folder.join(file)).find(|path| path.exists())?;
    let length = std::fs::metadata(&path).map(|metadata| metadata.len());
    Some(match length {
        Ok(length) if MAX_MANIFEST_BYTES < length => {
            Err(format!("the manifest is longer than {MAX_MANIFEST_BYTES} bytes"))
        }
        Ok(_) => std::fs::read_to_string(&path).map_err(|error| format!("the manifest cannot be read: {error}")),
        Err(error) => Err(format!("the manifest cannot be read: {error}")),
    })
}

/// Sorted; a directory that is not there has none.
fn folders(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.truncate(MAX_FOLDERS);
    folders
}

fn name_of(folder: &Path) -> String {
    folder
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

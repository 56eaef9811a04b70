//! The key of the first start. It is in its file before it is in the store, so
//! that a crash in between leaves a file whose key the next start takes over.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::api::auth::api_key;
use crate::base::Secret;
use crate::model::id::{KeyId, TenantId};
use crate::model::principal::Scope;
use crate::store::keys::KeyRecord;
use crate::store::{Store, across_tenants};

use super::error::CliError;

const FILE: &str = "api-key";
/// Whose the key is.
const USER: &str = "admin";

pub(super) fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(FILE)
}

/// Makes the key if no key was ever stored; nothing otherwise.
pub(super) async fn make(store: &Store, tenant: TenantId, data_dir: &Path) -> Result<Option<Secret>, CliError> {
    if !across_tenants::has_no_keys(store).await? {
        return Ok(None);
    }
    let path = path(data_dir);
    let key = kept(&path, &api_key::generate()?).map_err(|source| CliError::file(&path, source))?;
    let hash = api_key::hash(key.expose());
    let record = KeyRecord {
        tenant_id: tenant,
        key_id: KeyId::new(store.clock()),
        user_id: USER.to_owned(),
        name: "first start".to_owned(),
        hash: hash.clone(),
        scopes: vec![Scope::Admin.name().to_owned()],
        tools: None,
        created_at: store.clock().now(),
        expires_at: None,
        revoked_at: None,
    };
    if across_tenants::add_first_key(store, record).await? {
        return Ok(Some(key));
    }
    // Another process was first. Where it shares the directory, the file is its.
    if across_tenants::key_with_hash(store, &hash).await?.is_none() {
        fs::remove_file(&path).map_err(|source| CliError::file(&path, source))?;
    }
    Ok(None)
}

/// Whether the file holds a key that the store knows and that still works.
pub(super) async fn is_valid(store: &Store, data_dir: &Path) -> Result<bool, CliError> {
    let Ok(text) = fs::read_to_string(path(data_dir)) else {
        return Ok(false);
    };
    let known = across_tenants::key_with_hash(store, &api_key::hash(text.trim())).await?;
    let now = store.clock().now();
    Ok(known.is_some_and(|key| key.revoked_at.is_none() && key.expires_at.is_none_or(|end| now < end)))
}

/// The key that is in the file now: one that was there, or `fresh`. Of several
/// processes that come here together all get the same.
fn kept(path: &Path, fresh: &Secret) -> io::Result<Secret> {
    let draft = path.with_file_name(format!("{FILE}.{}", std::process::id()));
    write(&draft, fresh)?;
    // A link, unlike a rename, does not replace what is there.
    let linked = fs::hard_link(&draft, path);
    let key = match linked {
        Ok(()) => Ok(fresh.clone()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match earlier(path)? {
            Some(key) => Ok(key),
            None => fs::rename(&draft, path).map(|()| fresh.clone()),
        },
        Err(error) => Err(error),
    };
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let directory = path.parent().unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()?;
    key
}

fn earlier(path: &Path) -> io::Result<Option<Secret>> {
    let text = fs::read_to_string(path)?;
    if !api_key::is_key(text.trim()) {
        return Ok(None);
    }
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(Some(Secret::new(text.trim())))
}

fn write(path: &Path, key: &Secret) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    writeln!(file, "{}", key.expose())?;
    file.sync_all()
}

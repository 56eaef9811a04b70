//! Who this machine's data directory is. The id is kept in the directory under
//! a file lock for the life of the process: whoever holds it knows that every
//! earlier process of the same node is gone.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use crate::base::Clock;
use crate::model::id::NodeId;

use super::{StoreError, lock};

/// The held identity; dropping it lets the directory go.
#[derive(Debug)]
pub struct Node {
    id: NodeId,
    _lock: File,
}

impl Node {
    /// Takes the identity of `data_dir`, made at the first start.
    pub fn claim(data_dir: &Path, clock: &Clock) -> Result<Self, StoreError> {
        lock::private_dir(data_dir)?;
        let path = data_dir.join("node-id");
        let mut file = lock::take(&path)?;
        let failed = |error| StoreError::file(&path, error);
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let id = match text.trim() {
            "" => {
                let id = NodeId::new(clock);
                let write = |file: &mut File| {
                    file.write_all(format!("{id}\n").as_bytes())
                        .and_then(|()| file.sync_all())
                };
                write(&mut file).map_err(failed)?;
                id
            }
            kept => kept
                .parse()
                .map_err(|error| StoreError::corrupt(format!("`{}`: {error}", path.display())))?,
        };
        Ok(Self { id, _lock: file })
    }

    pub fn id(&self) -> NodeId {
        self.id
    }
}

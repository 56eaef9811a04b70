//! Packages made for tests.

use std::fs::File;
use std::io::{Seek, Write};

use zip::write::{SimpleFileOptions, ZipWriter};

/// A package of these parts, packed, open for reading and already unlinked.
pub(super) fn package(parts: &[(&str, &[u8])]) -> File {
    let path = std::env::temp_dir().join(format!("hermes-package-{:016x}", getrandom::u64().unwrap()));
    let options = File::options().read(true).write(true).create_new(true).open(&path);
    let file = options.unwrap();
    std::fs::remove_file(&path).unwrap();
    let mut writer = ZipWriter::new(file);
    for (name, bytes) in parts {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    let mut file = writer.finish().unwrap();
    file.rewind().unwrap();
    file
}

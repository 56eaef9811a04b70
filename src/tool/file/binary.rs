//! Whether a file is text: by its extension before it is opened, by its first
//! characters afterwards.

use std::path::Path;

use crate::base::text::first_chars;

/// Files of these kinds are of no use as text. `.pdf` and `.svg` are left out,
/// as in the original: the one often is text in part, the other is.
const EXTENSIONS: &[&str] = &[
    // images
    "png", "jpg", "jpeg", "gif", "bmp", "ico", "webp", "tiff", "tif", "heic", "heif", "avif", "psd",
    // video
    "mp4", "mov", "avi", "mkv", "webm", "wmv", "flv", "m4v", "mpeg", "mpg", "3gp", // audio
    "mp3", "wav", "ogg", "flac", "aac", "m4a", "wma", "aiff", "opus", "mid", "midi", // archives
    "zip", "tar", "gz", "bz2", "7z", "rar", "xz", "z", "tgz", "tbz2", "zst", "lz4", "iso", "dmg", "cab", "deb", "rpm",
    // programs and libraries
    "exe", "dll", "so", "dylib", "bin", "o", "a", "obj", "lib", "app", "msi", "com", "elf", // office
    "doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "ods", "odp", // fonts
    "ttf", "otf", "woff", "woff2", "eot", // bytecode
    "pyc", "pyo", "class", "jar", "war", "ear", "wasm", "beam", "node", // databases
    "sqlite", "sqlite3", "db", "mdb", "idx", // design
    "ai", "eps", "sketch", "fig", "xd", "blend", "3ds", // others
    "lockb", "dat", "data", "swf", "fla", "pkl", "npy", "npz", "parquet",
];

/// The part of a file that is looked at (the original's figures).
const SNIFFED_CHARS: usize = 1000;
const TEXT_AT_MOST: (usize, usize) = (3, 10);

/// Images that a model which sees could be shown.
const IMAGES: &[&str] = &["png", "jpg", "jpeg", "gif", "webp", "bmp", "ico"];

pub(super) fn is_image(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    IMAGES.contains(&extension.as_str())
}

pub(super) fn has_binary_extension(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    EXTENSIONS.contains(&extension.as_str())
}

/// Whether over 30 % of the first characters are of no text. What is not UTF-8
/// counts as such: it would reach the model as nothing but marks.
pub(super) fn looks_binary(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    let text = first_chars(&text, SNIFFED_CHARS);
    let is_odd = |character: &char| {
        *character == char::REPLACEMENT_CHARACTER || (character.is_control() && !"\n\r\t".contains(*character))
    };
    let odd = text.chars().filter(is_odd).count();
    let (part, whole) = TEXT_AT_MOST;
    text.chars().count() * part < odd * whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_tell_in_any_case() {
        for (path, binary) in [
            ("a.PNG", true),
            ("bun.lockb", true),
            ("a.tar.gz", true),
            ("a.pdf", false),
            ("a.svg", false),
            ("Makefile", false),
            ("png", false),
        ] {
            assert_eq!(has_binary_extension(Path::new(path)), binary, "{path}");
        }
    }

    #[test]
    fn the_first_characters_tell() {
        assert!(looks_binary(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0"));
        assert!(looks_binary(&[0xff, 0xd8, 0xff, 0xe0, 0x80, 0x99]));
        assert!(!looks_binary("한국어 문서\r\n\tsécond".as_bytes()));
        assert!(!looks_binary(b""));
        // Three of ten are still text.
        assert!(!looks_binary(b"abcdefg\x01\x02\x03"));
        assert!(looks_binary(b"abcdef\x01\x02\x03\x04"));
    }
}

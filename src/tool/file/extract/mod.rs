//! The text of documents that are no text files: notebooks, word-processor
//! documents, spreadsheets. Whoever cannot be read here is read as any file.
//!
//! Such a file may be made to burst: what is unpacked, how many parts there are
//! and how long the text becomes are all bounded, whatever the file says of
//! itself, and nothing is unpacked that is not looked at at once.

mod docx;
mod notebook;
mod package;
#[cfg(test)]
mod testing;
mod xlsx;

use std::fs::File;
use std::io;
use std::path::Path;

/// Longer files are not looked into (the original's figure for spreadsheets).
const FILE_BYTES: u64 = 50 << 20;
/// Of the text that comes of it; far more than is ever read page by page.
const TEXT_BYTES: usize = 8 << 20;
const CUT_MARK: &str = "\n[the rest of the document is not shown]\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Notebook,
    Document,
    Sheets,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ExtractError {
    #[error("the document is too large to be looked into")]
    TooLarge,
    #[error("reading it was stopped")]
    Stopped,
    #[error("the document lacks `{0}`")]
    Lacks(&'static str),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Zip(#[from] zip::result::ZipError),
    #[error(transparent)]
    Xml(#[from] quick_xml::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl Kind {
    pub(super) fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_string_lossy().to_lowercase().as_str() {
            "ipynb" => Some(Self::Notebook),
            "docx" => Some(Self::Document),
            "xlsx" => Some(Self::Sheets),
            _ => None,
        }
    }

    /// The document as text.
    pub(super) fn text(self, file: File, is_stopped: &dyn Fn() -> bool) -> Result<String, ExtractError> {
        if FILE_BYTES < file.metadata()?.len() {
            return Err(ExtractError::TooLarge);
        }
        match self {
            Self::Notebook => notebook::text(file),
            Self::Document => docx::text(file, is_stopped),
            Self::Sheets => xlsx::text(file, is_stopped),
        }
    }
}

/// Text that grows no further than its bound.
#[derive(Default)]
struct Text {
    text: String,
    is_full: bool,
}

impl Text {
    fn push(&mut self, piece: &str) {
        if self.is_full || TEXT_BYTES < self.text.len().saturating_add(piece.len()) {
            self.is_full = true;
            return;
        }
        self.text.push_str(piece);
    }

    fn line(&mut self, line: &str) {
        self.push(line);
        self.push("\n");
    }

    fn finish(mut self) -> String {
        if self.is_full {
            self.text.push_str(CUT_MARK);
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_says_which_kind() {
        for (path, kind) in [
            ("a/B.IPYNB", Some(Kind::Notebook)),
            ("a.docx", Some(Kind::Document)),
            ("a.xlsx", Some(Kind::Sheets)),
            ("a.xls", None),
            ("docx", None),
        ] {
            assert_eq!(Kind::of(Path::new(path)), kind, "{path}");
        }
    }

    #[test]
    fn text_ends_at_its_bound_and_says_so() {
        let mut text = Text::default();
        let piece = "x".repeat(1 << 20);
        for _ in 0..9 {
            text.push(&piece);
        }
        text.push("never again");
        let text = text.finish();
        assert_eq!(text.len(), TEXT_BYTES + CUT_MARK.len());
        assert!(text.ends_with(CUT_MARK));
    }

    #[test]
    fn a_file_beyond_the_bound_is_not_opened() {
        let path = std::env::temp_dir().join(format!("hermes-extract-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        file.set_len(FILE_BYTES + 1).unwrap();
        let failed = Kind::Sheets.text(File::open(&path).unwrap(), &|| false);
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(failed, Err(ExtractError::TooLarge)));
    }
}

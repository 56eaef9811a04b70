//! An office document as a package of XML parts, read part by part, event by
//! event. The bounds hold for what is really unpacked, not for what the
//! package's directory promises.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::ControlFlow;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use zip::ZipArchive;

use super::ExtractError;

/// Unpacked of one document, all parts together.
const UNPACKED_BYTES: u64 = 64 << 20;
/// Parts of one document; the directory is held in memory.
const PARTS: u16 = 4_096;
/// The directory's own end and the longest comment behind it.
const TAIL_BYTES: u64 = 22 + 65_535;

pub(super) struct Package<'a> {
    archive: ZipArchive<File>,
    /// What may still be unpacked.
    left: u64,
    is_stopped: &'a dyn Fn() -> bool,
}

/// What a part is made of, names without their prefix.
pub(super) enum Node<'a> {
    Open(&'a str, &'a BytesStart<'a>),
    Close(&'a str),
    Text(&'a str),
}

impl<'a> Package<'a> {
    pub(super) fn open(mut file: File, is_stopped: &'a dyn Fn() -> bool) -> Result<Self, ExtractError> {
        if has_too_many_parts(&mut file)? {
            return Err(ExtractError::TooLarge);
        }
        Ok(Self {
            archive: ZipArchive::new(file)?,
            left: UNPACKED_BYTES,
            is_stopped,
        })
    }

    pub(super) fn has(&self, part: &str) -> bool {
        self.archive.index_for_name(part).is_some()
    }

    /// Shows a part to `each`, until it breaks off or the part ends.
    pub(super) fn walk(
        &mut self,
        part: &str,
        mut each: impl FnMut(Node<'_>) -> ControlFlow<()>,
    ) -> Result<(), ExtractError> {
        let source = Bounded {
            inner: self.archive.by_name(part)?,
            left: &mut self.left,
            is_stopped: self.is_stopped,
        };
        let mut reader = Reader::from_reader(BufReader::new(source));
        reader.config_mut().expand_empty_elements = true;
        let mut buffer = Vec::new();
        loop {
            buffer.clear();
            let event = match reader.read_event_into(&mut buffer) {
                Ok(event) => event,
                Err(_) if (self.is_stopped)() => return Err(ExtractError::Stopped),
                Err(error) => return Err(error.into()),
            };
            let flow = match event {
                Event::Eof => return Ok(()),
                Event::Start(open) => each(Node::Open(open.local_name().into_inner(), &open)),
                Event::End(close) => each(Node::Close(close.local_name().into_inner())),
                Event::Text(text) => each(Node::Text(&text.xml10_content())),
                Event::CData(text) => each(Node::Text(&text.xml10_content())),
                Event::GeneralRef(reference) => match reference.resolve_char_ref()? {
                    Some(character) => each(Node::Text(character.encode_utf8(&mut [0; 4]))),
                    // Entities of a document's own are never expanded.
                    None => each(Node::Text(
                        quick_xml::escape::resolve_predefined_entity(&reference).unwrap_or_default(),
                    )),
                },
                _ => ControlFlow::Continue(()),
            };
            if flow.is_break() {
                return Ok(());
            }
        }
    }
}

/// The value of an attribute, found by its name without the prefix.
pub(super) fn attribute(open: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = open
        .attributes()
        .flatten()
        .find(|attribute| attribute.key.local_name().into_inner() == name)?;
    let value = found.normalized_value(quick_xml::XmlVersion::Implicit1_0);
    value.ok().map(|value| value.into_owned())
}

/// Gives out no more than what is left.
struct Bounded<'a, R> {
    inner: R,
    left: &'a mut u64,
    is_stopped: &'a dyn Fn() -> bool,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Not of the kind `Interrupted`: readers try again on that.
        if (self.is_stopped)() {
            return Err(io::Error::other("stopped"));
        }
        let read = self.inner.read(buffer)?;
        let more = u64::try_from(read).unwrap_or(u64::MAX);
        match self.left.checked_sub(more) {
            Some(left) => *self.left = left,
            None => return Err(io::Error::other("the document unpacks to too much")),
        }
        Ok(read)
    }
}

/// Whether any end of a directory in the file's tail counts more parts than an
/// honest document has, or points to the long form, which counts beyond that.
fn has_too_many_parts(file: &mut File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    file.rewind()?;
    let counts = |window: &[u8]| match window {
        [b'P', b'K', 5, 6, _, _, _, _, _, _, low, high] => PARTS < u16::from_le_bytes([*low, *high]),
        [b'P', b'K', 6, 7, ..] => true,
        _ => false,
    };
    Ok(tail.windows(12).any(counts))
}

//! A word-processor document as text: a line for each paragraph, headings
//! marked, a table row on one line with bars between its cells.

use std::fs::File;
use std::ops::ControlFlow;

use super::package::{Node, Package, attribute};
use super::{ExtractError, Text};

const BODY: &str = "word/document.xml";
/// Headings have levels as in Markdown.
const LEVELS: usize = 6;

pub(super) fn text(file: File, is_stopped: &dyn Fn() -> bool) -> Result<String, ExtractError> {
    let mut package = Package::open(file, is_stopped)?;
    if !package.has(BODY) {
        return Err(ExtractError::Lacks(BODY));
    }
    let mut writer = Writer::default();
    package.walk(BODY, |node| {
        writer.take(&node);
        if writer.text.is_full {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    Ok(writer.text.finish())
}

#[derive(Default)]
struct Writer {
    text: Text,
    paragraph: String,
    /// Inside the words of a run.
    in_words: bool,
    /// Inside the properties of a paragraph, where a tab is a tab stop.
    in_properties: bool,
    /// Inside what stands for newer content in older programs; it says the same.
    in_fallback: bool,
    /// The rows that are open, outermost first, each with its cells.
    rows: Vec<Vec<String>>,
}

impl Writer {
    fn take(&mut self, node: &Node<'_>) {
        match node {
            Node::Close("Fallback") => self.in_fallback = false,
            _ if self.in_fallback => {}
            Node::Open(name, open) => match *name {
                "Fallback" => self.in_fallback = true,
                "pPr" => self.in_properties = true,
                "pStyle" => self.paragraph.push_str(&heading(attribute(open, "val").as_deref())),
                _ if self.in_properties => {}
                "t" => self.in_words = true,
                "tab" => self.paragraph.push('\t'),
                "br" | "cr" => self.paragraph.push('\n'),
                "tr" => self.rows.push(Vec::new()),
                "tc" => self.rows.last_mut().into_iter().for_each(|row| row.push(String::new())),
                _ => {}
            },
            Node::Text(words) if self.in_words => self.paragraph.push_str(words),
            Node::Text(_) => {}
            Node::Close(name) => match *name {
                "t" => self.in_words = false,
                "pPr" => self.in_properties = false,
                "p" => {
                    let paragraph = std::mem::take(&mut self.paragraph);
                    self.write(&paragraph);
                }
                "tr" => {
                    let row = self.rows.pop().unwrap_or_default();
                    self.write(&row.join(" | "));
                }
                _ => {}
            },
        }
    }

    /// A line of the document, or a piece of the cell that is open.
    fn write(&mut self, line: &str) {
        match self.rows.last_mut().and_then(|row| row.last_mut()) {
            None => self.text.line(line),
            Some(cell) => {
                if !cell.is_empty() && !line.is_empty() {
                    cell.push(' ');
                }
                cell.push_str(&line.replace('\n', " "));
            }
        }
    }
}

/// `## ` of `Heading2`.
fn heading(style: Option<&str>) -> String {
    let level = style.and_then(|style| style.to_lowercase().strip_prefix("heading")?.trim().parse().ok());
    match (style, level) {
        (Some("Title"), _) => "# ".to_owned(),
        (_, Some(level @ 1..=LEVELS)) => format!("{} ", "#".repeat(level)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::package;
    use super::*;

    fn of(body: &str) -> Result<String, ExtractError> {
        let xml = format!("<w:document xmlns:w='w'><w:body>{body}</w:body></w:document>");
        text(package(&[(BODY, xml.as_bytes())]), &|| false)
    }

    #[test]
    fn paragraphs_headings_and_tables_become_lines() {
        let body = "<w:p><w:pPr><w:pStyle w:val='Heading2'/><w:tabs><w:tab/></w:tabs></w:pPr>\
            <w:r><w:t>Plan</w:t></w:r></w:p>\
            <w:p><w:r><w:t xml:space='preserve'>a &amp; b &#x2192; </w:t><w:tab/><w:t>한</w:t><w:br/><w:t>c</w:t></w:r></w:p>\
            <w:p/><w:tbl><w:tr><w:tc><w:p><w:r><w:t>x</w:t></w:r></w:p><w:p><w:r><w:t>y</w:t></w:r></w:p></w:tc>\
            <w:tc><w:p/></w:tc><w:tc><w:p><w:r><w:t>z</w:t></w:r></w:p></w:tc></w:tr></w:tbl>\
            <w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:r><w:t>end</w:t></w:r></w:p>";
        assert_eq!(of(body).unwrap(), "## Plan\na & b → \t한\nc\n\nx y |  | z\nend\n");
    }

    #[test]
    fn what_is_no_such_document_is_an_error() {
        assert!(matches!(
            text(package(&[("a", b"x")]), &|| false),
            Err(ExtractError::Lacks(_))
        ));
        assert!(of("<w:p></w:q>").is_err());
        assert!(matches!(
            text(package(&[(BODY, b"<a/>")]), &|| true),
            Err(ExtractError::Stopped)
        ));
    }

    #[test]
    fn entities_of_its_own_are_not_expanded() {
        let bomb = "<!DOCTYPE d [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;'>]>\
            <d xmlns:w='w'><w:p><w:t>x&b;y</w:t></w:p></d>";
        let text = text(package(&[(BODY, bomb.as_bytes())]), &|| false);
        assert_eq!(text.unwrap(), "xy\n");
    }

    /// 100 MiB of one letter, about 100 KiB packed.
    #[test]
    fn a_document_that_bursts_is_given_up() {
        let mut bomb = b"<w:document><w:body><w:p><w:t>".to_vec();
        bomb.resize(100 << 20, b'x');
        let packed = package(&[(BODY, &bomb)]);
        assert!(packed.metadata().unwrap().len() < 1 << 20);
        drop(bomb);
        let failed = text(packed, &|| false).unwrap_err();
        assert!(failed.to_string().contains("too much"), "{failed}");
    }

    #[test]
    fn a_document_of_very_many_parts_is_not_opened() {
        let names: Vec<String> = (0..4_097).map(|number| number.to_string()).collect();
        let parts: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
        assert!(matches!(text(package(&parts), &|| false), Err(ExtractError::TooLarge)));
    }
}

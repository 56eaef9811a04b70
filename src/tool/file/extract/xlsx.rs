//! A spreadsheet as text: sheet after sheet under its name, a line for each row
//! with tabs between its cells. Cells show their values; dates are the numbers
//! that the file keeps.

use std::collections::HashMap;
use std::fs::File;
use std::ops::ControlFlow;

use super::package::{Node, Package, attribute};
use super::{ExtractError, TEXT_BYTES, Text};

/// Of one sheet (the original's figures).
const ROWS: usize = 5_000;
const COLUMNS: usize = 256;
/// Texts that cells share; each costs memory even when it is empty.
const SHARED: usize = 1_000_000;

const WORKBOOK: &str = "xl/workbook.xml";
const RELATIONS: &str = "xl/_rels/workbook.xml.rels";
const SHARED_TEXTS: &str = "xl/sharedStrings.xml";

pub(super) fn text(file: File, is_stopped: &dyn Fn() -> bool) -> Result<String, ExtractError> {
    let mut package = Package::open(file, is_stopped)?;
    if !package.has(WORKBOOK) {
        return Err(ExtractError::Lacks(WORKBOOK));
    }
    let sheets = sheets(&mut package)?;
    let shared = shared_texts(&mut package)?;
    let mut text = Text::default();
    for (name, part) in sheets {
        if text.is_full {
            break;
        }
        text.line(&format!("## Sheet: {name}"));
        if package.has(&part) {
            sheet(&mut package, &part, &shared, &mut text)?;
        }
        text.line("");
    }
    Ok(text.finish())
}

/// The names of the sheets and the parts that hold them, in their order.
fn sheets(package: &mut Package<'_>) -> Result<Vec<(String, String)>, ExtractError> {
    let mut named: Vec<(String, String)> = Vec::new();
    package.walk(WORKBOOK, |node| {
        if let Node::Open("sheet", open) = node
            && let (Some(name), Some(id)) = (attribute(open, "name"), attribute(open, "id"))
        {
            named.push((name, id));
        }
        ControlFlow::Continue(())
    })?;
    let mut targets = HashMap::new();
    package.walk(RELATIONS, |node| {
        if let Node::Open("Relationship", open) = node
            && let (Some(id), Some(target)) = (attribute(open, "Id"), attribute(open, "Target"))
        {
            targets.insert(id, target);
        }
        ControlFlow::Continue(())
    })?;
    let part = |id: &str| {
        let target = targets.get(id)?;
        Some(match target.strip_prefix('/') {
            Some(absolute) => absolute.to_owned(),
            None => format!("xl/{target}"),
        })
    };
    Ok(named
        .into_iter()
        .filter_map(|(name, id)| Some((name, part(&id)?)))
        .collect())
}

/// The texts that cells name by number; readings of characters left out.
fn shared_texts(package: &mut Package<'_>) -> Result<Vec<String>, ExtractError> {
    let (mut texts, mut bytes) = (Vec::new(), 0_usize);
    if !package.has(SHARED_TEXTS) {
        return Ok(texts);
    }
    let (mut current, mut in_words, mut in_reading) = (String::new(), false, false);
    package.walk(SHARED_TEXTS, |node| {
        match node {
            Node::Open("rPh", _) => in_reading = true,
            Node::Close("rPh") => in_reading = false,
            Node::Open("t", _) => in_words = !in_reading,
            Node::Close("t") => in_words = false,
            Node::Text(words) if in_words => {
                bytes = bytes.saturating_add(words.len());
                current.push_str(words);
            }
            Node::Close("si") => texts.push(std::mem::take(&mut current)),
            _ => {}
        }
        if TEXT_BYTES < bytes || SHARED < texts.len() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    if TEXT_BYTES < bytes || SHARED < texts.len() {
        return Err(ExtractError::TooLarge);
    }
    Ok(texts)
}

fn sheet(package: &mut Package<'_>, part: &str, shared: &[String], text: &mut Text) -> Result<(), ExtractError> {
    let mut rows = 0;
    let mut row = Row::default();
    package.walk(part, |node| {
        match node {
            Node::Open("row", _) if rows == ROWS => {
                text.line(&format!("[only the first {ROWS} rows are shown]"));
                return ControlFlow::Break(());
            }
            Node::Open("row", _) => row = Row::default(),
            Node::Close("row") => {
                rows += 1;
                text.line(&row.shown());
            }
            other => row.take(&other, shared),
        }
        if text.is_full {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })
}

#[derive(Default)]
struct Row {
    cells: Vec<String>,
    /// A cell beyond the last column was left out.
    is_cut: bool,
    /// Of the open cell.
    column: usize,
    kind: String,
    value: String,
    in_value: bool,
}

impl Row {
    fn take(&mut self, node: &Node<'_>, shared: &[String]) {
        match node {
            Node::Open("c", open) => {
                // Cells may leave their place out; then they follow each other.
                let place = attribute(open, "r").and_then(|place| column(&place));
                self.column = place.unwrap_or(self.cells.len());
                self.kind = attribute(open, "t").unwrap_or_default();
                self.value.clear();
            }
            Node::Open("v" | "t", _) => self.in_value = true,
            Node::Close("v" | "t") => self.in_value = false,
            Node::Text(words) if self.in_value => self.value.push_str(words),
            Node::Close("c") => self.end_cell(shared),
            _ => {}
        }
    }

    fn end_cell(&mut self, shared: &[String]) {
        if COLUMNS <= self.column {
            self.is_cut = true;
            return;
        }
        let value = match self.kind.as_str() {
            "s" => self
                .value
                .trim()
                .parse::<usize>()
                .ok()
                .and_then(|number| shared.get(number))
                .cloned(),
            "b" => Some(if self.value.trim() == "1" { "TRUE" } else { "FALSE" }.to_owned()),
            _ => Some(std::mem::take(&mut self.value)),
        };
        while self.cells.len() <= self.column {
            self.cells.push(String::new());
        }
        if let Some(cell) = self.cells.get_mut(self.column) {
            *cell = value.unwrap_or_default().replace(['\n', '\r', '\t'], " ");
        }
    }

    fn shown(&self) -> String {
        let line = self.cells.join("\t");
        let mark = if self.is_cut { "\t[more columns]" } else { "" };
        format!("{}{mark}", line.trim_end_matches('\t'))
    }
}

/// 27 of `AB12`, counted from 0.
fn column(place: &str) -> Option<usize> {
    let letters = place.bytes().take_while(u8::is_ascii_alphabetic);
    let number = letters.fold(0_usize, |sum, letter| {
        let digit = usize::from(letter.to_ascii_uppercase() - b'A') + 1;
        sum.saturating_mul(26).saturating_add(digit)
    });
    number.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::super::testing::package;
    use super::*;

    const BOOK: &str = "<workbook xmlns:r='r'><sheets><sheet name='Costs &amp; more' sheetId='1' r:id='rId2'/>\
        <sheet name='Second' sheetId='2' r:id='rId1'/></sheets></workbook>";
    const LINKS: &str = "<Relationships><Relationship Id='rId1' Target='/xl/worksheets/b.xml'/>\
        <Relationship Id='rId2' Target='worksheets/a.xml'/></Relationships>";
    const WORDS: &str = "<sst><si><t>Name</t></si><si><r><t>한</t></r><r><t xml:space='preserve'> 글</t></r>\
        <rPh><t>han</t></rPh></si></sst>";

    fn of(first: &str, second: &str) -> Result<String, ExtractError> {
        let wrapped = |rows: &str| format!("<worksheet><sheetData>{rows}</sheetData></worksheet>");
        let (first, second) = (wrapped(first), wrapped(second));
        let parts = [
            (WORKBOOK, BOOK.as_bytes()),
            (RELATIONS, LINKS.as_bytes()),
            (SHARED_TEXTS, WORDS.as_bytes()),
            ("xl/worksheets/a.xml", first.as_bytes()),
            ("xl/worksheets/b.xml", second.as_bytes()),
        ];
        text(package(&parts), &|| false)
    }

    #[test]
    fn sheets_come_in_their_order_with_their_values() {
        let rows = "<row r='1'><c r='A1' t='s'><v>0</v></c><c r='C1' t='s'><v>1</v></c></row>\
            <row r='2'><c r='A2'><f>1+1</f><v>2</v></c><c r='B2' t='b'><v>1</v></c>\
            <c r='C2' t='inlineStr'><is><t>x\ny</t></is></c><c r='D2' t='str'><v>&lt;z&gt;</v></c></row>";
        let text = of(rows, "<row><c><v>1</v></c><c><v>2</v></c></row>").unwrap();
        assert_eq!(
            text,
            "## Sheet: Costs & more\nName\t\t한 글\n2\tTRUE\tx y\t<z>\n\n## Sheet: Second\n1\t2\n\n"
        );
    }

    #[test]
    fn no_more_rows_and_columns_than_the_bounds_are_shown() {
        let text = of(&"<row><c><v>7</v></c></row>".repeat(5_001), "").unwrap();
        assert_eq!(text.lines().filter(|line| *line == "7").count(), 5_000);
        assert!(text.contains("[only the first 5000 rows are shown]"));
        let wide = of(
            "<row><c r='IV1'><v>last</v></c><c r='IW1'><v>beyond</v></c></row>",
            &"<row><c><v>7</v></c></row>".repeat(5_000),
        );
        let wide = wide.unwrap();
        let line = wide.lines().nth(1).unwrap();
        assert_eq!(line.split('\t').position(|cell| cell == "last"), Some(255));
        assert!(line.ends_with("[more columns]") && !wide.contains("beyond") && !wide.contains("only the first"));
    }

    #[test]
    fn a_cell_far_out_costs_nothing() {
        let text = of("<row><c r='ZZZZZZZZZZZZZZZZZZ1'><v>x</v></c></row>", "").unwrap();
        assert!(text.contains("\n\t[more columns]\n"), "{text}");
    }

    #[test]
    fn texts_beyond_the_bound_are_given_up() {
        let many = format!("<sst>{}</sst>", "<si/>".repeat(1_000_001));
        let parts = [
            (WORKBOOK, BOOK.as_bytes()),
            (RELATIONS, LINKS.as_bytes()),
            (SHARED_TEXTS, many.as_bytes()),
        ];
        assert!(matches!(text(package(&parts), &|| false), Err(ExtractError::TooLarge)));
    }
}

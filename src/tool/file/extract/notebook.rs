//! A notebook as text: cell after cell with what it printed; pictures and other
//! data are left out.

use std::fmt;
use std::fs::File;
use std::io::BufReader;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{ExtractError, Text};

/// A notebook is held in memory whole; longer ones are read as the JSON they are.
const NOTEBOOK_BYTES: u64 = 20 << 20;

pub(super) fn text(file: File) -> Result<String, ExtractError> {
    if NOTEBOOK_BYTES < file.metadata()?.len() {
        return Err(ExtractError::TooLarge);
    }
    let notebook: Notebook = serde_json::from_reader(BufReader::new(file))?;
    Ok(shown(&notebook))
}

/// Fields that every cell has are not optional: so that an array of nothing
/// cannot become many times its length in memory.
#[derive(Deserialize)]
struct Notebook {
    cells: Vec<Cell>,
}

#[derive(Deserialize)]
struct Cell {
    cell_type: String,
    source: Joined,
    #[serde(default)]
    outputs: Vec<Output>,
}

#[derive(Deserialize)]
struct Output {
    #[serde(rename = "output_type")]
    _output_type: String,
    #[serde(default)]
    text: Joined,
    #[serde(default)]
    data: Plain,
    ename: Option<String>,
    evalue: Option<String>,
}

/// The text among the forms of one output.
#[derive(Default)]
struct Plain(String);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Plain;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("forms of an output by their type")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut forms: A) -> Result<Plain, A::Error> {
                let mut plain = Plain::default();
                while let Some(form) = forms.next_key::<String>()? {
                    if form == "text/plain" {
                        plain.0 = forms.next_value::<Joined>()?.0;
                    } else {
                        forms.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(plain)
            }
        }
        deserializer.deserialize_map(Forms)
    }
}

/// Text that is written whole or as a list of lines.
#[derive(Default)]
struct Joined(String);

impl<'de> Deserialize<'de> for Joined {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Lines;
        impl<'de> Visitor<'de> for Lines {
            type Value = Joined;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("text or a list of lines")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Joined, E> {
                Ok(Joined(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut lines: A) -> Result<Joined, A::Error> {
                let mut joined = String::new();
                while let Some(line) = lines.next_element::<String>()? {
                    joined.push_str(&line);
                }
                Ok(Joined(joined))
            }
        }
        deserializer.deserialize_any(Lines)
    }
}

fn shown(notebook: &Notebook) -> String {
    let mut text = Text::default();
    for (cell, number) in notebook.cells.iter().zip(1..) {
        text.line(&format!("# %% cell {number} [{}]", cell.cell_type));
        text.line(cell.source.0.trim_end());
        for output in &cell.outputs {
            let failed = match (&output.ename, &output.evalue) {
                (Some(name), Some(value)) => format!("{name}: {value}"),
                _ => String::new(),
            };
            for printed in [&output.text.0, &output.data.0, &failed] {
                let printed = printed.trim_end();
                if !printed.is_empty() {
                    text.line(&format!("# output of cell {number}:"));
                    text.line(printed);
                }
            }
        }
        text.line("");
    }
    text.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_and_what_they_printed_are_shown_and_pictures_are_not() {
        let notebook = json!({"nbformat": 4, "metadata": {}, "cells": [
            {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "한"]},
            {"cell_type": "code", "execution_count": 1, "source": "print(1)\n1/0", "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
                {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo=", "text/plain": "<Figure>"}},
                {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "division by zero", "traceback": []},
            ]},
        ]});
        let read: Notebook = serde_json::from_value(notebook).unwrap();
        assert_eq!(
            shown(&read),
            "# %% cell 1 [markdown]\n# Title\n한\n\n# %% cell 2 [code]\nprint(1)\n1/0\n# output of cell 2:\n1\n\
             # output of cell 2:\n<Figure>\n# output of cell 2:\nZeroDivisionError: division by zero\n\n"
        );
    }

    #[test]
    fn what_is_no_notebook_is_an_error() {
        for text in [
            "",
            "[]",
            "{\"worksheets\": []}",
            "{\"cells\": [{}]}",
            "{\"cells\": [1]}",
        ] {
            assert!(serde_json::from_str::<Notebook>(text).is_err(), "{text}");
        }
    }
}

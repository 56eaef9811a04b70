//! The figures, as a table for people and as JSON for programs.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

#[derive(Serialize)]
pub(crate) struct Report {
    machine: Machine,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Machine {
    cores: usize,
    kernel: String,
    /// Load of the last minute when the run began: figures of a busy machine
    /// are ratios to the floor or nothing.
    load: String,
    server_bytes: u64,
}

#[derive(Serialize)]
struct Row {
    store: &'static str,
    measure: String,
    value: f64,
    unit: &'static str,
    /// The same of the floor, where it has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    floor: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
}

impl Report {
    pub(crate) fn new(server: &Path) -> Result<Self> {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let machine = Machine {
            cores: std::thread::available_parallelism()?.get(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load: read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
            server_bytes: std::fs::metadata(server)?.len(),
        };
        Ok(Self {
            machine,
            rows: Vec::new(),
        })
    }

    pub(crate) fn add(&mut self, store: &'static str, measure: impl Into<String>, unit: &'static str, value: f64) {
        self.against(store, measure, unit, value, None);
    }

    pub(crate) fn against(
        &mut self,
        store: &'static str,
        measure: impl Into<String>,
        unit: &'static str,
        value: f64,
        floor: Option<f64>,
    ) {
        self.rows.push(Row {
            store,
            measure: measure.into(),
            value,
            unit,
            floor,
            ratio: floor.filter(|floor| 0.0 < *floor).map(|floor| value / floor),
        });
        let row = self.rows.last().map(line).unwrap_or_default();
        // Progress: where nobody reads there is nobody to tell.
        let _unread = writeln!(std::io::stderr(), "{row}");
    }

    pub(crate) fn print(&self, json: Option<&Path>) -> Result<()> {
        let mut out = std::io::stdout().lock();
        let Machine {
            cores,
            kernel,
            load,
            server_bytes,
        } = &self.machine;
        writeln!(
            out,
            "{cores} cores, Linux {kernel}, load {load}, server {:.1} MB\n",
            *server_bytes as f64 / 1e6
        )?;
        writeln!(
            out,
            "{:<9} {:<44} {:>11} {:<9} {:>10} {:>7}",
            "store", "measure", "value", "unit", "floor", "ratio"
        )?;
        for row in &self.rows {
            writeln!(out, "{}", line(row))?;
        }
        let text = serde_json::to_string_pretty(self)?;
        if let Some(path) = json {
            std::fs::write(path, &text)?;
        } else {
            writeln!(out, "\n{text}")?;
        }
        Ok(())
    }
}

fn line(row: &Row) -> String {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.2}"));
    format!(
        "{:<9} {:<44} {:>11.2} {:<9} {:>10} {:>7}",
        row.store,
        row.measure,
        row.value,
        row.unit,
        number(row.floor),
        number(row.ratio)
    )
}

/// The value below which this part of all values lies.
pub(crate) fn quantile(values: impl Iterator<Item = Duration>, part: f64) -> f64 {
    let mut sorted: Vec<f64> = values.map(millis).collect();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len() as f64 * part) as usize;
    sorted
        .get(place.min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or(f64::NAN)
}

pub(crate) fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

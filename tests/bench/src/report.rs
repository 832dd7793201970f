//! What is printed: one JSON object for programs, a table for people.

use std::io::Write as _;
use std::process::ExitCode;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Map, Value, json};

use crate::machine;

/// Figures of one bench, with what they were measured on.
#[derive(Debug)]
pub(crate) struct Report(Map<String, Value>);

impl Report {
    pub(crate) fn new(name: &str, figures: Value) -> Self {
        let mut report = Map::new();
        report.insert("bench".to_owned(), json!(name));
        report.extend(machine::describe());
        if let Value::Object(figures) = figures {
            report.extend(figures);
        }
        Self(report)
    }

    /// To standard output. Fails if nobody reads.
    pub(crate) fn print(&self, as_json: bool) -> ExitCode {
        let text = if as_json {
            Value::Object(self.0.clone()).to_string()
        } else {
            self.tables()
        };
        match writeln!(std::io::stdout().lock(), "{text}") {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        }
    }

    fn tables(&self) -> String {
        let mut plain = table();
        let mut parts = String::new();
        for (name, value) in &self.0 {
            match value {
                Value::Object(rows) => {
                    parts.push_str("\n\n");
                    parts.push_str(&matrix(name, rows));
                }
                figure => {
                    plain.add_row([name.clone(), shown(figure)]);
                }
            }
        }
        align(&mut plain);
        format!("{plain}{parts}")
    }
}

/// Why there are no figures.
pub(crate) fn fail(error: &anyhow::Error) -> ExitCode {
    // Nobody is left to tell that standard error is gone.
    let _ = writeln!(std::io::stderr().lock(), "steward-bench: {error:#}");
    ExitCode::FAILURE
}

/// Objects of the same fields, one row each.
fn matrix(name: &str, rows: &Map<String, Value>) -> String {
    let mut table = table();
    let fields: Vec<&String> = rows
        .values()
        .find_map(Value::as_object)
        .map(|row| row.keys().collect())
        .unwrap_or_default();
    table.set_header(std::iter::once(name).chain(fields.iter().map(|field| field.as_str())));
    for (label, row) in rows {
        let cells = fields.iter().map(|field| shown(&row[field.as_str()]));
        table.add_row(std::iter::once(label.clone()).chain(cells));
    }
    align(&mut table);
    table.to_string()
}

fn table() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table
}

fn align(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

fn shown(figure: &Value) -> String {
    match figure {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_every_figure_and_classes_as_rows() {
        let figures =
            json!({"messages": 10, "classes": {"en1": {"p50": 1.5, "found": 3}, "cjk1": {"p50": 2.5, "found": 4}}});
        let report = Report::new("recall", figures);
        let text = report.tables();
        for part in ["recall", "messages", "10", "en1", "1.5", "cjk1", "found"] {
            assert!(text.contains(part), "{part} is missing from:\n{text}");
        }
        let header = text.lines().position(|line| line.contains("classes"));
        let row = text.lines().position(|line| line.contains("cjk1"));
        assert!(header < row);
    }
}

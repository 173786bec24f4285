//! The table at the end, and the file that a later run is compared with.

use serde_json::json;

/// One figure beside its peer's.
pub struct Row {
    pub what: &'static str,
    pub ours: f64,
    pub peer: &'static str,
    pub theirs: f64,
    pub unit: &'static str,
    /// What is aimed at.
    pub target: &'static str,
    pub note: String,
}

/// Rows of figures.
#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// Adds a figure.
    pub fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// The table for people.
    pub fn text(&self) -> String {
        let mut lines = vec![format!(
            "{:<38} {:>12} {:>14} {:>8}  {:<28} {}",
            "figure", "ours", "peer", "ratio", "target", "peer, notes"
        )];
        for row in &self.rows {
            let (ours, theirs) = (
                format!("{:.2} {}", row.ours, row.unit),
                format!("{:.2} {}", row.theirs, row.unit),
            );
            let ratio = format!("{:.2}", row.ours / row.theirs);
            lines.push(format!(
                "{:<38} {ours:>12} {theirs:>14} {ratio:>8}  {:<28} {}; {}",
                row.what, row.target, row.peer, row.note
            ));
        }
        lines.join("\n")
    }

    /// Writes the figures to the file named by `PLATFORM_BENCH_FILE`, as JSON.
    pub fn save(&self) {
        let Some(file) = std::env::var_os("PLATFORM_BENCH_FILE") else {
            return;
        };
        let rows: Vec<_> = self.rows.iter().map(|row| json!({"figure": row.what, "ours": row.ours, "peer": row.peer, "theirs": row.theirs, "unit": row.unit, "ratio": row.ours / row.theirs, "target": row.target, "note": row.note})).collect();
        let text = serde_json::to_string_pretty(&rows).expect("figures are JSON");
        std::fs::write(&file, text + "\n").expect("the file of the figures can be written");
    }
}

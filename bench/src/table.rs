//! The table at the end, what it says of each target, and the file that a later run is compared with.

use std::path::Path;

use serde_json::{Value, json};

use crate::machine::Machine;

/// What a figure is measured against.
#[derive(Clone, Copy)]
pub enum Target {
    /// Ours divided by the peer's is at most this.
    Ratio(f64),
    /// Ours is at most this, in the unit of the row.
    Ours(f64),
    /// The median of ours less the peer's, round by round, is at most this.
    More(f64),
    /// Nothing yet: the figure is told for later.
    Told,
}

/// One figure beside its peer's, with all rounds.
pub struct Row {
    pub what: &'static str,
    pub ours: Vec<f64>,
    pub peer: &'static str,
    pub theirs: Vec<f64>,
    pub unit: &'static str,
    pub target: Target,
    pub note: String,
}

impl Row {
    fn ratio(&self) -> f64 {
        median(&self.ours) / median(&self.theirs)
    }

    /// Ours less the peer's, in the middle of the rounds.
    fn difference(&self) -> f64 {
        let rounds = self.ours.iter().zip(&self.theirs);
        median(&rounds.map(|(ours, theirs)| ours - theirs).collect::<Vec<_>>())
    }

    fn target_text(&self) -> String {
        match self.target {
            Target::Ratio(most) => format!("ratio at most {most}"),
            Target::Ours(most) => format!("at most {most} {}", self.unit),
            Target::More(most) => format!("at most {most} {} more", self.unit),
            Target::Told => "none yet".to_owned(),
        }
    }

    fn verdict(&self) -> &'static str {
        let is_met = match self.target {
            Target::Ratio(most) => self.ratio() <= most,
            Target::Ours(most) => median(&self.ours) <= most,
            Target::More(most) => self.difference() <= most,
            Target::Told => return "told",
        };
        if is_met { "met" } else { "missed" }
    }

    fn notes(&self) -> impl Iterator<Item = String> {
        let more = match self.target {
            Target::More(_) => format!(
                "{:.1} {} more, in the middle of the rounds",
                self.difference(),
                self.unit
            ),
            _ => String::new(),
        };
        [more, self.note.clone()].into_iter().filter(|note| !note.is_empty())
    }

    fn json(&self) -> Value {
        json!({
            "figure": self.what, "unit": self.unit, "peer": self.peer,
            "ours": {"median": median(&self.ours), "rounds": self.ours},
            "theirs": {"median": median(&self.theirs), "rounds": self.theirs},
            "ratio": self.ratio(), "difference": self.difference(),
            "target": self.target_text(), "verdict": self.verdict(), "note": self.note,
        })
    }
}

/// The middle of the values.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
    }
}

/// The median with the least and the greatest round.
fn spread(values: &[f64], unit: &str) -> String {
    let places = if median(values) >= 100.0 { 0 } else { 3 };
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!(
        "{:.places$} {unit} ({least:.places$}–{greatest:.places$})",
        median(values)
    )
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

    /// The table for people: medians, with the least and the greatest round behind each.
    pub fn text(&self, machine: &Machine) -> String {
        let mut lines = vec![
            machine.text(),
            String::new(),
            format!(
                "{:<40} {:<26} {:<26} {:>6}  {:<22} {:<8} peer",
                "figure", "ours", "the peer's", "ratio", "target", ""
            ),
        ];
        for row in &self.rows {
            lines.push(format!(
                "{:<40} {:<26} {:<26} {:>6.2}  {:<22} {:<8} {}",
                row.what,
                spread(&row.ours, row.unit),
                spread(&row.theirs, row.unit),
                row.ratio(),
                row.target_text(),
                row.verdict(),
                row.peer,
            ));
            lines.extend(row.notes().map(|note| format!("    {note}")));
        }
        lines.join("\n")
    }

    /// Writes all rounds of all figures to `file`, as JSON.
    pub fn save(&self, machine: &Machine, file: &Path) -> std::io::Result<()> {
        if let Some(directory) = file.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
        let all = json!({"measured_at": chrono::Utc::now(), "machine": machine.json(), "figures": rows});
        std::fs::write(file, format!("{all:#}\n"))
    }
}

//! The printed table.

use super::say;

/// One line: ours against the comparison.
pub struct Row {
    /// What was measured.
    pub what: String,
    /// Ours, with its unit.
    pub ours: String,
    /// The comparison, with its unit.
    pub comparison: String,
    /// Ours divided by the comparison.
    pub ratio: f64,
    /// The bound of the ratio.
    pub target: Target,
}

/// On which side of a bound a ratio should be.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
}

impl Target {
    fn met(self, ratio: f64) -> bool {
        match self {
            Self::AtMost(bound) => ratio <= bound,
            Self::AtLeast(bound) => ratio >= bound,
        }
    }
}

/// Prints rows under a title.
pub fn print(title: &str, rows: &[Row]) {
    say(&format!("\n{title}\n"));
    say("| what | ours | comparison | ratio | target | met |");
    say("|---|---:|---:|---:|---:|---|");
    for Row { what, ours, comparison, ratio, target } in rows {
        let bound = match target {
            Target::AtMost(bound) => format!("≤ {bound:.2}"),
            Target::AtLeast(bound) => format!("≥ {bound:.2}"),
        };
        let met = if target.met(*ratio) { "yes" } else { "no" };
        say(&format!("| {what} | {ours} | {comparison} | {ratio:.2} | {bound} | {met} |"));
    }
}

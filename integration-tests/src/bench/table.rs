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

impl Row {
    /// Two times, in microseconds; ours should be at most `bound` times the other.
    pub fn time(what: String, ours_us: f64, comparison_us: f64, bound: f64) -> Self {
        let show = |us: f64| if us < 100_000.0 { format!("{us:.0} µs") } else { format!("{:.0} ms", us / 1_000.0) };
        Self {
            what,
            ours: show(ours_us),
            comparison: show(comparison_us),
            ratio: ours_us / comparison_us,
            target: Target::AtMost(bound),
        }
    }

    /// Two sizes in MiB; ours should be at most `bound` times the other.
    pub fn size(what: String, ours_mib: f64, comparison_mib: f64, bound: f64) -> Self {
        let show = |mib: f64| format!("{mib:.0} MiB");
        Self {
            what,
            ours: show(ours_mib),
            comparison: show(comparison_mib),
            ratio: ours_mib / comparison_mib,
            target: Target::AtMost(bound),
        }
    }

    /// Two figures that are only shown.
    pub fn shown(what: String, ours: f64, comparison: f64, unit: &str) -> Self {
        let show = |figure: f64| format!("{figure:.0} {unit}");
        Self { what, ours: show(ours), comparison: show(comparison), ratio: ours / comparison, target: Target::None }
    }

    /// Two numbers of calls a second; ours should be at least `bound` times the other.
    pub fn throughput(what: String, ours: f64, comparison: f64, bound: f64) -> Self {
        Self {
            what,
            ours: format!("{ours:.0}/s"),
            comparison: format!("{comparison:.0}/s"),
            ratio: ours / comparison,
            target: Target::AtLeast(bound),
        }
    }
}

/// On which side of a bound a ratio should be.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
    /// There is none.
    None,
}

impl Target {
    const fn met(self, ratio: f64) -> &'static str {
        let met = match self {
            Self::AtMost(bound) => ratio <= bound,
            Self::AtLeast(bound) => ratio >= bound,
            Self::None => return "",
        };
        if met { "yes" } else { "no" }
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
            Target::None => String::new(),
        };
        let met = target.met(*ratio);
        say(&format!("| {what} | {ours} | {comparison} | {ratio:.2} | {bound} | {met} |"));
    }
}

//! Tables for people.

use comfy_table::{ContentArrangement, Table, presets};

/// What stands where there is nothing to say.
const NOTHING: &str = "-";
/// Blanks between two columns.
const GAP: u16 = 2;

/// A table with these columns.
pub(super) fn table<const N: usize>(columns: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(columns.map(str::to_uppercase));
    table
}

/// A cell: cleaned, since what it shows came from elsewhere, and on one line.
pub(super) fn cell(text: impl AsRef<str>) -> String {
    let (text, _) = footbridge_shared::text::clean(text.as_ref());
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() { NOTHING.to_owned() } else { line }
}

/// A cell that may be empty.
pub(super) fn optional(text: Option<impl AsRef<str>>) -> String {
    text.map_or_else(|| NOTHING.to_owned(), cell)
}

/// The table as text: fitted to the terminal, or one line a row for a pipe.
pub(super) fn rendered(mut table: Table, terminal: bool) -> String {
    table.set_content_arrangement(if terminal { ContentArrangement::Dynamic } else { ContentArrangement::Disabled });
    for column in table.column_iter_mut() {
        column.set_padding((0, GAP));
    }
    table.trim_fmt()
}

/// A time span for people: `120 ms`, `4.2 s`, `3 min 05 s`.
pub(super) fn elapsed(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min {:02} s", ms / 60_000, ms % 60_000 / 1_000),
    }
}

/// A number of bytes for people: `812 B`, `12.3 KiB`.
pub(super) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut tenths = count * 10 / 1024;
    let mut unit = UNITS[0];
    for larger in &UNITS[1..] {
        if tenths < 10 * 1024 {
            break;
        }
        tenths /= 1024;
        unit = larger;
    }
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_gets_one_line_a_row_whatever_the_cells_hold() {
        let mut table = table(["name", "description"]);
        table.add_row([cell("a"), cell(format!("two\nlines \u{1b}[31m {}", "long ".repeat(60)))]);
        table.add_row([cell("longer_name"), optional(None::<&str>)]);
        let text = rendered(table, false);
        assert_eq!(text.lines().count(), 3);
        assert!(text.starts_with("NAME         DESCRIPTION\n"), "{text}");
        assert!(text.ends_with("longer_name  -"), "{text:?}");
    }

    #[test]
    fn amounts_are_rounded_down_to_what_people_read() {
        assert_eq!([elapsed(999), elapsed(4_290), elapsed(185_000)], ["999 ms", "4.2 s", "3 min 05 s"]);
        assert_eq!(
            [bytes(1023), bytes(1024), bytes(12_700), bytes(5 << 20), bytes(u64::MAX / 16)],
            ["1023 B", "1.0 KiB", "12.4 KiB", "5.0 MiB", "1048575.9 TiB"]
        );
    }
}

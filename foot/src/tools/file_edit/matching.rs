//! Finding the text that an edit replaces, whatever the line ends of the file are.

use std::ops::Range;

/// Line numbers that are told of places, at most.
pub(super) const MAX_LINES_TOLD: usize = 10;

/// All places of `wanted` in `text`, overlapping ones too. A line feed of `wanted` stands for either line end.
pub(super) fn places(text: &str, wanted: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let Some(first) = wanted.as_bytes().first() else { return Vec::new() };
    // A carriage return may stand before the line feed that is looked for.
    let starts = |byte: u8| byte == *first || (*first == b'\n' && byte == b'\r');
    let mut found = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        // The second half of a line end is no place of its own: the first half was one.
        let within_line_end = *byte == b'\n' && *first == b'\n' && at > 0 && bytes.get(at - 1) == Some(&b'\r');
        if starts(*byte)
            && !within_line_end
            && let Some(length) = length_at(bytes.get(at..).unwrap_or_default(), wanted.as_bytes())
        {
            found.push(at..at + length);
        }
    }
    found
}

/// How many bytes `wanted` takes at the start of `text`, if it stands there.
fn length_at(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let (mut length, mut before) = (0, 0);
    for byte in wanted {
        match text.get(length..)? {
            [b'\r', b'\n', ..] if *byte == b'\n' && before != b'\r' => length += 2,
            [found, ..] if found == byte => length += 1,
            _ => return None,
        }
        before = *byte;
    }
    Some(length)
}

/// Those places of a list that do not overlap one before them.
pub(super) fn apart(places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut end = 0;
    places
        .into_iter()
        .filter(|place| {
            place.start >= end && {
                end = place.end;
                true
            }
        })
        .collect()
}

/// Whether most lines of a text end with a carriage return and a line feed.
pub(super) fn has_crlf(text: &str) -> bool {
    let both = text.matches("\r\n").count();
    both > 0 && 2 * both >= text.matches('\n').count()
}

/// New text for a place, with the line ends that stand there, else with those of the file.
pub(super) fn with_line_ends(new: &str, replaced: &str, file_has_crlf: bool) -> String {
    let crlf = if replaced.contains('\n') { has_crlf(replaced) } else { file_has_crlf };
    let mut out = String::with_capacity(new.len());
    let mut before = '\0';
    for c in new.chars() {
        if c == '\n' && before != '\r' && crlf {
            out.push('\r');
        }
        out.push(c);
        before = c;
    }
    out
}

/// The number of the line that a byte is in, from 1.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

/// Numbers of the lines in which places start, for people.
pub(super) fn told_lines(text: &str, places: &[Range<usize>]) -> String {
    let mut lines: Vec<String> =
        places.iter().take(MAX_LINES_TOLD).map(|place| line_of(text, place.start).to_string()).collect();
    if places.len() > MAX_LINES_TOLD {
        lines.push("…".to_owned());
    }
    lines.join(", ")
}

/// The line in which `wanted` stands if white space does not count.
pub(super) fn nearly_at(text: &str, wanted: &str) -> Option<usize> {
    let wanted: Vec<&str> = wanted.split_whitespace().collect();
    let (first, rest) = wanted.split_first()?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut at = 0;
    loop {
        // The words of the edit are whole ones but at its ends.
        let next = words
            .get(at..)?
            .iter()
            .position(|word| if rest.is_empty() { word.contains(first) } else { word.ends_with(first) })?;
        at += next;
        let (last, middle) = rest.split_last().map_or((None, rest), |(last, middle)| (Some(last), middle));
        let behind = words.get(at + 1..).unwrap_or_default();
        let same = behind.starts_with(middle)
            && last.is_none_or(|last| behind.get(middle.len()).is_some_and(|word| word.starts_with(last)));
        if same {
            let word = words.get(at)?;
            // Both are parts of one text: their distance is where the word stands.
            return Some(line_of(text, word.as_ptr().addr() - text.as_ptr().addr()));
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn starts(text: &str, wanted: &str) -> Vec<usize> {
        places(text, wanted).into_iter().map(|place| place.start).collect()
    }

    fn spans(text: &str, wanted: &str) -> Vec<(usize, usize)> {
        places(text, wanted).into_iter().map(|place| (place.start, place.end)).collect()
    }

    #[test]
    fn places_that_overlap_count_each() {
        assert_eq!(starts("aaaa", "aa"), [0, 1, 2]);
        assert_eq!(apart(places("aaaa", "aa")), [0..2, 2..4]);
        assert_eq!(starts("é漢é", "é"), [0, 5]);
        assert!(starts("abc", "abcd").is_empty());
    }

    #[test]
    fn a_line_feed_stands_for_either_line_end_and_a_given_one_for_itself() {
        assert_eq!(spans("a\r\nb\nb", "a\nb"), [(0, 4)]);
        assert_eq!(spans("a\r\nb", "\nb"), [(1, 4)]);
        assert_eq!(spans("a\r\nb", "\n"), [(1, 3)]);
        assert_eq!(spans("a\r\n\r\nb", "\n\n"), [(1, 5)]);
        assert_eq!(spans("a\r\r\nb", "\r\n"), [(2, 4)]);
        assert!(places("a\nb", "a\r\nb").is_empty());
        assert!(places("a\rb", "a\nb").is_empty());
    }

    #[test]
    fn new_text_takes_the_line_ends_of_its_place_before_those_of_the_file() {
        assert_eq!(with_line_ends("x\ny\r\n", "old", true), "x\r\ny\r\n");
        assert_eq!(with_line_ends("x\ny", "one\ntwo", true), "x\ny");
        assert_eq!(with_line_ends("x\ny", "one\r\ntwo", false), "x\r\ny");
        assert!(has_crlf("a\r\nb\r\nc\n") && !has_crlf("a\nb\nc\r\n") && !has_crlf("a"));
    }

    #[test]
    fn a_near_match_differs_in_white_space_alone() {
        let text = "fn a() {\n\tlet  x = 1;\n}\n";
        assert_eq!(nearly_at(text, "{\n    let x = 1;"), Some(1));
        assert_eq!(nearly_at(text, "let x = 1"), Some(2));
        assert_eq!(nearly_at(text, "let x = 2"), None);
        assert_eq!(nearly_at(text, " \n"), None);
    }

    proptest! {
        #[test]
        fn without_line_ends_places_are_what_a_plain_search_finds(text in "[ab漢]{0,24}", wanted in "[ab漢]{1,3}") {
            let plain: Vec<usize> = (0..text.len()).filter(|at| text.is_char_boundary(*at) && text[*at..].starts_with(&wanted)).collect();
            prop_assert_eq!(starts(&text, &wanted), plain);
        }

        #[test]
        fn all_places_are_whole_characters_and_equal_what_was_wanted(text in "[a\r\né]{0,16}", wanted in "[a\r\né]{1,3}") {
            for place in places(&text, &wanted) {
                let found = text.get(place).unwrap();
                prop_assert_eq!(found.replace("\r\n", "\n"), wanted.replace("\r\n", "\n"));
            }
        }
    }
}

//! Keeping answers within a frame, and within what a model can use.

use serde::Serialize;

/// Bytes that an answer may take twice: once as text for the model, once as JSON for programs. Both, with what is
/// around them, fit one frame of 64 KiB.
pub(crate) const ANSWER_BYTES: usize = 28 * 1024;

/// Bytes that a character takes within a JSON string.
pub(crate) const fn json_len(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        c => c.len_utf8(),
    }
}

/// The start of a text that has at most so many characters and takes at most so many bytes of JSON, and how many
/// characters it has.
pub(crate) fn head(text: &str, max_chars: usize, max_json_bytes: usize) -> (&str, usize) {
    let (mut chars, mut bytes) = (0, 0);
    for (at, c) in text.char_indices() {
        bytes += json_len(c);
        if chars == max_chars || bytes > max_json_bytes {
            return (text.get(..at).unwrap_or_default(), chars);
        }
        chars += 1;
    }
    (text, chars)
}

/// What is left for a list of entries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    text: usize,
    json: usize,
}

impl Budget {
    pub(crate) const fn new() -> Self {
        Self { text: ANSWER_BYTES, json: ANSWER_BYTES }
    }

    /// Takes the room for one more line of text and one more JSON value; `false` if there is none.
    pub(crate) fn take<T: Serialize + ?Sized>(&mut self, line: &str, value: &T) -> bool {
        let text = line.chars().map(json_len).sum::<usize>() + 2;
        let json = super::output::raw(value).get().len() + 1;
        let fits = text <= self.text && json <= self.json;
        if fits {
            self.text -= text;
            self.json -= json;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_length_of_json_is_foreseen(text in any::<String>()) {
            let encoded = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(text.chars().map(json_len).sum::<usize>() + 2, encoded.len());
        }

        #[test]
        fn a_head_keeps_both_limits_and_is_as_long_as_they_allow(text in any::<String>(), chars in 0usize..40, bytes in 0usize..80) {
            let (kept, count) = head(&text, chars, bytes);
            let encoded = |text: &str| text.chars().map(json_len).sum::<usize>();
            prop_assert!(text.starts_with(kept) && kept.chars().count() == count);
            prop_assert!(count <= chars && encoded(kept) <= bytes);
            if let Some(next) = text[kept.len()..].chars().next() {
                prop_assert!(count == chars || encoded(kept) + json_len(next) > bytes);
            }
        }
    }
}

//! What is known of a line that is too long to be kept.

/// Bytes of an outline. One that has more is cut, and cannot be read: it is that of no message.
const OUTLINE_BYTES: usize = 4096;

/// The outermost level of JSON, without what is inside of its values: `{"id":1,"result":{}}`; of a batch that of each message. Servers write the `id` before
/// a long result or after it.
#[derive(Debug, Default)]
pub(super) struct Outline {
    text: Vec<u8>,
    depth: u64,
    /// How deep it is looked into: one level, and one more in a batch.
    levels: u64,
    in_string: bool,
    is_escaped: bool,
}

impl Outline {
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.text.len() == OUTLINE_BYTES {
                return;
            }
            if self.levels == 0 && !byte.is_ascii_whitespace() {
                self.levels = if *byte == b'[' { 2 } else { 1 };
            }
            let was_outside = self.depth <= self.levels;
            match byte {
                _ if std::mem::take(&mut self.is_escaped) => {}
                b'\\' => self.is_escaped = self.in_string,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            if was_outside || self.depth <= self.levels {
                self.text.push(*byte);
            }
        }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(text: &str, cut: usize) -> String {
        let mut outline = Outline::default();
        text.as_bytes().chunks(cut).for_each(|piece| outline.feed(piece));
        String::from_utf8(outline.text().to_vec()).unwrap()
    }

    #[test]
    fn what_is_inside_of_values_is_left_out() {
        for (text, expected) in [
            (
                r#"{"result":{"a":["}\"]",{"id":7}]},"id":"a\"{","jsonrpc":"2.0"}"#,
                r#"{"result":{},"id":"a\"{","jsonrpc":"2.0"}"#,
            ),
            (r#" [{"id":1,"result":{"a":[2]}},[2]]"#, r#" [{"id":1,"result":{}},[2]]"#),
            ("}}{\"a\":[1]}", "}}{\"a\":[]}"),
        ] {
            for cut in [1, 5, 100] {
                assert_eq!(outline(text, cut), expected);
            }
        }
        assert_eq!(outline(&"x".repeat(9000), 100).len(), OUTLINE_BYTES);
    }
}

//! JSON as editors take it: with comments, and commas behind the last entry.

/// Where a reader of such a text is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Json,
    Text,
    Line,
    Block,
}

/// The same as plain JSON. Spaces stand for what is taken away: lines and columns of errors stay right. What is no JSON
/// stays none.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = At::Json;
    // Where a comma stands that nothing has followed yet.
    let mut comma = None;
    let mut chars = text.trim_start_matches('\u{feff}').chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        match (at, c) {
            (At::Json, '/') if matches!(next, Some('/' | '*')) => {
                chars.next();
                at = if next == Some('/') { At::Line } else { At::Block };
                out.push_str("  ");
            }
            (At::Json, _) => {
                match c {
                    ',' => comma = Some(out.len()),
                    '}' | ']' => {
                        if let Some(comma) = comma.take() {
                            out.replace_range(comma..=comma, " ");
                        }
                    }
                    _ if c.is_whitespace() => {}
                    _ => comma = None,
                }
                at = if c == '"' { At::Text } else { At::Json };
                out.push(c);
            }
            (At::Text, _) => {
                out.push(c);
                match c {
                    '\\' => out.extend(chars.next()),
                    '"' => at = At::Json,
                    _ => {}
                }
            }
            (At::Line | At::Block, '\n') => {
                at = if at == At::Line { At::Json } else { at };
                out.push('\n');
            }
            (At::Block, '*') if next == Some('/') => {
                chars.next();
                at = At::Json;
                out.push_str("  ");
            }
            (At::Line | At::Block, _) => out.push(' '),
        }
    }
    // One that does not end is none.
    if at == At::Block {
        out.push('*');
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn comments_and_last_commas_are_taken_away_outside_of_texts() {
        for (text, meant) in [
            ("\u{feff}{} // end", json!({})),
            ("/* a \" b */ {\"a\": 1, /* , */ // c\n}", json!({"a": 1})),
            ("{\"a\": [1, 2,\n], }", json!({"a": [1, 2]})),
            (
                r#"{"u": "http://x/*y*/", "b": "\"//,}", "c": "\\", }"#,
                json!({"u": "http://x/*y*/", "b": "\"//,}", "c": "\\"}),
            ),
            ("[1 /**/, /*/ 2, /*/ 3 /* * / **/]", json!([1, 3])),
        ] {
            assert_eq!(serde_json::from_str::<Value>(&plain(text)).unwrap(), meant, "{text}");
        }
    }

    #[test]
    fn what_is_no_json_stays_none() {
        for text in ["[,", "[1,,]", "{} /", "{} /* ", "[1 2]", "\"a"] {
            assert!(serde_json::from_str::<Value>(&plain(text)).is_err(), "{text}");
        }
        let error = serde_json::from_str::<Value>(&plain("{ // ä\n  /* x */ ?}")).unwrap_err();
        assert_eq!((error.line(), error.column()), (2, 11));
    }
}

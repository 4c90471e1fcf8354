//! The one text of a JSON value: RFC 8785, with numbers kept exact.
//!
//! The RFC writes a number as the double nearest to it. Two integers beyond 2^53 could then be one text, and a call with
//! other arguments would be taken for the same one. So a number keeps all its digits here, and what a double holds comes
//! out just as the RFC wants it.

use std::fmt::Write as _;

use serde_json::value::RawValue;

/// How deep lists and objects may lie in each other: as deep as this program's readers of JSON go.
const MAX_NESTING: usize = 128;
/// Longest exponent that is calculated with, in digits; a number with a longer one stays as it was written.
const MAX_EXPONENT_DIGITS: usize = 15;

/// Why a value has no canonical text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalError {
    /// Lists and objects lie in each other too deeply.
    #[error("the JSON is nested more than {MAX_NESTING} deep")]
    TooDeep,
    /// It is no JSON.
    #[error("the text is no JSON")]
    Malformed,
}

/// The canonical text: equal for values that differ in blanks, order of keys or spelling alone, and for no others. Of a
/// key that stands twice both values count, in their order.
///
/// # Errors
/// [`CanonicalError::TooDeep`] for a value that no tool of the hub could read either.
pub fn canonical(json: &RawValue) -> Result<String, CanonicalError> {
    let mut scanner = Scanner { text: json.get(), at: 0 };
    let mut out = String::with_capacity(json.get().len());
    scanner.value(&mut out, 0)?;
    Ok(out)
}

/// Walks over text that was read as JSON before.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next byte that is no blank, taken.
    fn token(&mut self) -> Option<u8> {
        self.blank();
        let byte = self.peek();
        self.at += 1;
        byte
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn since(&self, start: usize) -> Result<&'a str, CanonicalError> {
        self.text.get(start..self.at).ok_or(CanonicalError::Malformed)
    }

    fn value(&mut self, out: &mut String, depth: usize) -> Result<(), CanonicalError> {
        self.blank();
        match self.peek() {
            Some(b'{' | b'[') if depth >= MAX_NESTING => return Err(CanonicalError::TooDeep),
            Some(b'{') => self.object(out, depth)?,
            Some(b'[') => self.list(out, depth)?,
            Some(b'"') => out.push_str(&Text::of(self.string()?).written),
            Some(b'-' | b'0'..=b'9') => out.push_str(&number(self.run(is_of_number)?)),
            Some(b't' | b'f' | b'n') => out.push_str(self.run(|byte| byte.is_ascii_alphabetic())?),
            _ => return Err(CanonicalError::Malformed),
        }
        Ok(())
    }

    /// The bytes from here on that are of a kind.
    fn run(&mut self, of_kind: impl Fn(u8) -> bool) -> Result<&'a str, CanonicalError> {
        let start = self.at;
        while self.peek().is_some_and(&of_kind) {
            self.at += 1;
        }
        self.since(start)
    }

    /// A string with its quotes.
    fn string(&mut self) -> Result<&'a str, CanonicalError> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
                None => return Err(CanonicalError::Malformed),
            }
        }
        self.at += 1;
        self.since(start)
    }

    fn list(&mut self, out: &mut String, depth: usize) -> Result<(), CanonicalError> {
        self.at += 1;
        out.push('[');
        self.blank();
        if self.peek() == Some(b']') {
            self.at += 1;
        } else {
            loop {
                self.value(out, depth + 1)?;
                match self.token() {
                    Some(b',') => out.push(','),
                    Some(b']') => break,
                    _ => return Err(CanonicalError::Malformed),
                }
            }
        }
        out.push(']');
        Ok(())
    }

    fn object(&mut self, out: &mut String, depth: usize) -> Result<(), CanonicalError> {
        self.at += 1;
        let mut members: Vec<(Text, String)> = Vec::new();
        self.blank();
        if self.peek() == Some(b'}') {
            self.at += 1;
        } else {
            loop {
                self.blank();
                if self.peek() != Some(b'"') {
                    return Err(CanonicalError::Malformed);
                }
                let key = Text::of(self.string()?);
                if self.token() != Some(b':') {
                    return Err(CanonicalError::Malformed);
                }
                let mut value = String::new();
                self.value(&mut value, depth + 1)?;
                members.push((key, value));
                match self.token() {
                    Some(b',') => {}
                    Some(b'}') => break,
                    _ => return Err(CanonicalError::Malformed),
                }
            }
        }
        // The order of the RFC: by UTF-16 units. A key that stands twice keeps the order of its values.
        members.sort_by(|(a, _), (b, _)| a.plain.encode_utf16().cmp(b.plain.encode_utf16()));
        out.push('{');
        for (index, (key, value)) in members.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            // Writing to a text cannot fail.
            let _ = write!(out, "{}:{value}", key.written);
        }
        out.push('}');
        Ok(())
    }
}

/// A string as it is sorted and as it is written.
struct Text {
    plain: String,
    written: String,
}

impl Text {
    fn of(quoted: &str) -> Self {
        match serde_json::from_str::<String>(quoted) {
            Ok(plain) => Self { written: serde_json::Value::from(plain.as_str()).to_string(), plain },
            // Half a surrogate pair is no text. It stays as it was written, which no other string becomes.
            Err(_) => Self { plain: quoted.to_owned(), written: quoted.to_owned() },
        }
    }
}

fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

/// A number in the notation of ECMAScript, with all its digits.
fn number(text: &str) -> String {
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return "0".to_owned();
    }
    let Some(exponent) = small_exponent(exponent) else { return text.to_owned() };
    // The value is 0.SIGNIFICANT × 10^point.
    let leading_zeros = digits.len() - significant.len();
    let point = exponent + length(whole) - length(&digits[..leading_zeros]);
    format!("{sign}{}", notation(significant.trim_end_matches('0'), point))
}

fn small_exponent(text: &str) -> Option<i64> {
    let digits = text.trim_start_matches(['-', '+']).trim_start_matches('0');
    let size: i64 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    (digits.len() <= MAX_EXPONENT_DIGITS).then_some(if text.starts_with('-') { -size } else { size })
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

/// `Number::toString` of ECMAScript: `digits` without zeros at either end, the decimal point `point` digits from the left.
fn notation(digits: &str, point: i64) -> String {
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
    let count = length(digits);
    if count <= point && point <= 21 {
        return format!("{digits}{}", zeros(point - count));
    }
    if let Some((whole, fraction)) =
        usize::try_from(point).ok().filter(|at| (1..=21).contains(at)).and_then(|at| digits.split_at_checked(at))
    {
        return format!("{whole}.{fraction}");
    }
    if -6 < point && point <= 0 {
        return format!("0.{}{digits}", zeros(-point));
    }
    let (first, rest) = digits.split_at(1);
    let dot = if rest.is_empty() { "" } else { "." };
    format!("{first}{dot}{rest}e{:+}", point - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn of(json: &str) -> Result<String, CanonicalError> {
        canonical(&RawValue::from_string(json.to_owned()).unwrap())
    }

    #[test]
    fn the_examples_of_the_rfc_come_out_as_it_says() {
        let numbers = "{ \"numbers\": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],\n
            \"string\": \"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\", \"literals\": [null, true, false] }";
        assert_eq!(
            of(numbers).unwrap(),
            "{\"literals\":[null,true,false],\"numbers\":[333333333.33333329,1e+30,4.5,0.002,1e-27],\
             \"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}",
            "the first number alone has more digits than a double, and keeps them"
        );
        let keys = r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",
            "\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#;
        let found: serde_json::Map<String, Value> = serde_json::from_str(&of(keys).unwrap()).unwrap();
        let order: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(order, ["\r", "1", "\u{80}", "ö", "€", "\u{1f600}", "\u{fb33}"]);
    }

    #[test]
    fn numbers_are_told_apart_to_the_last_digit_and_their_spellings_are_not() {
        for (one, other) in [
            ("9007199254740993", "9007199254740992"),
            ("1e400", "1e401"),
            ("1e99999999999999999999", "1e99999999999999999998"),
            ("0.1000000000000000055", "0.1"),
            ("1e-400", "0"),
            ("1", "-1"),
        ] {
            assert_ne!(of(one), of(other), "{one} {other}");
        }
        for same in
            [["1", "1.0", "10e-1"], ["1200", "1.2e3", "12E+2"], ["0", "-0", "0.0e9"], ["0.5", "5e-1", "00000.5e0"]]
        {
            let texts: Vec<String> = same.iter().map(|text| number(text)).collect();
            assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
        }
    }

    #[test]
    fn what_is_odd_is_still_told_apart() {
        assert_eq!(of(r#"{"a":1,"a":2}"#).unwrap(), r#"{"a":1,"a":2}"#);
        assert_ne!(of(r#"{"a":1,"a":2}"#), of(r#"{"a":2,"a":1}"#));
        assert_ne!(of(r#""\ud800""#), of(r#""\ud801""#));
        assert_eq!(of(&format!("{}{}", "[".repeat(128), "]".repeat(128))).unwrap().len(), 256);
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(of(&deep), Err(CanonicalError::TooDeep));
    }

    #[test]
    fn doubles_are_written_as_javascript_writes_them() {
        for (text, wanted) in [
            ("1e21", "1e+21"),
            ("123456789012345680000", "123456789012345680000"),
            ("0.000001", "0.000001"),
            ("1e-7", "1e-7"),
            ("-1.5e300", "-1.5e+300"),
            ("120.50", "120.5"),
        ] {
            assert_eq!(number(text), wanted);
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1e6..1e6_f64).prop_map(Value::from),
            "\\PC{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c\\u{e000}\\u{1f600}\"]{0,3}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// The same value with its keys the other way round.
    fn reversed(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(reversed).collect(),
            Value::Object(map) => {
                Value::Object(map.iter().rev().map(|(key, value)| (key.clone(), reversed(value))).collect())
            }
            leaf => leaf.clone(),
        }
    }

    proptest! {
        #[test]
        fn order_and_blanks_do_not_matter(value in json()) {
            let pretty = serde_json::to_string_pretty(&reversed(&value)).unwrap();
            prop_assert_eq!(of(&pretty), of(&value.to_string()));
        }

        #[test]
        fn the_text_is_the_same_value_and_the_same_text_again(value in json()) {
            let text = of(&value.to_string()).unwrap();
            prop_assert_eq!(of(&text).unwrap(), text);
        }

        #[test]
        fn two_values_have_one_text_only_if_they_are_equal(one in json(), other in json()) {
            // Compared as numbers are written: to the canonical text 1 and 1.0 are one number.
            let written = |value: &Value| serde_json::from_str::<Value>(&of(&value.to_string()).unwrap()).unwrap();
            prop_assert_eq!(of(&one.to_string()) == of(&other.to_string()), written(&one) == written(&other));
        }
    }
}

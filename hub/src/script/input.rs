//! JSON text → JavaScript value.
//!
//! As `JSON.parse`, but for one thing: an integer literal whose digits a Number would not give back (`2^53 + 1`, an id of
//! twenty digits) becomes a BigInt. All other numbers become the nearest Number, also when that loses digits behind the
//! point; what is too large for one (`1e400`) becomes Infinity, and `-0` stays `-0`. Every key becomes an own property,
//! `__proto__` too.

use rquickjs::object::Property;
use rquickjs::{Array, BigInt, Ctx, Object, Value};

use super::limits::{MAX_VALUE_DEPTH, MAX_VALUE_NODES};
use super::number::survives_as_number;

/// Why JSON does not become a value.
#[derive(Debug, thiserror::Error)]
pub(super) enum InputError {
    /// Nested too deeply.
    #[error("the JSON nests more than {MAX_VALUE_DEPTH} levels deep")]
    Depth,
    /// Too many values.
    #[error("the JSON holds more than {MAX_VALUE_NODES} values")]
    Nodes,
    /// The engine's own error: out of memory, as a rule.
    #[error(transparent)]
    Engine(#[from] rquickjs::Error),
}

/// Makes a value of JSON text, which must be valid JSON.
pub(super) fn from_json<'js>(ctx: &Ctx<'js>, json: &str) -> Result<Value<'js>, InputError> {
    if survey(json)? {
        let mut builder = Builder { ctx, json, at: 0 };
        builder.value()
    } else {
        // The engine's own parser is several times faster and differs in nothing else.
        Ok(ctx.json_parse(json)?)
    }
}

/// Checks the limits. Answers whether some integer must become a BigInt.
fn survey(json: &str) -> Result<bool, InputError> {
    let bytes = json.as_bytes();
    let (mut at, mut depth, mut nodes, mut big) = (0, 0_usize, 1_usize, false);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b'-' | b'0'..=b'9' => {
                let end = number_end(bytes, at);
                big |= !survives_as_number(&json[at..end]);
                at = end;
            }
            _ => {
                match byte {
                    b'[' | b'{' => depth += 1,
                    b']' | b'}' => depth = depth.saturating_sub(1),
                    b',' => nodes += 1,
                    _ => {}
                }
                if depth > MAX_VALUE_DEPTH {
                    return Err(InputError::Depth);
                }
                at += 1;
            }
        }
    }
    if nodes > MAX_VALUE_NODES { Err(InputError::Nodes) } else { Ok(big) }
}

/// The place behind a string that starts at `at`.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    at += 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The place behind a number that starts at `at`.
fn number_end(bytes: &[u8], at: usize) -> usize {
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    bytes[at..].iter().position(|byte| !is_part(byte)).map_or(bytes.len(), |length| at + length)
}

/// Builds a value by hand, for JSON that holds large integers. The JSON is valid and its depth is checked.
struct Builder<'a, 'js> {
    ctx: &'a Ctx<'js>,
    json: &'a str,
    at: usize,
}

impl<'js> Builder<'_, 'js> {
    /// The next byte that is no blank.
    fn peek(&mut self) -> u8 {
        let rest = &self.json.as_bytes()[self.at..];
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.at += blanks;
        rest.get(blanks).copied().unwrap_or_default()
    }

    /// Steps over `byte` if it is next.
    fn skip(&mut self, byte: u8) -> bool {
        let found = self.peek() == byte;
        self.at += usize::from(found);
        found
    }

    fn value(&mut self) -> Result<Value<'js>, InputError> {
        match self.peek() {
            b'{' => self.object(),
            b'[' => self.array(),
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.string(),
            // `true`, `false` or `null`.
            _ => {
                let rest = &self.json[self.at..];
                let end = rest.bytes().position(|byte| !byte.is_ascii_lowercase()).unwrap_or(rest.len());
                self.at += end;
                Ok(self.ctx.json_parse(&rest[..end])?)
            }
        }
    }

    fn string(&mut self) -> Result<Value<'js>, InputError> {
        let end = string_end(self.json.as_bytes(), self.at);
        let text = &self.json[self.at..end];
        self.at = end;
        Ok(self.ctx.json_parse(text)?)
    }

    fn number(&mut self) -> Result<Value<'js>, InputError> {
        let end = number_end(self.json.as_bytes(), self.at);
        let literal = &self.json[self.at..end];
        self.at = end;
        if survives_as_number(literal) {
            return Ok(self.ctx.json_parse(literal)?);
        }
        match literal.parse::<i64>() {
            Ok(number) => Ok(BigInt::from_i64(self.ctx.clone(), number)?.into_value()),
            // The literal itself is the one way to a larger BigInt that a script cannot bend.
            Err(_) => Ok(self.ctx.eval(format!("{literal}n"))?),
        }
    }

    fn array(&mut self) -> Result<Value<'js>, InputError> {
        let array = Array::new(self.ctx.clone())?;
        self.at += 1;
        if self.skip(b']') {
            return Ok(array.into_value());
        }
        for index in 0.. {
            let value = self.value()?;
            array.as_object().prop(index as u32, own(value))?;
            if !self.skip(b',') {
                break;
            }
        }
        self.at += 1;
        Ok(array.into_value())
    }

    fn object(&mut self) -> Result<Value<'js>, InputError> {
        let object = Object::new(self.ctx.clone())?;
        self.at += 1;
        if self.skip(b'}') {
            return Ok(object.into_value());
        }
        loop {
            self.peek();
            let key = self.string()?;
            self.skip(b':');
            let value = self.value()?;
            object.prop(key, own(value))?;
            if !self.skip(b',') {
                break;
            }
        }
        self.at += 1;
        Ok(object.into_value())
    }
}

/// An ordinary property, defined and not assigned: no setter of a polluted prototype sees it.
fn own<V>(value: V) -> Property<V> {
    Property::from(value).writable().enumerable().configurable()
}

#[cfg(test)]
mod tests {
    use super::super::output::to_json;
    use super::super::watch::Watch;
    use super::*;
    use rquickjs::{Context, Runtime};

    fn around(json: &str) -> String {
        let context = Context::full(&Runtime::new().unwrap()).unwrap();
        context.with(|ctx| {
            let value = from_json(&ctx, json).unwrap();
            to_json(&ctx, &Watch::default(), value, 1 << 20).unwrap()
        })
    }

    #[test]
    fn integers_survive_whatever_their_size() {
        for json in [
            "9007199254740991",
            "9007199254740993",
            "-9007199254740993",
            "1152921504606846976",
            "9223372036854775807",
            "9223372036854775808",
            "123456789012345678901234567890",
            "-123456789012345678901234567890",
            r#"{"id":9007199254740993,"list":[1,"x\"y",9007199254740993,null,true,{"é":0.5}],"__proto__":9007199254740995}"#,
        ] {
            assert_eq!(around(json), json);
        }
        assert_eq!(
            around(" [ 9007199254740993 , { \"a\" : [ ] , \"b\" : { } } ] "),
            r#"[9007199254740993,{"a":[],"b":{}}]"#
        );
    }

    #[test]
    fn other_numbers_become_the_nearest_number() {
        for (json, back) in [
            ("1e400", "null"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("1.0", "1"),
            ("0.1234567890123456789012345", "0.12345678901234568"),
            ("1e3", "1000"),
            ("1e21", "1e+21"),
            ("5e-324", "5e-324"),
        ] {
            assert_eq!(around(json), back, "{json}");
        }
    }

    #[test]
    fn keys_are_data_even_where_they_name_a_setter() {
        let json = r#"{"__proto__":{"evil":true},"constructor":1}"#;
        assert_eq!(around(json), json);
    }

    #[test]
    fn depth_and_number_of_values_are_bounded() {
        let context = Context::full(&Runtime::new().unwrap()).unwrap();
        context.with(|ctx| {
            let deep = format!("{}{}", "[".repeat(101), "]".repeat(101));
            assert!(matches!(from_json(&ctx, &deep), Err(InputError::Depth)));
            let wide = format!("[0{}]", ",0".repeat(MAX_VALUE_NODES));
            assert!(matches!(from_json(&ctx, &wide), Err(InputError::Nodes)));
            assert!(from_json(&ctx, "[\"[[[[\\\"]\"]").is_ok(), "brackets in strings do not count");
        });
    }
}

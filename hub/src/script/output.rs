//! JavaScript value → JSON text.
//!
//! As `JSON.stringify`, without going through anything that a script can replace, and with limits. The differences: a
//! BigInt is written as its digits, integers below 10^21 with all of theirs, a half surrogate as U+FFFD (JSON readers
//! refuse it otherwise), and `new Number(1)` and its like are objects without properties.

use rquickjs::atom::PredefinedAtom;
use rquickjs::function::This;
use rquickjs::object::Filter;
use rquickjs::{Atom, Coerced, Ctx, Error, Object, Value};

use super::limits::{MAX_VALUE_DEPTH, MAX_VALUE_NODES};
use super::number::write_number;
use super::watch::Watch;

/// Values written between two looks at the clock.
const NODES_PER_LOOK: usize = 1_024;

/// Why a value does not become JSON.
#[derive(Debug, thiserror::Error)]
pub(super) enum OutputError {
    /// It holds itself.
    #[error("the value holds itself and cannot become JSON")]
    Cyclic,
    /// Nested too deeply.
    #[error("the value nests more than {MAX_VALUE_DEPTH} levels deep")]
    Depth,
    /// Too many values.
    #[error("the value holds more than {MAX_VALUE_NODES} values")]
    Nodes,
    /// Too long a text.
    #[error("the value takes more than {0} bytes of JSON")]
    Size(usize),
    /// The run's time was up; the watch knows.
    #[error("the run is over")]
    Over,
    /// A getter, a proxy or `toJSON` threw, or the engine is out of memory.
    #[error(transparent)]
    Engine(#[from] Error),
}

/// Writes a value as JSON of at most `max_bytes`. What JSON cannot say (`undefined`, functions, symbols) is `null` at the
/// top and in arrays, and left out of objects.
pub(super) fn to_json<'js>(
    ctx: &Ctx<'js>,
    watch: &Watch,
    value: Value<'js>,
    max_bytes: usize,
) -> Result<String, OutputError> {
    let mut writer = Writer { ctx, watch, out: String::new(), within: Vec::new(), nodes: 0, max_bytes };
    if !writer.value(value, Key::Top)? {
        writer.out.push_str("null");
    }
    writer.check_size()?;
    Ok(writer.out)
}

struct Writer<'a, 'js> {
    ctx: &'a Ctx<'js>,
    watch: &'a Watch,
    out: String,
    /// The objects around the place being written.
    within: Vec<Value<'js>>,
    nodes: usize,
    max_bytes: usize,
}

impl<'js> Writer<'_, 'js> {
    /// Writes one value, or nothing and answers `false` for what JSON cannot say.
    fn value(&mut self, value: Value<'js>, key: Key<'js>) -> Result<bool, OutputError> {
        self.count()?;
        let value = through_to_json(value, key)?;
        if let Some(number) = value.as_number() {
            write_number(&mut self.out, number);
        } else if value.is_string() {
            self.string(&value)?;
        } else if let Some(flag) = value.as_bool() {
            self.out.push_str(if flag { "true" } else { "false" });
        } else if value.is_null() {
            self.out.push_str("null");
        } else if value.is_big_int() {
            self.out.push_str(&value.get::<Coerced<String>>()?.0);
        } else if value.is_function() || !value.is_object() {
            return Ok(false);
        } else {
            self.enter(&value)?;
            match value.as_object() {
                Some(object) if is_list(&value)? => self.array(object)?,
                Some(object) => self.object(object)?,
                None => {}
            }
            self.within.pop();
        }
        self.check_size()?;
        Ok(true)
    }

    fn count(&mut self) -> Result<(), OutputError> {
        self.nodes += 1;
        if self.nodes > MAX_VALUE_NODES {
            return Err(OutputError::Nodes);
        }
        if self.nodes.is_multiple_of(NODES_PER_LOOK) && self.watch.over() {
            return Err(OutputError::Over);
        }
        Ok(())
    }

    fn check_size(&self) -> Result<(), OutputError> {
        if self.out.len() > self.max_bytes { Err(OutputError::Size(self.max_bytes)) } else { Ok(()) }
    }

    fn enter(&mut self, value: &Value<'js>) -> Result<(), OutputError> {
        if self.within.contains(value) {
            return Err(OutputError::Cyclic);
        }
        if self.within.len() == MAX_VALUE_DEPTH {
            return Err(OutputError::Depth);
        }
        self.within.push(value.clone());
        Ok(())
    }

    /// A string primitive. The engine's own quoting looks nothing up and leaves no half surrogate unescaped.
    fn string(&mut self, value: &Value<'js>) -> Result<(), OutputError> {
        let quoted = self.ctx.json_stringify(value.clone())?.ok_or(Error::Unknown)?.to_string()?;
        if quoted.contains("\\u") {
            push_without_half_surrogates(&mut self.out, &quoted);
        } else {
            self.out.push_str(&quoted);
        }
        Ok(())
    }

    fn array(&mut self, array: &Object<'js>) -> Result<(), OutputError> {
        let length: f64 = array.get(PredefinedAtom::Length)?;
        self.out.push('[');
        let mut index = 0_u32;
        while f64::from(index) < length {
            if index > 0 {
                self.out.push(',');
            }
            if !self.value(array.get(index)?, Key::Index(index))? {
                self.out.push_str("null");
            }
            index += 1;
        }
        self.out.push(']');
        Ok(())
    }

    fn object(&mut self, object: &Object<'js>) -> Result<(), OutputError> {
        self.out.push('{');
        let mut first = true;
        for key in object.own_keys::<Atom<'js>>(Filter::new().string().enum_only()) {
            let key = key?;
            let before = self.out.len();
            if !first {
                self.out.push(',');
            }
            self.string(key.to_js_string()?.as_value())?;
            self.out.push(':');
            if self.value(object.get(key.clone())?, Key::Name(key))? {
                first = false;
            } else {
                self.out.truncate(before);
            }
        }
        self.out.push('}');
        Ok(())
    }
}

/// Whether a value is written as an array: it is one, or stands for one.
fn is_list(value: &Value<'_>) -> Result<bool, Error> {
    let mut value = value.clone();
    while let Some(proxy) = value.as_proxy() {
        value = proxy.target()?.into_value();
    }
    Ok(value.is_array())
}

/// Where a value stands, as `toJSON` is told.
enum Key<'js> {
    Top,
    Index(u32),
    Name(Atom<'js>),
}

/// What `toJSON` makes of an object that has one; anything else as it is.
fn through_to_json<'js>(value: Value<'js>, key: Key<'js>) -> Result<Value<'js>, Error> {
    let Some(object) = value.as_object() else { return Ok(value) };
    let method: Value<'js> = object.get(PredefinedAtom::ToJSON)?;
    let Some(method) = method.into_function() else { return Ok(value) };
    let this = This(value.clone());
    match key {
        Key::Top => method.call((this, "")),
        Key::Index(index) => method.call((this, index.to_string())),
        Key::Name(name) => method.call((this, name.to_js_string()?)),
    }
}

/// Copies a quoted string, with U+FFFD for each escaped half surrogate: the engine writes whole pairs unescaped.
fn push_without_half_surrogates(out: &mut String, quoted: &str) {
    let mut rest = quoted;
    while let Some(at) = rest.find('\\') {
        let (plain, escape) = rest.split_at(at);
        out.push_str(plain);
        let is_half = escape.len() >= 6
            && matches!(
                escape.get(..4),
                Some("\\ud8" | "\\ud9" | "\\uda" | "\\udb" | "\\udc" | "\\udd" | "\\ude" | "\\udf")
            );
        if is_half {
            out.push('\u{fffd}');
            rest = &escape[6..];
        } else {
            out.push_str(&escape[..2]);
            rest = &escape[2..];
        }
    }
    out.push_str(rest);
}

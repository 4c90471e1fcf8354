//! What a script threw, told in a few words. Reading an exception may run the script's own code (getters, `toString`),
//! which may throw again; whatever does not answer is left out.

use rquickjs::atom::PredefinedAtom;
use rquickjs::{Coerced, Ctx, Error, Object, Value};

use super::frame::{Cause, Thrown};
use super::limits::{MAX_CLASS_CHARS, MAX_MESSAGE_CHARS};
use super::output::to_json;
use super::watch::Watch;

/// The name that the engine knows a script by; its stack lines say `script:line:column`.
pub(super) const FILE: &str = "script";
/// Longest JSON of a thrown object that has no message, in bytes.
const MAX_SHOWN_BYTES: usize = 2_000;

impl Thrown {
    /// An end that the hub's own code found, not the script.
    pub(super) fn own(cause: Cause, class: &str, message: impl Into<String>) -> Self {
        Self { cause, class: class.to_owned(), message: message.into(), line: None, column: None }
    }

    /// An end for want of memory.
    pub(super) fn out_of_memory() -> Self {
        Self::own(Cause::Limit, "InternalError", "out of memory")
    }

    /// An error that an engine call returned; takes the pending exception.
    pub(super) fn from_error(ctx: &Ctx<'_>, watch: &Watch, error: &Error) -> Self {
        match error {
            Error::Exception => Self::from_value(ctx, watch, ctx.catch()),
            Error::Allocation => Self::out_of_memory(),
            other => Self::own(Cause::Exception, "InternalError", other.to_string()),
        }
    }

    /// A thrown value.
    pub(super) fn from_value<'js>(ctx: &Ctx<'js>, watch: &Watch, value: Value<'js>) -> Self {
        let Some(object) = value.as_object() else {
            return Self::own(
                Cause::Exception,
                primitive_class(&value),
                cut(&shown(ctx, watch, &value), MAX_MESSAGE_CHARS),
            );
        };
        let class = class_of(ctx, object);
        let message = text(ctx, object, PredefinedAtom::Message)
            .unwrap_or_else(|| if object.is_error() { String::new() } else { shown(ctx, watch, &value) });
        let (line, column) = text(ctx, object, PredefinedAtom::Stack).and_then(|stack| place(&stack, &class)).unzip();
        let is_limit = matches!(
            (class.as_str(), message.as_str()),
            ("InternalError", "out of memory" | "out of memory in regexp execution")
                | ("RangeError", "Maximum call stack size exceeded")
        );
        Self {
            cause: if is_limit { Cause::Limit } else { Cause::Exception },
            class: cut(&class, MAX_CLASS_CHARS),
            message: cut(&message, MAX_MESSAGE_CHARS),
            line,
            column,
        }
    }
}

/// `None` for what threw, and the exception is gone.
fn quiet<T>(ctx: &Ctx<'_>, result: Result<T, Error>) -> Option<T> {
    if matches!(result, Err(Error::Exception)) {
        ctx.catch();
    }
    result.ok()
}

/// A property that is a string.
fn text(ctx: &Ctx<'_>, object: &Object<'_>, key: PredefinedAtom) -> Option<String> {
    let value: Value<'_> = quiet(ctx, object.get(key))?;
    quiet(ctx, value.as_string()?.to_string())
}

/// The name of an exception; for a class that did not name itself, the name of its constructor.
fn class_of(ctx: &Ctx<'_>, object: &Object<'_>) -> String {
    let named = text(ctx, object, PredefinedAtom::Name).filter(|name| !name.is_empty() && name != "Error");
    named
        .or_else(|| {
            let constructor: Object<'_> = quiet(ctx, object.get(PredefinedAtom::Constructor))?;
            text(ctx, &constructor, PredefinedAtom::Name).filter(|name| !name.is_empty())
        })
        .unwrap_or_else(|| if object.is_error() { "Error".to_owned() } else { "Object".to_owned() })
}

fn primitive_class(value: &Value<'_>) -> &'static str {
    if value.is_string() {
        "String"
    } else if value.is_number() {
        "Number"
    } else if value.is_bool() {
        "Boolean"
    } else if value.is_big_int() {
        "BigInt"
    } else if value.is_symbol() {
        "Symbol"
    } else {
        value.type_name()
    }
}

/// A thrown value that is no exception, as text.
fn shown<'js>(ctx: &Ctx<'js>, watch: &Watch, value: &Value<'js>) -> String {
    if value.is_object() {
        return match to_json(ctx, watch, value.clone(), MAX_SHOWN_BYTES) {
            Ok(json) => json,
            Err(super::output::OutputError::Engine(error)) => {
                quiet(ctx, Err::<(), _>(error));
                String::new()
            }
            Err(_) => String::new(),
        };
    }
    quiet(ctx, value.get::<Coerced<String>>()).map(|text| text.0).unwrap_or_default()
}

/// Line and column of the innermost stack line that lies in the script itself, but not in the exception's own constructor.
fn place(stack: &str, class: &str) -> Option<(u32, u32)> {
    stack.lines().find_map(|line| {
        let mut parts = line.trim_end_matches(')').rsplitn(3, ':');
        let (column, line, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let (function, file) = rest.rsplit_once(['(', ' ']).unwrap_or(("", rest));
        let constructing = function.trim().strip_prefix("at ").is_some_and(|function| function.trim() == class);
        (file == FILE && !constructing).then_some((line.parse().ok()?, column.parse().ok()?))
    })
}

fn cut(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

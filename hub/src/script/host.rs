//! `vance`: what a script sees of the hub. It is frozen, its functions too, and no name leads past it; `vance.params` is a
//! plain value of the script's own.

use std::cell::Cell;
use std::rc::Rc;

use footbridge_shared::message::Raw;
use rquickjs::function::Opt;
use rquickjs::object::Property;
use rquickjs::{Ctx, Error, Exception, Function, Object, Value};
use serde_json::value::RawValue;

use super::frame::{Ask, HostError, Level, Run};
use super::input::{InputError, from_json};
use super::limits::{MAX_LOG_CHARS, MAX_LOG_LINES, MAX_VALUE_BYTES};
use super::output::{OutputError, to_json};
use super::watch::Watch;

/// Name of the global.
pub(super) const GLOBAL: &str = "vance";

/// The other side of `vance`.
pub(super) trait Host {
    /// Asks and waits for the answer.
    fn ask(&self, ask: Ask) -> Result<Raw, HostError>;
    /// Writes a line to the log.
    fn log(&self, level: Level, line: String);
}

/// What the functions of `vance` share.
pub(super) struct Link {
    pub(super) host: Rc<dyn Host>,
    pub(super) watch: Rc<Watch>,
    lines: Cell<u32>,
}

impl Link {
    pub(super) fn new(host: Rc<dyn Host>, watch: Rc<Watch>) -> Self {
        Self { host, watch, lines: Cell::new(0) }
    }

    /// Asks the hub. A script whose time is up gets no answer any more, whatever it catches.
    fn ask<'js>(&self, ctx: &Ctx<'js>, ask: Ask) -> Result<Value<'js>, Error> {
        if self.watch.over() {
            return Err(Exception::throw_internal(ctx, "the run is over"));
        }
        let answer = self.host.ask(ask);
        if self.watch.over() {
            return Err(Exception::throw_internal(ctx, "the run is over"));
        }
        match answer {
            Ok(json) => from_json(ctx, json.get()).map_err(|error| throw_input(ctx, error)),
            Err(error) => Err(throw_host(ctx, error)),
        }
    }

    fn log<'js>(&self, ctx: &Ctx<'js>, level: Level, value: Option<Value<'js>>) -> Result<(), Error> {
        if self.lines.replace(self.lines.get().saturating_add(1)) >= MAX_LOG_LINES {
            return Ok(());
        }
        let text = match value {
            None => String::new(),
            Some(value) => match value.as_string().map(rquickjs::String::to_string) {
                Some(Ok(text)) => text,
                _ => self.json(ctx, value)?,
            },
        };
        self.host.log(level, text.chars().take(MAX_LOG_CHARS).collect());
        Ok(())
    }

    fn json<'js>(&self, ctx: &Ctx<'js>, value: Value<'js>) -> Result<String, Error> {
        to_json(ctx, &self.watch, value, MAX_VALUE_BYTES).map_err(|error| throw_output(ctx, error))
    }

    /// The parameters of an inner call: an object, or nothing.
    fn params<'js>(&self, ctx: &Ctx<'js>, value: Option<Value<'js>>) -> Result<Raw, Error> {
        let json = match value {
            Some(value) if value.is_object() && !value.is_array() && !value.is_function() => self.json(ctx, value)?,
            Some(value) if !value.is_null() && !value.is_undefined() => {
                return Err(Exception::throw_type(ctx, "vance.tools.call(name, params): params must be an object"));
            }
            _ => "{}".to_owned(),
        };
        if !json.starts_with('{') {
            return Err(Exception::throw_type(ctx, "vance.tools.call(name, params): toJSON made params no object"));
        }
        RawValue::from_string(json).map_err(|error| Exception::throw_internal(ctx, &error.to_string()))
    }
}

/// Puts `vance` in place, before anything of the script has run.
pub(super) fn install<'js>(ctx: &Ctx<'js>, run: &Run, link: Rc<Link>) -> Result<(), InputError> {
    let object: Object<'js> = ctx.globals().get("Object")?;
    let freeze: Function<'js> = object.get("freeze")?;
    let frozen = |entries: Vec<(&str, Value<'js>)>| -> Result<Value<'js>, Error> {
        let object = Object::new(ctx.clone())?;
        for (name, value) in entries {
            if value.is_function() {
                freeze.call::<_, ()>((value.clone(),))?;
            }
            object.prop(name, Property::from(value).enumerable())?;
        }
        freeze.call((object,))
    };

    let tools = frozen(tool_functions(ctx, &link)?)?;
    let documents = frozen(vec![("read", read(ctx, link.clone())?)])?;
    let context = from_json(ctx, run.context.get())?;
    freeze.call::<_, ()>((context.clone(),))?;
    let vance = frozen(vec![
        ("tools", tools),
        ("documents", documents),
        ("log", log(ctx, link)?),
        ("context", context),
        ("params", from_json(ctx, run.params.get())?),
    ])?;
    ctx.globals().prop(GLOBAL, Property::from(vance).enumerable())?;
    Ok(())
}

/// Pins the lifetimes of a host function, which the compiler does not infer for closures.
fn pinned<F>(function: F) -> F
where
    F: for<'js> Fn(Ctx<'js>, Opt<Value<'js>>, Opt<Value<'js>>) -> rquickjs::Result<Value<'js>>,
{
    function
}

fn named<'js, F>(ctx: &Ctx<'js>, name: &str, function: F) -> Result<Value<'js>, Error>
where
    F: for<'a> Fn(Ctx<'a>, Opt<Value<'a>>, Opt<Value<'a>>) -> rquickjs::Result<Value<'a>> + 'js,
{
    Ok(Function::new(ctx.clone(), pinned(function))?.with_name(name)?.into_value())
}

fn tool_functions<'js>(ctx: &Ctx<'js>, link: &Rc<Link>) -> Result<Vec<(&'static str, Value<'js>)>, Error> {
    let (call, list, has) = (link.clone(), link.clone(), link.clone());
    Ok(vec![
        (
            "call",
            named(ctx, "call", move |ctx, name, params| {
                let name = string(&ctx, name, "vance.tools.call(name, params): name must be a string")?;
                let params = call.params(&ctx, params.0)?;
                call.ask(&ctx, Ask::Call { name, params })
            })?,
        ),
        ("list", named(ctx, "list", move |ctx, _, _| list.ask(&ctx, Ask::List))?),
        (
            "has",
            named(ctx, "has", move |ctx, name, _| {
                let name = string(&ctx, name, "vance.tools.has(name): name must be a string")?;
                has.ask(&ctx, Ask::Has { name })
            })?,
        ),
    ])
}

fn read<'js>(ctx: &Ctx<'js>, link: Rc<Link>) -> Result<Value<'js>, Error> {
    named(ctx, "read", move |ctx, path, _| {
        let path = string(&ctx, path, "vance.documents.read(path): path must be a string")?;
        link.ask(&ctx, Ask::Read { path })
    })
}

/// `vance.log(level, text)`, or `vance.log(text)`.
fn log<'js>(ctx: &Ctx<'js>, link: Rc<Link>) -> Result<Value<'js>, Error> {
    named(ctx, "log", move |ctx, first, second| {
        match (first.0, second.0) {
            (level, Some(text)) => {
                let level = level.and_then(|level| level.as_string().and_then(|level| level.to_string().ok()));
                link.log(&ctx, level_named(level.as_deref().unwrap_or_default()), Some(text))?;
            }
            (text, None) => link.log(&ctx, Level::Info, text)?,
        }
        Ok(Value::new_undefined(ctx))
    })
}

fn level_named(name: &str) -> Level {
    match name {
        "trace" | "debug" => Level::Debug,
        "warn" | "warning" => Level::Warn,
        "error" => Level::Error,
        _ => Level::Info,
    }
}

fn string<'js>(ctx: &Ctx<'js>, value: Opt<Value<'js>>, otherwise: &str) -> Result<String, Error> {
    match value.0.as_ref().and_then(Value::as_string) {
        Some(text) => text.to_string().map_err(|_| Exception::throw_type(ctx, otherwise)),
        None => Err(Exception::throw_type(ctx, otherwise)),
    }
}

/// Throws what the hub answered as a `ToolError` with `code`, `hint` and `outcome`.
fn throw_host(ctx: &Ctx<'_>, error: HostError) -> Error {
    let build = || -> Result<Exception<'_>, Error> {
        let exception = Exception::from_message(ctx.clone(), &error.message)?;
        let object = exception.as_object();
        let hidden = |value: &str| Property::from(value.to_owned()).writable().configurable();
        object.prop("name", hidden("ToolError"))?;
        object.prop("code", hidden(error.code.as_str()).enumerable())?;
        if let Some(hint) = &error.hint {
            object.prop("hint", hidden(hint).enumerable())?;
        }
        let outcome = serde_json::to_string(&error.outcome).unwrap_or_default();
        object.prop("outcome", hidden(outcome.trim_matches('"')).enumerable())?;
        Ok(exception)
    };
    match build() {
        Ok(exception) => exception.throw(),
        Err(error) => error,
    }
}

/// Throws what is wrong with JSON on its way in.
pub(super) fn throw_input(ctx: &Ctx<'_>, error: InputError) -> Error {
    match error {
        InputError::Engine(error) => error,
        other => Exception::throw_range(ctx, &other.to_string()),
    }
}

/// Throws what is wrong with a value on its way out.
fn throw_output(ctx: &Ctx<'_>, error: OutputError) -> Error {
    match error {
        OutputError::Engine(error) => error,
        OutputError::Cyclic => Exception::throw_type(ctx, &error.to_string()),
        other => Exception::throw_range(ctx, &other.to_string()),
    }
}

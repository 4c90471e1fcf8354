//! One script in one fresh QuickJS runtime.
//!
//! The whole run counts against its limits: the script, the jobs it leaves behind, reading its exception and turning its
//! value into JSON. The engine's interrupt is not catchable, but a promise turns it into a rejection that the next job
//! may swallow; therefore jobs are driven here one by one, with a look at the clock before each.

use std::rc::Rc;
use std::time::Instant;

use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::object::Property;
use rquickjs::promise::PromiseState;
use rquickjs::{Context, Ctx, Error, Persistent, Promise, Runtime, Value};
use serde_json::value::RawValue;

use super::frame::{Cause, Done, Run, Thrown};
use super::host::{GLOBAL, Host, Link, install};
use super::input::{InputError, from_json};
use super::limits::{MAX_STEPS, MAX_VALUE_BYTES, MEMORY_BYTES, MEMORY_HEADROOM_BYTES, STACK_BYTES};
use super::output::{OutputError, to_json};
use super::thrown::FILE;
use super::watch::{Stop, Watch};

/// What a script finds: the language, but neither a fine clock nor shared memory to build one from.
type Language = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
    intrinsic::WeakRef,
    intrinsic::DOMException,
);
/// Come with typed arrays and are taken away again.
const REMOVED_GLOBALS: [&str; 2] = ["Atomics", "SharedArrayBuffer"];
/// How close to its limit a heap is full, in bytes.
const NEARLY_FULL_BYTES: usize = 256 * 1024;
/// What a thrown `null` is called.
const NULL: &str = "null";

/// A runtime that has run nothing yet. Made ahead, so that a call does not wait for it.
pub(super) struct Engine {
    // Dropped in this order.
    context: Context,
    runtime: Runtime,
    watch: Rc<Watch>,
}

/// A value or exception, kept between two visits of the context.
type Kept = Persistent<Value<'static>>;

impl Engine {
    /// A fresh runtime.
    pub(super) fn new() -> Result<Self, Error> {
        Self::watched(Watch::default())
    }

    fn watched(watch: Watch) -> Result<Self, Error> {
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(MEMORY_BYTES);
        runtime.set_max_stack_size(STACK_BYTES);
        let watch = Rc::new(watch);
        let asked = watch.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || asked.tick())));
        let context = Context::custom::<Language>(&runtime)?;
        context.with(|ctx| REMOVED_GLOBALS.iter().try_for_each(|name| ctx.globals().remove(*name)))?;
        Ok(Self { context, runtime, watch })
    }

    /// Runs one script to its end, to its deadline or to a limit.
    pub(super) fn run(self, run: &Run, deadline: Instant, host: Rc<dyn Host>) -> Done {
        self.watch.start(deadline);
        if self.watch.over() {
            return Done::Deadline;
        }
        let done = self.run_unchecked(run, host);
        match self.watch.verdict() {
            Some(Stop::Deadline) => Done::Deadline,
            Some(Stop::Steps) => {
                let message = format!("the script made more than {MAX_STEPS} steps");
                Done::Threw(Thrown::own(Cause::Limit, "InternalError", message))
            }
            None => done,
        }
    }

    /// Runs one script; the watch knows better whether it ended by itself.
    fn run_unchecked(&self, run: &Run, host: Rc<dyn Host>) -> Done {
        let link = Rc::new(Link::new(host, self.watch.clone()));
        let started = self.context.with(|ctx| match start(&ctx, run, link) {
            Ok(promise) => Ok(Persistent::save(&ctx, promise)),
            Err(InputError::Engine(Error::Exception)) => Err(Ok(Persistent::save(&ctx, ctx.catch()))),
            Err(InputError::Engine(error)) => Err(Err(Thrown::from_error(&ctx, &self.watch, &error))),
            Err(other) => Err(Err(Thrown::own(Cause::Limit, "RangeError", other.to_string()))),
        });
        self.context.with(|ctx| while !self.watch.over() && ctx.execute_pending_job() {});
        // A script that filled its heap left no room to say so.
        self.runtime.set_memory_limit(MEMORY_BYTES + MEMORY_HEADROOM_BYTES);
        let done = match started {
            Ok(promise) => self.context.with(|ctx| self.settle(&ctx, promise)),
            Err(Ok(thrown)) => self.context.with(|ctx| {
                Done::Threw(match thrown.restore(&ctx) {
                    Ok(value) => Thrown::from_value(&ctx, &self.watch, value),
                    Err(error) => Thrown::from_error(&ctx, &self.watch, &error),
                })
            }),
            Err(Err(thrown)) => Done::Threw(thrown),
        };
        match done {
            // The engine throws this where it has no memory left for an exception; few scripts do.
            Done::Threw(thrown) if thrown.class == NULL && (!run.source.contains(NULL) || self.nearly_full()) => {
                Done::Threw(Thrown::out_of_memory())
            }
            other => other,
        }
    }

    fn nearly_full(&self) -> bool {
        let used = usize::try_from(self.runtime.memory_usage().malloc_size).unwrap_or(usize::MAX);
        used + NEARLY_FULL_BYTES >= MEMORY_BYTES
    }

    /// The script's value: the last expression's, awaited if it is a promise.
    fn settle(&self, ctx: &Ctx<'_>, promise: Kept) -> Done {
        let value = promise.restore(ctx).and_then(|promise| match awaited(promise)? {
            // The engine wraps the last expression, lest a thenable be awaited by accident.
            Some(wrapped) => match wrapped.as_object() {
                Some(object) => awaited(object.get("value")?),
                None => Ok(Some(Value::new_undefined(ctx.clone()))),
            },
            None => Ok(None),
        });
        match value {
            Ok(Some(value)) => self.deliver(ctx, value),
            Ok(None) => Done::Threw(Thrown::own(
                Cause::Exception,
                "Error",
                "the script waits for a promise that nothing will settle",
            )),
            Err(error) => Done::Threw(Thrown::from_error(ctx, &self.watch, &error)),
        }
    }

    fn deliver<'js>(&self, ctx: &Ctx<'js>, value: Value<'js>) -> Done {
        let failed = |cause, class, message: String| Done::Threw(Thrown::own(cause, class, message));
        match to_json(ctx, &self.watch, value, MAX_VALUE_BYTES) {
            Ok(json) => match RawValue::from_string(json) {
                Ok(raw) => Done::Value(raw),
                Err(error) => failed(Cause::Exception, "InternalError", error.to_string()),
            },
            Err(OutputError::Engine(error)) => Done::Threw(Thrown::from_error(ctx, &self.watch, &error)),
            Err(error @ OutputError::Cyclic) => failed(Cause::Exception, "TypeError", error.to_string()),
            Err(error @ OutputError::Size(_)) => failed(Cause::ResultSize, "RangeError", error.to_string()),
            Err(error) => failed(Cause::Limit, "RangeError", error.to_string()),
        }
    }
}

/// Prepares the globals and runs the script up to its first `await`. Answers its promise.
fn start<'js>(ctx: &Ctx<'js>, run: &Run, link: Rc<Link>) -> Result<Value<'js>, InputError> {
    install(ctx, run, link)?;
    for (name, json) in &run.inputs {
        // The pool refuses this name; a second look costs nothing.
        if name != GLOBAL {
            let value = from_json(ctx, json.get())?;
            ctx.globals().prop(name, Property::from(value).writable().enumerable().configurable())?;
        }
    }
    let mut options = EvalOptions::default();
    options.strict = false;
    options.promise = true;
    options.filename = Some(FILE.to_owned());
    Ok(ctx.eval_with_options(run.source.as_bytes(), options)?)
}

/// The result of a promise, or the value itself if it is none; `None` for one that is pending with no job left.
fn awaited(value: Value<'_>) -> Result<Option<Value<'_>>, Error> {
    match value.clone().into_promise() {
        Some(promise) => settled(&promise),
        None => Ok(Some(value)),
    }
}

fn settled<'js>(promise: &Promise<'js>) -> Result<Option<Value<'js>>, Error> {
    if promise.state() == PromiseState::Pending { Ok(None) } else { promise.result().transpose() }
}

#[cfg(test)]
mod tests;

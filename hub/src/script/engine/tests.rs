//! One script at a time, without processes: what the language does and what it is kept from.

use std::cell::RefCell;

use footbridge_shared::message::Raw;
use footbridge_shared::{ErrorCode, Outcome};

use super::super::frame::{Ask, HostError, Level};
use super::*;

/// A hub that knows one tool and one document, and remembers what it was asked.
#[derive(Default)]
struct Hub {
    heard: RefCell<Vec<String>>,
}

impl Host for Hub {
    fn ask(&self, ask: Ask) -> Result<Raw, HostError> {
        let answer = match &ask {
            Ask::Call { name, params } if name == "echo" => Ok(params.clone()),
            Ask::Has { name } => Ok(raw(if name == "echo" { "true" } else { "false" })),
            Ask::List => Ok(raw(r#"[{"name":"echo","description":"Says it again."}]"#)),
            Ask::Read { path } if path == "notes.md" => Ok(raw(r##""# Notes""##)),
            Ask::Call { .. } | Ask::Read { .. } => Err(HostError {
                code: ErrorCode::UnknownTool,
                message: "there is no such thing here".to_owned(),
                hint: Some("look elsewhere".to_owned()),
                outcome: Outcome::NotRun,
            }),
        };
        self.heard.borrow_mut().push(format!("{ask:?}"));
        answer
    }

    fn log(&self, level: Level, line: String) {
        self.heard.borrow_mut().push(format!("{level:?} {line}"));
    }
}

fn raw(json: &str) -> Raw {
    RawValue::from_string(json.to_owned()).unwrap()
}

/// Far beyond what any of these scripts takes.
const PLENTY_MS: u64 = 20_000;

fn in_ms(ms: u64) -> Instant {
    Instant::now() + std::time::Duration::from_millis(ms)
}

fn run_within(source: &str, ms: u64) -> Done {
    let run = Run {
        source: source.to_owned(),
        inputs: vec![
            ("n".to_owned(), raw("5")),
            ("id".to_owned(), raw("9007199254740993")),
            ("list".to_owned(), raw("[1,2]")),
        ],
        params: raw(r#"{"n":5}"#),
        context: raw(r#"{"tenant":"acme","project":"main","process":null,"user":"ada"}"#),
    };
    Engine::new().unwrap().run(&run, in_ms(ms), Rc::new(Hub::default()))
}

/// The JSON of the value, or `Class: message` of what was thrown.
fn outcome(source: &str) -> String {
    match run_within(source, PLENTY_MS) {
        Done::Value(value) => value.get().to_owned(),
        Done::Threw(thrown) => format!("{}: {}", thrown.class, thrown.message),
        Done::Deadline => "deadline".to_owned(),
    }
}

fn thrown(source: &str) -> Thrown {
    match run_within(source, PLENTY_MS) {
        Done::Threw(thrown) => thrown,
        other => panic!("{source}: {other:?}"),
    }
}

#[test]
fn the_last_expression_is_the_result() {
    for (source, expected) in [
        ("n + 1", "6"),
        ("var a = n; a * 2;", "10"),
        ("if (n > 3) { 'big' } else { 'small' }", r#""big""#),
        ("const a = 1", "null"),
        ("function f() {}", "null"),
        ("undefined", "null"),
        ("", "null"),
        ("let n = 7; n", "7"),
        ("undeclared = 3; undeclared", "3"),
        ("eval('1 + 1')", "2"),
        ("new Function('return 3')()", "3"),
    ] {
        assert_eq!(outcome(source), expected, "{source}");
    }
}

#[test]
fn promises_are_awaited_at_the_top_and_as_the_result() {
    for (source, expected) in [
        ("const a = await Promise.resolve(4); a + n", "9"),
        ("Promise.resolve(9)", "9"),
        ("(async () => { await null; return [1] })()", "[1]"),
        ("let log = []; Promise.resolve().then(() => log.push(1)); log", "[1]"),
        ("({ then(resolve) { resolve(1) }, a: 2 })", r#"{"a":2}"#),
        ("new Promise(() => {})", "Error: the script waits for a promise that nothing will settle"),
        ("await new Promise(() => {})", "Error: the script waits for a promise that nothing will settle"),
        ("Promise.reject(new RangeError('no'))", "RangeError: no"),
    ] {
        assert_eq!(outcome(source), expected, "{source}");
    }
}

#[test]
fn values_become_json_as_stringify_would_and_lose_no_digits() {
    for (source, expected) in [
        ("id", "9007199254740993"),
        (
            "[id + 1n, id, 2 ** 60, 2n ** 80n]",
            "[9007199254740994,9007199254740993,1152921504606846976,1208925819614629174706176]",
        ),
        ("[NaN, Infinity, -0, 0.1, 1e21]", "[null,null,0,0.1,1e+21]"),
        ("[undefined, () => 1, Symbol('s'), , 1]", "[null,null,null,null,1]"),
        ("({ a: undefined, b: () => 1, [Symbol('s')]: 1, c: null })", r#"{"c":null}"#),
        ("new Date(0)", r#""1970-01-01T00:00:00.000Z""#),
        ("({ toJSON(key) { return [key] } })", r#"[""]"#),
        ("({ a: { toJSON(key) { return key } }, b: [{ toJSON(key) { return key } }] })", r#"{"a":"a","b":["0"]}"#),
        ("({ b: 1, a: 2, 1: 3 })", r#"{"1":3,"b":1,"a":2}"#),
        ("JSON.parse('{\"__proto__\": 1}')", r#"{"__proto__":1}"#),
        ("'q\"\\\\\\n\\u0001 é 漢 😀'", r#""q\"\\\n\u0001 é 漢 😀""#),
        ("'\\ud800x\\\\ud800'", "\"\u{fffd}x\\\\ud800\""),
        ("new Map([[1, 2]])", "{}"),
        ("new Proxy([1, 2], {})", "[1,2]"),
        ("const o = {}; [o, o]", "[{},{}]"),
        ("const o = {}; o.o = [o]; o", "TypeError: the value holds itself and cannot become JSON"),
        ("({ get a() { throw new TypeError('getter') } })", "TypeError: getter"),
    ] {
        assert_eq!(outcome(source), expected, "{source}");
    }
}

#[test]
fn errors_have_class_message_and_place() {
    for (source, class, message, place) in [
        ("\n  foo.bar", "ReferenceError", "foo is not defined", Some((2, 3))),
        ("let x = ;", "SyntaxError", "unexpected token in expression: ';'", Some((1, 9))),
        ("return 5", "SyntaxError", "return not in a function", Some((1, 1))),
        ("1;\nthrow new TypeError('x')", "TypeError", "x", Some((2, 11))),
        ("class Oops extends Error {}\nthrow new Oops('y')", "Oops", "y", Some((2, 11))),
        ("const e = new Error('z'); e.name = 'Named'; throw e", "Named", "z", Some((1, 15))),
        ("(async () => {\n await 0;\n throw new RangeError('late') })()", "RangeError", "late", Some((3, 12))),
        ("function f() {\n null.x }\nf()", "TypeError", "cannot read property 'x' of null", Some((2, 2))),
        ("throw 5", "Number", "5", None),
        ("throw 'text'", "String", "text", None),
        ("throw null", "null", "null", None),
        ("throw { a: 1 }", "Object", r#"{"a":1}"#, None),
        ("throw { get name() { throw 1 }, get message() { throw 2 }, get stack() { throw 3 } }", "Object", "", None),
    ] {
        let thrown = thrown(source);
        assert_eq!((thrown.class.as_str(), thrown.message.as_str()), (class, message), "{source}");
        assert_eq!(thrown.line.zip(thrown.column), place, "{source}");
        assert_eq!(thrown.cause, Cause::Exception);
    }
    assert!(thrown("throw new Error('x'.repeat(1e6))").message.len() <= 2_000);
}

#[test]
fn memory_stack_and_result_have_limits() {
    for source in [
        "let a = []; for (;;) a.push('x'.repeat(1000) + a.length)",
        "var a = []; for (;;) a.push({ a: 1 })",
        // Whatever the size of the last straw, and wherever the heap is by the time somebody looks.
        "(() => { let a = []; for (;;) a.push('x'.repeat(10) + a.length) })()",
        "(() => { let a = []; for (;;) a.push(new Array(1000).fill(a.length)) })()",
        "(async () => { await 0; let a = []; for (;;) a.push('x'.repeat(100) + a.length) })()",
        "'x'.repeat(2 ** 29)",
        "const f = () => f(); f()",
        "const f = () => JSON.stringify({ toJSON: f }); f()",
        "let o = 1; for (let i = 0; i < 200; i++) o = [o]; o",
        "new Array(1e9)",
    ] {
        assert_eq!(thrown(source).cause, Cause::Limit, "{source}");
    }
    assert_eq!(thrown("'x'.repeat(9e6)").cause, Cause::ResultSize);
    assert_eq!(outcome("'x'.repeat(3)"), r#""xxx""#, "one script's hunger is not the next one's");
}

#[test]
fn the_budget_of_steps_ends_a_run_that_the_clock_would_let_go_on() {
    let run = Run { source: "for (;;) {}".to_owned(), inputs: vec![], params: raw("{}"), context: raw("{}") };
    let engine = Engine::watched(Watch::with_steps(1_000_000)).unwrap();
    match engine.run(&run, in_ms(PLENTY_MS), Rc::new(Hub::default())) {
        Done::Threw(thrown) => assert_eq!(thrown.cause, Cause::Limit),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_that_a_script_catches_keeps_it_past_its_deadline() {
    const SPINS: [&str; 11] = [
        "for (;;) {}",
        "for (;;) { try { for (;;) {} } catch (e) {} }",
        "try { for (;;) {} } finally { for (;;) {} }",
        "const go = async () => { for (;;) { try { await 0; for (;;) {} } catch (e) {} } };
         go().catch(() => go()).then(() => go()); 'started'",
        "for (;;) await 0",
        "const turn = () => { queueMicrotask(turn) }; turn(); 1",
        "({ toJSON() { for (;;) {} } })",
        "throw { get message() { for (;;) {} } }",
        "/(a+)+$/.test('a'.repeat(40) + 'b')",
        "for (;;) { try { vance.tools.call('echo', {}) } catch (e) {} }",
        "const all = []; for (let i = 0; i < 1e6; i++) all.push(i); all.sort(() => { for (;;) {} })",
    ];
    for source in SPINS {
        assert!(matches!(run_within(source, 100), Done::Deadline), "{source}");
    }
}

#[test]
fn there_is_no_way_out_of_the_language() {
    let absent = "['require', 'process', 'fetch', 'setTimeout', 'console', 'std', 'os', 'performance', 'Atomics',
        'SharedArrayBuffer', 'WebAssembly', 'Worker'].filter(name => name in globalThis)";
    assert_eq!(outcome(absent), "[]");
    assert!(outcome("import('fs')").starts_with("ReferenceError"), "{}", outcome("import('fs')"));
    assert_eq!(outcome("new Date().getTimezoneOffset()"), "0");
}

#[test]
fn vance_offers_tools_documents_context_and_parameters() {
    for (source, expected) in [
        ("vance.tools.call('echo', { a: [id] }).a", "[9007199254740993]"),
        ("vance.tools.call('echo')", "{}"),
        ("[vance.tools.has('echo'), vance.tools.has('x')]", "[true,false]"),
        ("vance.tools.list()[0].name", r#""echo""#),
        ("vance.documents.read('notes.md')", r##""# Notes""##),
        ("vance.context", r#"{"tenant":"acme","project":"main","process":null,"user":"ada"}"#),
        ("vance.params", r#"{"n":5}"#),
        (
            "try { vance.tools.call('other', {}) } catch (e) { [e instanceof Error, e.name, e.message, e.code, e.hint, e.outcome] }",
            r#"[true,"ToolError","there is no such thing here","unknown_tool","look elsewhere","not_run"]"#,
        ),
        ("\nvance.tools.call('other', {})", "ToolError: there is no such thing here"),
        ("vance.tools.call(5)", "TypeError: vance.tools.call(name, params): name must be a string"),
        ("vance.tools.call('echo', [1])", "TypeError: vance.tools.call(name, params): params must be an object"),
        ("vance.tools.call('echo', 'x')", "TypeError: vance.tools.call(name, params): params must be an object"),
        (
            "const o = {}; o.o = o; vance.tools.call('echo', o)",
            "TypeError: the value holds itself and cannot become JSON",
        ),
    ] {
        assert_eq!(outcome(source), expected, "{source}");
    }
    assert_eq!(thrown("\nvance.tools.call('other', {})").line, Some(2));
}

#[test]
fn logging_is_bounded() {
    let hub = Rc::new(Hub::default());
    let source = "vance.log('warn', 'hot'); vance.log('plain'); vance.log('error', { a: 1 });
        for (let i = 0; i < 1000; i++) vance.log('info', 'x'.repeat(1e4))";
    let run = Run { source: source.to_owned(), inputs: vec![], params: raw("{}"), context: raw("{}") };
    Engine::new().unwrap().run(&run, in_ms(PLENTY_MS), hub.clone());
    let heard = hub.heard.borrow();
    assert_eq!(heard[..3], ["Warn hot", "Info plain", r#"Error {"a":1}"#]);
    assert_eq!(heard.len(), 200);
    assert!(heard.iter().all(|line| line.len() < 2_100));
}

#[test]
fn vance_cannot_be_replaced_or_bent() {
    let genuine = "vance.tools.call('echo', { a: 1 }).a";
    for before in [
        "vance = { tools: { call: () => ({ a: 2 }) } };",
        "var vance = { tools: { call: () => ({ a: 2 }) } };",
        "globalThis.vance = 5;",
        "delete globalThis.vance;",
        "vance.tools = { call: () => ({ a: 2 }) };",
        "vance.tools.call = () => ({ a: 2 });",
        "delete vance.tools.call;",
        "try { Object.defineProperty(vance.tools, 'call', { value: () => ({ a: 2 }) }) } catch (e) {}",
        "try { Object.defineProperty(globalThis, 'vance', { value: 5 }) } catch (e) {}",
        "JSON.stringify = () => '{\"a\":2}'; JSON.parse = () => ({ a: 2 }); JSON = null;",
        "Object.prototype.toJSON = undefined;",
        "Object.defineProperty(Object.prototype, 'a', { set() { throw 1 }, configurable: true });",
        "Object.freeze = Object.keys = Object.getOwnPropertyNames = () => { throw 1 };",
        "Array.prototype[Symbol.iterator] = () => { throw 1 };",
        "Function.prototype.call = Function.prototype.apply = () => { throw 1 };",
        "BigInt = String = Number = Error = undefined;",
        "vance.context.tenant = 'other'; if (vance.context.tenant !== 'acme') throw 1;",
    ] {
        assert_eq!(outcome(&format!("{before} {genuine}")), "1", "{before}");
    }
    let frozen =
        "[vance, vance.tools, vance.tools.call, vance.documents, vance.log, vance.context].every(Object.isFrozen)";
    assert_eq!(outcome(frozen), "true");
    assert_eq!(outcome("let vance = 5;"), "SyntaxError: redeclaration of 'vance'");
    assert_eq!(outcome("function vance() {}"), "TypeError: cannot define variable 'vance'");
}

#[test]
fn a_bent_prototype_bends_nothing_but_the_scripts_own_result() {
    for source in [
        "Object.prototype.then = function (resolve) { resolve(5) }; 1",
        "Object.prototype.then = function () {}; 1",
        "Object.prototype.then = 1; 1",
        "Promise.prototype.then = () => { throw 1 }; 1",
        "Object.defineProperty(Object.prototype, 'value', { get() { throw 3 }, set() { throw 4 } }); 1",
    ] {
        // Whatever comes of it, the run ends in time and the next one is untouched.
        assert!(!matches!(run_within(source, PLENTY_MS), Done::Deadline), "{source}");
        assert_eq!(outcome("({ a: 1 })"), r#"{"a":1}"#);
    }
}

#[test]
fn the_deadline_counts_from_the_start_even_when_nothing_is_left_of_it() {
    assert!(matches!(run_within("1", 0), Done::Deadline));
}

//! Any message of either direction, for property tests.

use footbridge_shared::id::{CallId, FootKey, FootName, InstanceId, ProjectName, SessionId, Subject, TenantName};
use footbridge_shared::limits::Limits;
use footbridge_shared::message::*;
use footbridge_shared::{ErrorCode, Outcome};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;
use serde_json::value::RawValue;

/// A name or id made by a pattern that its rule accepts.
macro_rules! named {
    ($($name:ident: $ty:ty = $pattern:literal;)*) => {
        $(fn $name() -> impl Strategy<Value = $ty> {
            $pattern.prop_map(|text| <$ty>::parse(&text).unwrap())
        })*
    };
}

named! {
    call_id: CallId = "[A-Za-z0-9_-]{1,40}";
    session_id: SessionId = "[A-Za-z0-9_-]{1,40}";
    instance_id: InstanceId = "[A-Za-z0-9_-]{1,40}";
    foot_key: FootKey = "[A-Za-z0-9_-]{43}";
    foot_name: FootName = "[a-z][a-z0-9-]{0,20}";
    subject: Subject = "[a-zé.@:+_-]{1,20}";
    tenant: TenantName = "x[a-z0-9-]{0,20}";
    project: ProjectName = "[a-z][a-z0-9-]{0,20}";
}

/// JSON of any shape and spelling: spaces, escapes and digits are its own.
fn raw() -> impl Strategy<Value = Raw> {
    let odd =
        select(vec!["1.10", "1e400", "-0", "9007199254740993", "\"\\u00e9\\/\"", "[ 1 ,\t2 ]", "{\"a\":1,\"a\":2}"]);
    let leaf = prop_oneof![
        odd.prop_map(str::to_owned),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<String>().prop_map(|text| Value::from(text).to_string()),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(" , "))),
            vec((".{0,8}", inner), 0..4).prop_map(|fields| {
                let field = |(key, value): &(String, String)| format!("{} : {value}", Value::from(key.as_str()));
                format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(","))
            }),
        ]
    })
    .prop_filter_map("is JSON", |text| RawValue::from_string(text).ok())
}

fn text() -> impl Strategy<Value = String> {
    any::<String>()
}

fn number() -> impl Strategy<Value = f64> {
    // Quarters are exact in binary and in JSON.
    any::<i32>().prop_map(|n| f64::from(n) / 4.0)
}

fn code() -> impl Strategy<Value = ErrorCode> {
    select(ErrorCode::ALL)
}

fn outcome() -> impl Strategy<Value = Outcome> {
    select(vec![Outcome::NotRun, Outcome::Completed, Outcome::Unknown])
}

/// A strategy for a struct, field by field; groups keep within the size of a tuple.
macro_rules! build {
    ($name:ident -> $ty:ident { $($field:ident: $strategy:expr),* $(,)? } $({ $($more:ident: $other:expr),* $(,)? })?) => {
        fn $name() -> impl Strategy<Value = $ty> {
            (($($strategy,)*), (Just(()), $($($other,)*)?))
                .prop_map(|(($($field,)*), ((), $($($more,)*)?))| $ty { $($field,)* $($($more,)*)? })
        }
    };
}

build!(foot_info -> FootInfo { name: foot_name(), id: foot_key(), instance: instance_id(), version: text(), os: text(),
    arch: text(), hostname: text(), cwd: option::of(text()) });
build!(resume -> Resume { session: session_id() });
build!(in_flight -> InFlight { call: call_id(), digest: option::of(text()), state: select(vec![InFlightState::Queued,
    InFlightState::Asking, InFlightState::Running, InFlightState::Done]), origin: text() });
build!(server_info -> ServerInfo { name: text(), capabilities: raw(), instructions: option::of(text()),
    protocol: option::of(text()), info: option::of(raw()) });
build!(hello -> Hello { proof: text(), foot: foot_info(), share: share(), tenant: tenant(), project: project(),
    resume: option::of(resume()), in_flight: vec(in_flight(), 0..3), servers: vec(server_info(), 0..3),
    max_concurrent: any::<u32>() });
build!(tool_entry -> ToolEntry { name: text(), original_name: option::of(text()), title: option::of(text()),
    description: text(), search_hint: option::of(text()), prompt_hint: option::of(text()), input_schema: raw(),
    output_schema: option::of(raw()), annotations: option::of(raw()) } { labels: vec(text(), 0..3), primary: any::<bool>(),
    deferred: any::<bool>(), requires_roles: vec(text(), 0..3), profiles: vec(text(), 0..3),
    timeout_ms: option::of(any::<u64>()), max_timeout_ms: option::of(any::<u64>()), pack: option::of(text()),
    extra: option::of(raw()) });
build!(tools -> Tools { revision: any::<u64>(), upsert: vec(tool_entry(), 0..3), remove: vec(text(), 0..3) });
build!(progress -> Progress { call: call_id(), progress: number(), total: option::of(number()), message: option::of(text()) });
build!(output -> Output { call: call_id(), seq: any::<u64>(), stream: select(vec![Stream::Stdout, Stream::Stderr]),
    data: text(), skipped_bytes: option::of(any::<u64>()) });
build!(result -> CallResult { call: call_id(), origin: text(), content: raw(), structured: option::of(raw()),
    is_error: any::<bool>(), meta: option::of(raw()), extra: option::of(raw()) });
build!(failure -> CallFailure { call: call_id(), origin: text(), code: code(), message: text(), hint: option::of(text()),
    outcome: outcome(), retryable: any::<bool>(), retry_after_ms: option::of(any::<u64>()), rpc: option::of(raw()) });
build!(upcall -> Upcall { call: call_id(), id: text(), method: text(), params: raw(), timeout_ms: any::<u64>() });
build!(upcall_cancel -> UpcallCancel { call: call_id(), id: text() });
build!(response -> Response { call: call_id(), result: option::of(raw()), error: option::of(raw()) });
build!(audience -> Audience { subject: subject(), session: option::of(text()) });
build!(notify -> Notify { call: option::of(call_id()), audience: option::of(audience()), server: text(), method: text(),
    params: raw() });
build!(servers -> Servers { servers: vec(server_info(), 0..3) });
build!(bye -> Bye { reason: text() });
build!(ping -> Ping { sent_ms: any::<u64>() });
build!(pong -> Pong { echo_ms: any::<u64>(), sent_ms: any::<u64>() });
build!(credit -> Credit { call: call_id(), bytes: any::<u64>(), hold: any::<bool>() });
build!(parts_from -> PartsFrom { call: call_id(), seq: any::<u32>() });
build!(error -> WireError { code: code(), message: text() });
build!(challenge -> Challenge { nonce: text() });
build!(welcome -> Welcome { session: session_id(), owner: subject(), node: text(), limits: Just(Limits::default()),
    resumed: any::<bool>(), shared_name: option::of(foot_name()) });
build!(rejected_tool -> RejectedTool { tool: text(), code: code(), message: text() });
build!(tools_ack -> ToolsAck { revision: any::<u64>(), rejected: vec(rejected_tool(), 0..3) });
build!(caller_client -> CallerClient { protocol: text(), capabilities: raw(), session: option::of(text()) });
build!(caller -> Caller { subject: subject(), process: option::of(text()), client: option::of(caller_client().prop_map(Box::new)) });
build!(call -> Call { call: call_id(), keyed: any::<bool>(), digest: option::of(text()), tool: text(), arguments: raw(),
    extra: option::of(raw()), deadline_ms: any::<u64>(), idle_ms: any::<u64>(), sent_ms: any::<u64>(), origin: text(), caller: caller() });
build!(request -> Request { call: call_id(), server: text(), method: text(), params: raw(), deadline_ms: any::<u64>(),
    sent_ms: any::<u64>(), caller: caller() });
build!(cancel -> Cancel { call: call_id(), reason: text() });
build!(ack -> Ack { call: call_id() });
build!(upcall_result -> UpcallResult { call: call_id(), id: text(), result: option::of(raw()), error: option::of(raw()) });
build!(draining -> Draining { reconnect_after_ms: any::<u64>(), try_for_ms: any::<u64>() });

fn share() -> impl Strategy<Value = Share> {
    prop_oneof![Just(Share::Owner), Just(Share::Project), vec(subject(), 0..3).prop_map(Share::Subjects)]
}

/// Any message of one direction, each type as likely as another.
macro_rules! any_of {
    ($($strategy:expr),* $(,)?) => { prop_oneof![$($strategy.prop_map(Into::into),)*] };
}

/// Anything a foot may say.
pub(crate) fn foot_to_hub() -> impl Strategy<Value = FootToHub> {
    let first = any_of![
        hello().prop_map(Box::new),
        tools(),
        progress(),
        output(),
        result(),
        failure(),
        upcall(),
        upcall_cancel(),
    ];
    let second = any_of![response(), notify(), servers(), bye(), ping(), pong(), credit(), parts_from(), error()];
    prop_oneof![first, second]
}

/// Anything a hub may say.
pub(crate) fn hub_to_foot() -> impl Strategy<Value = HubToFoot> {
    let first = any_of![challenge(), welcome(), tools_ack(), call(), request(), cancel(), ack(), upcall_result()];
    let second = any_of![draining(), Just(Superseded {}), ping(), pong(), credit(), parts_from(), error()];
    prop_oneof![first, second]
}

//! Commands that go on without a call.

use super::*;
use serde_json::json;

#[tokio::test]
async fn a_command_goes_on_when_nobody_waits_for_it_any_more() {
    let machine = Machine::new();
    let script = "echo begun; read line; echo \"got $line\"; echo late >&2";
    let started = machine.run(json!({"command": script, "stdin": "", "waitMs": 0})).await;
    let id = &started["id"];
    assert_eq!((&started["status"], &started["isError"]), (&json!("running"), &json!(false)), "{started}");
    machine.call("exec_input", json!({"id": id, "data": "more\n"})).await.unwrap();
    let ended = until_ended(&machine, id).await;
    assert_eq!((&ended["status"], &ended["exitCode"]), (&json!("completed"), &json!(0)));
    assert_eq!((&ended["stdoutBytes"], &ended["stderrBytes"]), (&json!(15), &json!(5)));
    let tail = machine.call("exec_tail", json!({"id": id, "lines": 1})).await.unwrap();
    assert_eq!((&tail["stdout"], &tail["stderr"]), (&json!("got more\n"), &json!("late\n")));
    let tail = machine.call("exec_tail", json!({"id": id, "stream": "stdout"})).await.unwrap();
    assert_eq!((&tail["stdout"], &tail["stderr"]), (&json!("begun\ngot more\n"), &Value::Null));
    // Done within the time that is waited, it answers as if it had been waited for.
    let quick = machine.run(json!({"argv": ["echo", "x"], "waitMs": 30_000})).await;
    assert_eq!((&quick["status"], &quick["stdout"]), (&json!("completed"), &json!("x\n")));
}

#[tokio::test]
async fn input_ends_where_it_is_closed_and_says_so() {
    let machine = Machine::new();
    let started = machine.run(json!({"argv": ["wc", "-c"], "stdin": "one", "waitMs": 0})).await;
    let id = &started["id"];
    machine.call("exec_input", json!({"id": id, "data": "four", "close": true})).await.unwrap();
    until_ended(&machine, id).await;
    let tail = machine.call("exec_tail", json!({"id": id})).await.unwrap();
    assert_eq!(tail["stdout"].as_str().unwrap().trim(), "7");
    let without = machine.run(json!({"argv": ["sleep", "1000"], "waitMs": 0})).await;
    for id in [id, &without["id"]] {
        let failure = machine.call("exec_input", json!({"id": id, "data": "x"})).await.unwrap_err();
        assert_eq!((failure.code, failure.outcome), (ErrorCode::NotFound, Outcome::NotRun));
    }
    // One that does not read holds up nothing but the call that writes.
    let deaf = machine.run(json!({"argv": ["sleep", "1000"], "stdin": "x".repeat(200_000), "waitMs": 0})).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let arguments = json!({"id": deaf["id"], "data": "y"});
    let failure = machine.call_as("ada", "exec_input", &arguments, &cancel).await.unwrap_err();
    assert_eq!(failure.code, ErrorCode::Cancelled);
    machine.call("exec_kill", json!({"id": deaf["id"]})).await.unwrap();
}

#[tokio::test]
async fn a_command_is_its_subjects_own() {
    let machine = Machine::new();
    let started = machine.run(json!({"argv": ["sleep", "1000"], "stdin": "", "waitMs": 0})).await;
    let never = CancellationToken::new();
    for tool in ["exec_status", "exec_tail", "exec_input", "exec_kill"] {
        let arguments = json!({ "id": started["id"] });
        let failure = machine.call_as("eve", tool, &arguments, &never).await.unwrap_err();
        assert_eq!(failure.code, ErrorCode::NotFound, "{tool}");
        let unknown = machine.call_as("eve", tool, &json!({"id": "none"}), &never).await.unwrap_err();
        assert_eq!(unknown.message.replace("none", "*"), failure.message.replace(started["id"].as_str().unwrap(), "*"));
    }
    let state = machine.call("exec_status", json!({"id": started["id"]})).await.unwrap();
    assert_eq!(state["status"], "running");
}

#[tokio::test]
async fn a_killed_command_is_gone_and_says_so() {
    let machine = Machine::new();
    let arguments =
        json!({"command": "trap '' TERM; while :; do sleep 1000; done", "waitMs": 0, "env": {"MARK": "kill"}});
    let started = machine.run(arguments).await;
    until_marked("kill", 2, PATIENCE).await;
    let killed = machine.call("exec_kill", json!({"id": started["id"]})).await.unwrap();
    assert_eq!((&killed["status"], &killed["signal"]), (&json!("killed"), &json!(9)), "{killed}");
    assert!(marked("kill").is_empty());
    let again = machine.call("exec_kill", json!({"id": started["id"]})).await.unwrap();
    assert_eq!(again["status"], "killed");
}

#[tokio::test]
async fn only_so_many_run_at_once_and_one_that_ends_makes_room() {
    let machine = Machine::with(Special { max_jobs: 2, ..Special::default() });
    let sleep = json!({"argv": ["sleep", "1000"], "waitMs": 0});
    let first = machine.run(sleep.clone()).await;
    machine.run(sleep.clone()).await;
    let failure = machine.call("exec_run", sleep.clone()).await.unwrap_err();
    assert_eq!((failure.code, failure.outcome), (ErrorCode::TooManyJobs, Outcome::NotRun));
    assert!(failure.retry_after_ms.is_some());
    // What is not started takes no room.
    machine.call("exec_kill", json!({"id": first["id"]})).await.unwrap();
    for _ in 0..3 {
        assert_eq!(machine.call("exec_run", json!({"argv": ["./none"]})).await.unwrap_err().code, ErrorCode::NotFound);
    }
    machine.run(sleep).await;
}

#[tokio::test]
async fn ended_commands_are_remembered_up_to_a_number() {
    let machine = Machine::new();
    let first = machine.shell("echo first").await;
    for _ in 0..65 {
        machine.run(json!({"argv": ["true"]})).await;
    }
    let failure = machine.call("exec_tail", json!({"id": first["id"]})).await.unwrap_err();
    assert_eq!(failure.code, ErrorCode::NotFound);
}

#[tokio::test]
async fn commands_end_when_nobody_keeps_them() {
    let machine = Machine::new();
    let arguments = json!({"command": "sleep 1000 & wait", "waitMs": 0, "env": {"MARK": "unkept"}});
    machine.run(arguments).await;
    until_marked("unkept", 2, PATIENCE).await;
    drop(machine);
    until_marked("unkept", 0, GONE_WITHIN).await;
}

#[tokio::test]
async fn a_flood_is_counted_and_shown_by_its_two_ends() {
    let machine = Machine::new();
    let done =
        machine.shell("echo first; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo last; echo problem >&2").await;
    let (stdout, omitted) = (done["stdout"].as_str().unwrap(), done["stdoutOmittedBytes"].as_u64().unwrap());
    assert!(stdout.starts_with("first\nxxx") && stdout.ends_with("xxx\nlast\n"), "{}", stdout.len());
    assert!(stdout.len() < 16 * 1024 && omitted > 99_000_000, "{} {omitted}", stdout.len());
    assert_eq!((&done["stderr"], &done["stderrOmittedBytes"]), (&json!("problem\n"), &Value::Null));
}

#[tokio::test]
async fn what_it_writes_is_passed_on_while_its_call_waits() {
    let machine = Machine::new();
    let registered: Arc<Registered> = machine.tools.get("exec_run").unwrap();
    let (ctx, mut signs) = context::cancelled_by(CancellationToken::new());
    let script = "printf 'h\\303'; until [ -e first ]; do sleep 0.01; done; printf '\\244llo'; \
        until [ -e second ]; do sleep 0.01; done; echo problem >&2";
    let plan = registered.tool.plan(Arguments::new(raw(&json!({ "command": script }))), &ctx).await.unwrap();
    let listener = async {
        let mut told = Vec::new();
        // It goes on when what it wrote was heard.
        for heard in ["first", "second", "third"] {
            let sign = tokio::time::timeout(PATIENCE, signs.recv()).await.unwrap();
            let Some(context::Sign::Output(output)) = sign else { panic!("{sign:?}") };
            told.push((output.seq, output.stream, output.data));
            std::fs::write(machine.root().join(heard), "").unwrap();
        }
        told
    };
    let (done, told) = tokio::join!(plan.run(ctx), listener);
    done.unwrap();
    use footbridge_shared::message::Stream::{Stderr, Stdout};
    let expected = [(0, Stdout, "h"), (1, Stdout, "ällo"), (2, Stderr, "problem\n")];
    assert_eq!(told, expected.map(|(seq, stream, text)| (seq, stream, text.to_owned())));
}

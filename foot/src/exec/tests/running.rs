//! Commands from start to end.

use super::*;
use serde_json::json;

#[tokio::test]
async fn a_command_answers_with_its_output_and_how_it_ended() {
    let machine = Machine::new();
    let done = machine.run(json!({"argv": ["printf", "%s|", "a b", "$HOME", ""]})).await;
    assert_eq!((&done["status"], &done["exitCode"], &done["isError"]), (&json!("completed"), &json!(0), &json!(false)));
    assert_eq!(done["stdout"], "a b|$HOME||", "no shell looks at the words");
    let done = machine.shell("echo out; echo err >&2; exit 3").await;
    assert_eq!((&done["status"], &done["exitCode"], &done["isError"]), (&json!("failed"), &json!(3), &json!(true)));
    assert_eq!((&done["stdout"], &done["stderr"]), (&json!("out\n"), &json!("err\n")));
    let done = machine.shell("kill -9 $$").await;
    assert_eq!((&done["status"], &done["signal"]), (&json!("failed"), &json!(9)));
}

#[tokio::test]
async fn what_cannot_be_run_says_why_and_did_not_run() {
    let machine = Machine::new();
    std::fs::write(machine.root().join("data"), "").unwrap();
    let long = "x".repeat(1 << 20);
    for (arguments, code) in [
        (json!({"argv": ["no-such-program"]}), ErrorCode::NotFound),
        (json!({"argv": ["./none"]}), ErrorCode::NotFound),
        (json!({"argv": ["./data"]}), ErrorCode::PermissionDenied),
        (json!({"argv": ["true", long]}), ErrorCode::InvalidArguments),
        (json!({"argv": []}), ErrorCode::InvalidArguments),
        (json!({"argv": ["a\0b"]}), ErrorCode::InvalidArguments),
        (json!({"argv": ["true"], "command": "true"}), ErrorCode::InvalidArguments),
        (json!({}), ErrorCode::InvalidArguments),
        (json!({"argv": ["true"], "env": {"FOOTBRIDGE_JOB": "x"}}), ErrorCode::InvalidArguments),
        (json!({"argv": ["true"], "cwd": "none"}), ErrorCode::NotFound),
        (json!({"argv": ["true"], "cwd": "data"}), ErrorCode::NotAFile),
        (json!({"argv": ["true"], "cwd": "/"}), ErrorCode::PathDenied),
    ] {
        let failure = machine.call("exec_run", arguments.clone()).await.unwrap_err();
        assert_eq!((failure.code, failure.outcome), (code, Outcome::NotRun), "{arguments}: {failure}");
    }
}

#[tokio::test]
async fn it_starts_where_it_is_told_with_what_it_is_given_and_no_more() {
    let machine = Machine::new();
    std::fs::create_dir(machine.root().join("sub")).unwrap();
    let done = machine.run(json!({"argv": ["pwd"], "cwd": "sub"})).await;
    assert_eq!(done["stdout"], format!("{}\n", machine.root().canonicalize().unwrap().join("sub").display()));
    let done = machine.run(json!({"argv": ["env"], "env": {"COLOUR": "red"}})).await;
    let names: Vec<&str> = done["stdout"]
        .as_str()
        .unwrap()
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["COLOUR", "FOOTBRIDGE_JOB", "HOME", "PATH", "TMPDIR"]);
    let done = machine.run(json!({"argv": ["cat"], "stdin": "line\n"})).await;
    assert_eq!(done["stdout"], "line\n");
    // One that whoever started the foot left open in it, for all it starts.
    let (left_open, _writer) = std::io::pipe().unwrap();
    rustix::io::fcntl_setfd(&left_open, rustix::io::FdFlags::empty()).unwrap();
    let done = machine.run(json!({"argv": ["readlink", "/proc/self/fd/0"]})).await;
    assert_eq!(done["stdout"], "/dev/null\n");
    let done = machine.run(json!({"argv": ["ls", "/proc/self/fd"]})).await;
    assert_eq!(done["stdout"], "0\n1\n2\n3\n", "its three streams, and the folder that it lists");
}

#[tokio::test]
async fn its_temporary_folder_is_its_own_and_gone_with_it() {
    let machine = Machine::new();
    let done =
        machine.shell("echo $TMPDIR; mktemp; mkdir -p $TMPDIR/a/b; ln -s /usr $TMPDIR/usr; stat -c %a $TMPDIR").await;
    let lines: Vec<&str> = done["stdout"].as_str().unwrap().lines().collect();
    assert_eq!((lines.len(), lines[2]), (3, "700"), "{done}");
    assert!(lines[1].starts_with(lines[0]), "{done}");
    assert!(!Path::new(lines[0]).exists() && Path::new("/usr/bin").exists());
}

/// One that heeds no SIGTERM, one that left the session and whose parent is gone, and the shell that waits.
const FAMILY: &str = "\
sleep 1000 & \
sh -c 'trap \"\" TERM; while :; do sleep 1000; done' & \
(setsid sh -c 'sleep 1000 & wait' &) ; \
wait";
/// Processes of it: the shell, one sleep, a shell with its sleep, and another.
const FAMILY_SIZE: usize = 6;

#[tokio::test]
async fn nothing_is_left_two_seconds_after_a_cancel() {
    let machine = Machine::new();
    let cancel = CancellationToken::new();
    let arguments = json!({"command": FAMILY, "env": {"MARK": "cancel-family"}});
    let call = machine.call_as("ada", "exec_run", &arguments, &cancel);
    let watch = async {
        until_marked("cancel-family", FAMILY_SIZE, PATIENCE).await;
        cancel.cancel();
        until_marked("cancel-family", 0, GONE_WITHIN).await;
    };
    let (ended, ()) = tokio::join!(call, watch);
    let failure = ended.unwrap_err();
    assert_eq!(failure.code, ErrorCode::Cancelled);
    assert!(failure.hint.as_ref().is_some_and(|hint| hint.contains("waitMs")), "what would have helped: {failure:?}");
}

#[tokio::test]
async fn nothing_is_left_when_its_time_is_up_or_the_command_itself_has_ended() {
    let machine = Machine::new();
    let arguments = json!({"command": FAMILY, "env": {"MARK": "deadline-family"}, "deadlineSeconds": 1});
    let done = machine.run(arguments).await;
    assert_eq!((&done["status"], &done["isError"]), (&json!("timed_out"), &json!(true)), "{done}");
    assert!(marked("deadline-family").is_empty());

    let leaves = FAMILY.trim_end_matches("wait");
    let done = machine.run(json!({"command": leaves, "env": {"MARK": "left-family"}})).await;
    assert_eq!(done["status"], "completed", "{done}");
    assert!(marked("left-family").is_empty());
}

#[tokio::test]
async fn nothing_is_left_of_a_command_that_kills_its_launcher() {
    // Confined it cannot; see the tests of the sandbox.
    let machine = Machine::with(Special { sandbox: KernelSandbox::Off, ..Special::default() });
    let late =
        machine.run(json!({"command": format!("sleep 0.2; kill -9 $PPID; {FAMILY}"), "env": {"MARK": "lost"}})).await;
    assert_eq!((&late["status"], &late["isError"]), (&json!("killed"), &json!(true)), "{late}");
    assert!(marked("lost").is_empty());
    // So early that the launcher may not even say that it started the command.
    let early = json!({"command": format!("kill -9 $PPID; {FAMILY}"), "env": {"MARK": "lost"}});
    match machine.call("exec_run", early).await {
        Ok(done) => assert_eq!(done["status"], "killed"),
        Err(failure) => assert_eq!(failure.outcome, Outcome::Unknown),
    }
    assert!(marked("lost").is_empty());
}

#[tokio::test]
async fn a_command_that_does_nothing_but_start_successors_ends() {
    let machine = Machine::new();
    // Each one starts the next and ends; and a few that start two of themselves, some levels deep.
    let storm = "chase() { chase & }; trap '' TERM; chase; chase; \
        split() { [ $1 -gt 0 ] && { split $(($1 - 1)) & split $(($1 - 1)) & }; sleep 1000; }; split 5; wait";
    let arguments = json!({"command": storm, "env": {"MARK": "storm"}, "deadlineSeconds": 1});
    let started = Instant::now();
    let done = machine.run(arguments).await;
    assert_eq!(done["status"], "timed_out", "{done}");
    assert!(started.elapsed() < Duration::from_secs(1) + 3 * GONE_WITHIN, "{:?}", started.elapsed());
    assert!(marked("storm").is_empty());
}

#[tokio::test]
async fn commands_of_the_owner_are_tools_also_where_callers_run_nothing_of_their_own() {
    let commands = "
        - name: show
          description: Shows its words, and what it reads.
          argv: [sh, -c, 'printf \"<%s>\" \"$@\"; echo \"$COLOUR\"; pwd; cat', sh, '{first}', '--n={count}']
          inputs:
          - { name: first, type: string }
          - { name: count, type: integer, required: false }
          cwd: sub
          env: { COLOUR: red }
          stdin: 'read {first}'
        - { name: doze, description: Takes too long., argv: [sleep, '1000'], timeoutSeconds: 1, readOnly: true }
        ";
    let machine = Machine::with(Special { exec: Mode::Deny, commands, ..Special::default() });
    std::fs::create_dir(machine.root().join("sub")).unwrap();
    let entries = machine.tools.entries();
    let told: Vec<(&str, bool)> =
        entries.iter().map(|entry| (&*entry.name, entry.labels.iter().any(|label| label == "read-only"))).collect();
    assert_eq!(told, [("doze", true), ("show", false)]);
    let done = machine.call("show", json!({"first": "$(id) a;b", "count": 3})).await.unwrap();
    let sub = machine.root().canonicalize().unwrap().join("sub");
    assert_eq!(done["stdout"], format!("<$(id) a;b><--n=3>red\n{}\nread $(id) a;b", sub.display()));
    let failure = machine.call("show", json!({"first": "-rf"})).await.unwrap_err();
    assert_eq!((failure.code, failure.outcome), (ErrorCode::InvalidArguments, Outcome::NotRun));
    assert!(machine.call("show", json!({})).await.is_err() && machine.call("show", json!({"first": 1})).await.is_err());
    let done = machine.call("doze", json!({})).await.unwrap();
    assert_eq!((&done["status"], &done["isError"]), (&json!("timed_out"), &json!(true)));
}

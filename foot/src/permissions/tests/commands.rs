//! Commands: rules for them hold through wrappers and scripts, and for the programs they mean.

use super::*;

const GIT_AND_CARGO: &str = "permissions:\n  deny: [{argv: [rm, '**']}, {argv: [git, push, '**']}]\n  \
    allow: [{argv: [git, '**']}, {argv: [cargo, '*', '**'], env: [RUST_LOG, 'CARGO_*']}, {argv: [env, '**']}]\n";

#[test]
fn words_are_matched_and_not_text() {
    let machine = Machine::new();
    let judge = machine.judge(GIT_AND_CARGO);
    for (words, verdict) in [
        (&["git", "status"][..], Verdict::Allow),
        (&["git", "status; rm -rf ~"], Verdict::Allow),
        (&["git status"], Verdict::Deny),
        (&["git", "push", "x"], Verdict::Deny),
        (&["cargo", "test"], Verdict::Allow),
        (&["cargo"], Verdict::Deny),
        (&["env", "git", "status"], Verdict::Allow),
        (&["env", "ls"], Verdict::Deny),
        (&["env", "git", "push"], Verdict::Deny),
        (&["timeout", "5", "git", "status"], Verdict::Deny),
    ] {
        assert_eq!(run(&judge, &machine.argv(words)), verdict, "{words:?}");
    }
}

#[test]
fn a_script_is_allowed_by_rules_that_say_shell_alone() {
    let machine = Machine::new();
    for (yaml, script, verdict) in [
        ("{argv: [git, '**']}", "git status", Verdict::Deny),
        ("{argv: [git, '**'], shell: true}", "git status", Verdict::Allow),
        ("{argv: [git, '**'], shell: true}", "git status && git diff | git x", Verdict::Allow),
        ("{argv: [git, '**'], shell: true}", "git status; rm x", Verdict::Deny),
        ("{argv: [git, '**'], shell: true}", "git $(rm x)", Verdict::Deny),
        ("{argv: [git, '**'], shell: true}", "git status > ~/.bashrc", Verdict::Deny),
        ("{argv: [git, '**'], shell: true}", "PATH=/tmp git status", Verdict::Deny),
        ("{argv: [git, '**'], shell: true}", "git() { ls; }; git", Verdict::Deny),
        ("{argv: [git, status], shell: true}", "git $X", Verdict::Deny),
        ("{argv: [git, '**'], shell: true}", "cd src && git status", Verdict::Deny),
        ("{shell: true}", "anything $(at all) > x", Verdict::Allow),
        ("{tools: [exec_run]}", "git status", Verdict::Deny),
        ("{shell: true, tools: [other]}", "git status", Verdict::Deny),
    ] {
        let judge = machine.judge(&format!("permissions: {{allow: [{yaml}]}}"));
        assert_eq!(run(&judge, &machine.shell(script)), verdict, "{yaml}: {script}");
        let both = judge_shell(&machine, yaml);
        assert_eq!(run(&both, &machine.argv(&["sh", "-c", script])), verdict, "{yaml}: sh -c {script}");
    }
}

/// With the shell itself allowed, too, as a program.
fn judge_shell(machine: &Machine, yaml: &str) -> Judge {
    machine.judge(&format!("permissions: {{allow: [{yaml}, {{argv: [sh, -c, '*']}}]}}"))
}

#[test]
fn what_is_denied_stays_so_behind_whatever_stands_in_front() {
    let machine = Machine::new();
    symlink("rm", machine.top.join("bin/innocent")).unwrap();
    symlink(machine.top.join("bin/rm"), machine.top.join("w/tool")).unwrap();
    let full = machine.top.join("bin/rm").display().to_string();
    for yaml in [
        "exec: allow\npermissions: {deny: [{argv: [rm, '**']}]}",
        "permissions:\n  deny: [{argv: [rm, '**']}]\n  allow: [{shell: true}, {tools: [exec_run]}]",
    ] {
        let judge = machine.judge(yaml);
        for words in [
            &["rm", "-rf", "x"][..],
            &[&full, "x"],
            &["RM", "x"],
            &["./tool", "x"],
            &["innocent", "x"],
            &["/no/such/rm", "x"],
            &["env", "X=1", "rm"],
            &["env", "-S", "rm x"],
            &["env", "-Srm x"],
            &["env", "-vSrm x"],
            &["sudo", "-u", "ada", "rm"],
            &["timeout", "5", "nice", "rm"],
            &["xargs", "rm"],
            &["find", ".", "-exec", "rm", "{}", ";"],
            &["find", ".", "-delete"],
            &["busybox", "rm", "x"],
            &["sh", "-c", "rm x"],
            &["bash", "-lc", "ls; rm x"],
            &["strace", "-o", "x", "rm", "y"],
            &["script", "-qcrm x", "/dev/null"],
            &["script", "-crm"],
            &["/lib64/ld-linux-x86-64.so.2", "/bin/rm", "x"],
            &["split", "--filter=rm x", "y"],
            &["env", "--what", "sh", "-c", "true && rm x"],
        ] {
            assert_eq!(run(&judge, &machine.argv(words)), Verdict::Deny, "{words:?}");
        }
        for script in [
            "git status; rm x",
            "ls $(rm x)",
            "ls `rm x`",
            "ls | xargs rm",
            "ls\nrm x",
            "(rm x)",
            "r''m x",
            "\\rm x",
            "X=1 rm x",
            "eval 'rm x'",
            "eval -- rm x",
            "trap -- 'rm x' EXIT",
            "alias a=rm\na x",
            "hash -p /bin/rm ls; ls x",
            "for f in *; do rm $f; done",
            "cat <<E\n$(rm x)\nE",
        ] {
            assert_eq!(run(&judge, &machine.shell(script)), Verdict::Deny, "{script}");
        }
        for words in [&["ls", "rm"][..], &["git", "rm", "x"], &["env", "ls", "rm"]] {
            assert_eq!(run(&judge, &machine.argv(words)), Verdict::Allow, "{words:?}");
        }
        assert_eq!(run(&judge, &machine.shell("echo rm; ls 'rm x'")), Verdict::Allow);
    }
}

#[test]
fn a_bare_name_means_the_program_of_the_search_path() {
    let machine = Machine::new();
    for path in ["w/git", "w/bin/git", "elsewhere/git"] {
        machine.program(path);
    }
    symlink(machine.top.join("bin/git"), machine.top.join("elsewhere/good")).unwrap();
    // These are the right ones as long as nobody changes a link of the project.
    std::fs::create_dir(machine.top.join("w/now")).unwrap();
    symlink(machine.top.join("bin/git"), machine.top.join("w/now/git")).unwrap();
    symlink(machine.top.join("bin"), machine.top.join("w/folder")).unwrap();
    let judge = machine.judge("permissions: {allow: [{argv: [git, '**']}]}");
    let full = |path: &str| machine.top.join(path).display().to_string();
    for (program, verdict) in [
        ("git", Verdict::Allow),
        (&*full("bin/git"), Verdict::Allow),
        ("./git", Verdict::Deny),
        ("../w/git", Verdict::Deny),
        ("bin/git", Verdict::Deny),
        (&*full("elsewhere/git"), Verdict::Deny),
        (&*full("elsewhere/good"), Verdict::Deny),
        ("now/git", Verdict::Deny),
        (&*full("w/now/git"), Verdict::Deny),
        (&*full("w/folder/git"), Verdict::Deny),
        (&*full("bin/../w/folder/git"), Verdict::Deny),
        ("GIT", Verdict::Deny),
        ("", Verdict::Deny),
    ] {
        assert_eq!(run(&judge, &machine.argv(&[program, "status"])), verdict, "{program}");
    }
    // A folder of the project in the search path is passed over, as it is when the command is started.
    let path = std::env::join_paths([machine.top.join("w/bin"), machine.top.join("bin")]).unwrap();
    let judge = Judge { programs: Programs::new(Some(path), &[machine.top.join("w")]), ..judge };
    assert_eq!(run(&judge, &machine.argv(&["git", "status"])), Verdict::Allow);
    assert_eq!(run(&judge, &machine.argv(&["bin/git", "status"])), Verdict::Deny);
}

#[test]
fn a_program_may_be_named_by_its_path() {
    let machine = Machine::new();
    machine.program("opt/tool");
    symlink("tool", machine.top.join("opt/other-name")).unwrap();
    let path = machine.top.join("opt/tool").display().to_string();
    let judge = machine.judge(&format!("permissions: {{allow: [{{argv: ['{path}', x]}}]}}"));
    let other = machine.top.join("opt/other-name").display().to_string();
    for (program, verdict) in [(path.as_str(), Verdict::Allow), ("tool", Verdict::Deny), (&other, Verdict::Deny)] {
        assert_eq!(run(&judge, &machine.argv(&[program, "x"])), verdict, "{program}");
    }
    let judge = machine.judge(&format!("exec: allow\npermissions: {{deny: [{{argv: ['{path}', '**']}}]}}"));
    for program in [path.as_str(), &other, "../opt/tool"] {
        assert_eq!(run(&judge, &machine.argv(&[program])), Verdict::Deny, "{program}");
    }
    assert_eq!(run(&judge, &machine.argv(&["git"])), Verdict::Allow);
}

#[test]
fn names_that_a_caller_sets_have_to_be_named() {
    let machine = Machine::new();
    let judge = machine.judge(GIT_AND_CARGO);
    let cargo = |env: &[&str]| {
        run(&judge, &machine.command(CommandLine::Argv(vec!["cargo".to_owned(), "test".to_owned()]), env))
    };
    assert_eq!(cargo(&["RUST_LOG", "CARGO_HOME"]), Verdict::Allow);
    assert_eq!(cargo(&["RUST_LOG", "LD_PRELOAD"]), Verdict::Deny);
    assert_eq!(run(&judge, &machine.argv(&["env", "RUST_LOG=x", "cargo", "test"])), Verdict::Allow);
    assert_eq!(run(&judge, &machine.argv(&["env", "LD_PRELOAD=x", "cargo", "test"])), Verdict::Deny);
    let judge = machine.judge("exec: allow\npermissions: {deny: [{env: ['LD_*']}]}");
    assert_eq!(run(&judge, &machine.argv(&["env", "LD_PRELOAD=x", "ls"])), Verdict::Deny);
    assert_eq!(run(&judge, &machine.shell("LD_PRELOAD=x ls")), Verdict::Deny);
    assert_eq!(run(&judge, &machine.argv(&["ls"])), Verdict::Allow);
}

#[test]
fn exec_allow_allows_any_words_and_a_script_is_none_of_them_to_a_rule_that_denies_shells() {
    let machine = Machine::new();
    let judge = machine.judge("exec: allow\npermissions: {deny: [{shell: true}]}");
    assert_eq!(run(&judge, &machine.argv(&["anything", "at all"])), Verdict::Allow);
    assert_eq!(run(&judge, &machine.shell("ls")), Verdict::Deny);
    assert_eq!(run(&judge, &machine.argv(&["env", "sh", "-c", "ls"])), Verdict::Deny);
}

#[test]
fn what_cannot_be_judged_is_refused_where_rules_deny() {
    let machine = Machine::new();
    let mut words = vec!["env"; 40];
    words.push("ls");
    let action = machine.argv(&words);
    assert_eq!(run(&machine.judge("exec: allow"), &action), Verdict::Allow);
    let denied =
        machine.judge("exec: allow\npermissions: {deny: [{argv: [rm, '**']}]}").decide("exec_run", &action, None);
    assert_eq!((denied.verdict, denied.reason), (Verdict::Deny, Reason::TooMuch));
    // So it is where they deny paths, which may stand behind what is read; and where they ask, somebody is asked.
    let script = machine.shell(&format!("{}cat secrets/key", "ls;".repeat(3_000)));
    for (rules, verdict) in [
        ("{deny: [{paths: [secrets]}]}", Verdict::Deny),
        ("{ask: [{argv: [cat, '**']}]}", Verdict::Ask),
        ("{ask: [{paths: [secrets]}]}", Verdict::Ask),
        ("{deny: [{tools: [deploy], paths: [secrets]}], ask: [{tools: [deploy]}]}", Verdict::Allow),
    ] {
        let judge = machine.judge(&format!("exec: allow\npermissions: {rules}"));
        assert_eq!(run(&judge, &script), verdict, "{rules}");
    }
    let mut words: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
    words.extend(["secrets/key".to_owned()]);
    let action = machine.command(CommandLine::Argv(words), &[]);
    assert_eq!(run(&machine.judge("exec: allow\npermissions: {deny: [{paths: [secrets]}]}"), &action), Verdict::Deny);
}

#[test]
fn a_relative_program_in_a_script_is_no_certain_one() {
    let machine = Machine::new();
    // In `src`, `../bin/git` is another file than in the folder that the script starts in.
    machine.program("w/bin/git");
    let judge =
        machine.judge("permissions: {allow: [{shell: true, argv: [git, '**']}, {shell: true, argv: [cd, '*']}]}");
    for (script, verdict) in [
        ("cd src; git status", Verdict::Allow),
        ("../bin/git status", Verdict::Deny),
        ("cd src; ../bin/git status", Verdict::Deny),
    ] {
        assert_eq!(run(&judge, &machine.shell(script)), verdict, "{script}");
    }
    assert_eq!(run(&judge, &machine.argv(&["env", "../bin/git"])), Verdict::Deny);
}

#[test]
fn a_path_that_a_caller_names_in_a_variable_is_named() {
    let machine = Machine::new();
    let judge = machine.judge("exec: allow\npermissions: {deny: [{paths: [secrets]}]}");
    let Action::Run(command) = machine.shell("cat \"$F\"") else { panic!() };
    for (value, verdict) in [("secrets/key", Verdict::Deny), ("a:secrets", Verdict::Deny), ("src/a", Verdict::Allow)] {
        let env = [("F".to_owned(), value.to_owned())].into();
        assert_eq!(run(&judge, &Action::Run(Command { env, ..command.clone() })), verdict, "{value}");
    }
}

#[test]
fn a_command_of_the_owners_own_needs_no_mode_and_no_rule_and_is_denied_by_one() {
    let machine = Machine::new();
    let Action::Run(command) = machine.argv(&["git", "push"]) else { panic!() };
    let action = Action::Run(Command { configured: true, ..command });
    let deploy = |yaml: &str| machine.judge(yaml).decide("deploy", &action, None).verdict;
    assert_eq!(deploy(""), Verdict::Allow);
    assert_eq!(deploy("permissions: {ask: [{tools: [deploy]}]}"), Verdict::Ask);
    assert_eq!(deploy("permissions: {deny: [{argv: [git, push, '**']}]}"), Verdict::Deny);
}

#[test]
fn a_command_starts_in_what_is_served_or_not_at_all() {
    let machine = Machine::new();
    let Action::Run(command) = machine.argv(&["ls"]) else { panic!() };
    let action = Action::Run(Command { cwd: machine.top.join("home/.ssh"), ..command });
    let decision = machine.judge("exec: allow").decide("exec_run", &action, None);
    assert_eq!((decision.verdict, decision.reason), (Verdict::Deny, Reason::Floor));
}

#[test]
fn a_command_that_names_a_denied_path_is_denied() {
    let machine = Machine::new();
    symlink("../secrets", machine.top.join("w/src/link")).unwrap();
    let judge = machine
        .judge("exec: allow\npermissions: {deny: [{paths: ['secrets/**']}, {tools: [file_read], paths: [src]}]}");
    let full = machine.top.join("w/secrets/key").display().to_string();
    for words in [
        &["cat", "secrets/key"][..],
        &["cat", &full],
        &["cat", "SECRETS/key"],
        &["cat", "src/../secrets/key"],
        &["cat", "src/link/key"],
        &["dd", "if=secrets/key"],
        &["git", "show", "HEAD:secrets/key"],
        &["curl", "-d", "@secrets/key"],
        &["curl", "-d@secrets/key"],
        &["grep", "-rfsecrets/key", "src"],
        &["docker", "run", "-v", "secrets:/mnt:ro", "x"],
        &["tool", "--files=src/a,secrets/key,src/b"],
        &["git", "-C", "src", "add", "../secrets/key"],
        &["env", "-C", "src", "cat", "../secrets/key"],
        &["env", "sh", "-c", "cat secrets/key"],
    ] {
        assert_eq!(run(&judge, &machine.argv(words)), Verdict::Deny, "{words:?}");
    }
    for script in [
        "cat < secrets/key",
        "echo x > secrets/new",
        "cat secrets/*",
        "cat secrets/$X",
        "for f in secrets/a; do cat $f; done",
        "F=secrets/key; cat \"$F\"",
        "cat ../secrets/key; cd src; cat ../secrets/key",
    ] {
        assert_eq!(run(&judge, &machine.shell(script)), Verdict::Deny, "{script}");
    }
    for words in [&["cat", "src/a"][..], &["git", "-C", "src", "add", "a"], &["ls", "src"], &["echo", "secrets2/key"]] {
        assert_eq!(run(&judge, &machine.argv(words)), Verdict::Allow, "{words:?}");
    }
}

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("foot").chain(line.split_whitespace()))
}

#[test]
fn the_command_line_is_well_formed_and_takes_every_option() {
    <Cli as clap::CommandFactory>::command().debug_assert();
    let line = "run --hub https://hub.example.org --token-file t --tenant acme --project web --root a --root b --name laptop \
        --share bob,eve --state s --ca ca.pem --max-concurrent 8 --deny x --config foot.yaml --exit-with-stdin --echo --log debug \
        --write ask --allow-exec --no-kernel-sandbox";
    let Command::Run(args) = parse(line).unwrap().command else { panic!("not run") };
    let debug = format!("{args:?}");
    for part in [
        "[\"a\", \"b\"]",
        "bob,eve",
        "exit_with_stdin: true",
        "echo: true",
        "Some(8)",
        "write: Some(Ask)",
        "allow_exec: true",
    ] {
        assert!(debug.contains(part), "{part} is missing in {debug}");
    }
    assert!(parse("tools --json").is_ok() && parse("check --path x --offline").is_ok());
    assert!(parse("audit --last 5 --denied --json --name a").is_ok() && parse("permissions list --state x").is_ok());
    assert!(
        parse("permissions forget 3").is_ok() && parse("check --tool exec_run --env A --cwd b -- git status").is_ok()
    );
    for conflict in
        ["run --write ask --allow-write", "run --exec deny --allow-exec", "check --path x -- ls", "run --write yes"]
    {
        assert!(parse(conflict).is_err(), "{conflict}");
    }
    for wrong in ["", "run --token secret", "run --max-concurrent many", "tools extra"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn help_is_broken_at_the_width_of_the_terminal_alone() {
    let help = <Cli as clap::CommandFactory>::command().render_help().to_string();
    let codes = help.split_once("Exit codes").unwrap().1;
    let lines: Vec<usize> = codes.trim_end().lines().map(|line| line.chars().count()).collect();
    assert!(lines.iter().rev().skip(1).all(|length| *length > 70), "ragged: {codes}");
}

#[test]
fn a_check_of_a_path_names_the_rule() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    std::fs::create_dir_all(top.join(".ssh")).unwrap();
    std::fs::write(top.join("a.txt"), "").unwrap();
    let environment = Environment::of(&[("HOME", top.to_str().unwrap()), ("FOOTBRIDGE_TOKEN", "t")]);
    // Neither a hub nor a project is named: they have no part in it.
    let Command::Check(args) = parse("check --path x").unwrap().command else { panic!() };
    let served = args.settings().served(&environment, &top).unwrap();
    for (path, fine, part) in [
        ("a.txt", true, top.join("a.txt").display().to_string()),
        ("new.txt", true, "nothing at this path".to_owned()),
        (".ssh/id", false, "~/.ssh is never served (SSH keys)".to_owned()),
        (".local/state/footbridge/x", false, "never served".to_owned()),
        ("/etc/passwd", false, "under no root".to_owned()),
        ("missing/../x", false, "leads nowhere".to_owned()),
    ] {
        let Command::Check(args) = parse(&format!("check --path {path}")).unwrap().command else { panic!() };
        let report = check::explain(&served, &args.call().unwrap()).unwrap();
        assert_eq!(report.fine, fine, "{path}: {}", report.text);
        assert!(report.text.contains(&part), "{path}: {}", report.text);
    }
}

#[test]
fn a_check_of_a_call_names_the_rule_and_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    std::fs::write(top.join("a.txt"), "").unwrap();
    let yaml = "write: ask\npermissions:\n  deny:\n  - {argv: [rm, '**']}\n  allow:\n  - {tools: [file_write], paths: [a.txt]}\n";
    std::fs::write(top.join("settings.yaml"), yaml).unwrap();
    let environment = Environment::of(&[("HOME", top.to_str().unwrap())]);
    let explain = |words: &[&str]| {
        let words = ["foot", "check", "--config", "settings.yaml"].iter().chain(words);
        let Command::Check(args) = Cli::try_parse_from(words).unwrap().command else { panic!() };
        let call = args.call().unwrap();
        check::explain(&args.settings().served(&environment, &top).unwrap(), &call).unwrap()
    };
    for (words, fine, parts) in [
        (
            &["--tool", "file_write", "--path", "a.txt"][..],
            true,
            &["yes, without asking", "permissions.allow rule 1 (", "line 6"][..],
        ),
        (&["--tool", "file_delete", "--path", "a.txt"], false, &["a person is asked", "write: ask  (no rule"]),
        (&["--path", "a.txt"], true, &["file_read", "what only reads"]),
        (&["--", "env", "rm", "x"], false, &["would run   \"rm\" \"x\"", "permissions.deny rule 1 (", "line 4"]),
        (&["--shell", "ls; rm x"], false, &["permissions.deny rule 1"]),
        (&["--", "ls"], false, &["exec: deny"]),
        (&["--cwd", "/etc", "--", "ls"], false, &["under no root"]),
        (&["--tool", "exec_kill"], true, &["yes"]),
        (&["--tool", "file_wriet"], false, &["no (unknown_tool)"]),
        (&["--tool", "mcp__x", "--path", "a.txt"], false, &["no (unknown_tool)"]),
        (&["--tool", "file_write"], false, &["depends on what it would do"]),
    ] {
        let report = explain(words);
        assert_eq!(report.fine, fine, "{words:?}: {}", report.text);
        for part in parts {
            assert!(report.text.contains(part), "{words:?}, {part}: {}", report.text);
        }
    }
}

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("foot").chain(line.split_whitespace()))
}

#[test]
fn the_command_line_is_well_formed_and_takes_every_option() {
    <Cli as clap::CommandFactory>::command().debug_assert();
    let line = "run --hub https://hub.example.org --token-file t --tenant acme --project web --root a --root b --name laptop \
        --share bob,eve --state s --ca ca.pem --max-concurrent 8 --deny x --config foot.yaml --exit-with-stdin --echo --log debug";
    let Command::Run(args) = parse(line).unwrap().command else { panic!("not run") };
    let debug = format!("{args:?}");
    for part in ["[\"a\", \"b\"]", "bob,eve", "exit_with_stdin: true", "echo: true", "Some(8)"] {
        assert!(debug.contains(part), "{part} is missing in {debug}");
    }
    assert!(parse("tools --json").is_ok() && parse("check --path x --offline").is_ok());
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
        let report = check::explain(&served, path).unwrap();
        assert_eq!(report.fine, fine, "{path}: {}", report.text);
        assert!(report.text.contains(&part), "{path}: {}", report.text);
    }
}

use super::*;

fn parsed(words: &[&str]) -> Result<Cli, clap::Error> {
    parse(std::iter::once("footbridge").chain(words.iter().copied()).map(OsString::from))
}

#[test]
fn the_grammar_is_sound() {
    command().debug_assert();
}

#[test]
fn what_people_write_is_understood() {
    for line in [
        "up --listen 127.0.0.1:0 --no-foot",
        "serve --config hub.yaml --print-config",
        "serve --listen 127.0.0.1:0 --data d --script-workers 4 --log warn -o json",
        "env --shell fish",
        "tools list --prefix file_ --label read-only --source client --json",
        "-o json tools list",
        "tools put notes - --if-match project-3",
        "tools put notes notes.yaml --create --tenant-layer",
        "tools --project beta why notes",
        "tools types",
        "call file_read path=README.md limit:=3",
        "call report --json {\"a\":1} --timeout-ms 500 -o json",
        "call report --json -",
        "docs list documents/",
        "docs get documents/a.md --version 3",
        "feet",
        "feet list --json",
        "feet release site",
        "calls --json",
        "calls get abc --wait-ms 5000",
        "calls get abc --wait",
        "call report --key order-17",
        "calls cancel abc",
        "token create --subject ci --role viewer,engine --project main --project beta --expires 30d",
        "token create --role foot --json",
        "token create --data d",
        "token revoke abc",
        "tenants put acme --project a,b --project c",
        "mcp-stdio --project beta --pack files --log debug",
        "completions zsh",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        if let Err(error) = parsed(&words) {
            panic!("{line}: {error}");
        }
    }
}

#[test]
fn what_cannot_be_meant_is_refused_with_exit_code_2() {
    for line in [
        "",
        "tool list",
        "tools list --source server",
        "tools put notes --create --if-match x",
        "tools list --tenant-layer --project beta",
        "call",
        "call x path",
        "call x a=1 --json {}",
        "call x --timeout-ms 0",
        "token create",
        "token create --role king",
        "token create --role admin --whole-hub --tenant acme",
        "token create --role admin --expires soon",
        "tenants put acme",
        "tools list --token secret",
    ] {
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let error = parsed(&words).err().unwrap_or_else(|| panic!("`{line}` is understood"));
        assert_eq!(error.exit_code(), i32::from(Exit::Usage.number()), "{line}");
    }
}

#[test]
fn the_long_help_ends_with_the_exit_codes() {
    let help = parsed(&["--help"]).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(help.contains("Exit codes:") && help.contains("130"), "{help}");
    assert!(!help.contains(FOOT_COMMAND), "{help}");
}

use super::*;

fn load_with(file: Option<&Path>, environment: &[(&str, &str)], flags: &Flags) -> Result<Loaded, ConfigError> {
    let environment = Environment::of(environment.iter().copied());
    load(&Sources { file, environment: &environment, flags, data: Some(Path::new("/state/data")), log: "info" })
}

fn load_file(text: &str) -> Result<Loaded, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hub.yaml");
    std::fs::write(&path, text).unwrap();
    let place = format!("{}, ", path.display());
    load_with(Some(&path), &[], &Flags::default()).map_err(|error| error.to_string().replace(&place, ""))
}

#[test]
fn the_later_source_wins_and_is_remembered() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hub.yaml");
    std::fs::write(&path, "listen: 127.0.0.1:1\ndata: here\nnode: from-file\nscript:\n  workers: 4\n").unwrap();
    let flags = Flags::default().with(Key::Listen, Some("127.0.0.1:3")).with(Key::Documents, None::<&str>);
    let environment = [("FOOTBRIDGE_LISTEN", "127.0.0.1:2"), ("FOOTBRIDGE_NODE", "from-env")];
    let loaded = load_with(Some(&path), &environment, &flags).unwrap();

    let config = &loaded.config;
    assert_eq!(config.listen.port(), 3);
    assert_eq!(config.node, "from-env");
    assert_eq!(config.data, dir.path().join("here"), "a path in a file starts from the file's folder");
    assert_eq!(config.script, ScriptConfig { workers: 4, per_tenant: 2, queue: 256, idle: Duration::from_secs(60) });
    assert_eq!(config.documents, None);

    let file = |line: u32| format!("{}:{line}", path.display());
    let origin = |key: Key| loaded.settings.iter().find(|s| s.key == key.name()).unwrap().origin.clone();
    assert_eq!(origin(Key::Listen), "flag --listen");
    assert_eq!(origin(Key::Node), "environment FOOTBRIDGE_NODE");
    assert_eq!(origin(Key::Data), file(2));
    assert_eq!(origin(Key::ScriptWorkers), file(5));
    assert_eq!(origin(Key::ScriptPerTenant), "default");
    assert_eq!(loaded.settings.len(), Key::ALL.len());
}

#[test]
fn defaults_suffice() {
    let config = load_with(None, &[], &Flags::default()).unwrap().config;
    assert_eq!(config.listen.to_string(), "127.0.0.1:7800");
    assert_eq!(config.data, Path::new("/state/data"));
    assert_eq!(config.log, "info");
    assert_eq!(config.script.idle, Duration::from_secs(60));
    assert_eq!(config.feet.heartbeat, footbridge_shared::limits::HEARTBEAT_INTERVAL);
    assert_eq!(load_file("# nothing but a remark\n").unwrap().config.node, "hub");
}

#[test]
fn the_environment_names_the_file_unless_a_flag_does() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hub.yaml");
    std::fs::write(&path, "node: named\n").unwrap();
    let named = load_with(None, &[("FOOTBRIDGE_CONFIG", path.to_str().unwrap())], &Flags::default()).unwrap();
    assert_eq!(named.config.node, "named");
    let missing = load_with(Some(&dir.path().join("no.yaml")), &[], &Flags::default()).unwrap_err();
    assert!(missing.to_string().contains("no.yaml cannot be read"), "{missing}");
}

#[test]
fn a_setting_that_nothing_would_heed_is_refused() {
    assert!(load_file("tls: [hub.example]").unwrap_err().contains("there is no key `tls`"));
}

#[test]
fn names_of_hosts_are_a_list_in_the_file_and_stand_with_commas_elsewhere() {
    let file = load_file("allowedHosts: [hub.example, 'inner:7800']\npublicUrl: https://hub.example/\n").unwrap();
    assert_eq!(file.config.allowed_hosts, ["hub.example", "inner:7800"]);
    assert_eq!(file.config.public_url.as_deref(), Some("https://hub.example"));
    let said = [("FOOTBRIDGE_ALLOWED_ORIGINS", "https://a.example, https://b.example:8443")];
    let environment = load_with(None, &said, &Flags::default()).unwrap();
    assert_eq!(environment.config.allowed_origins, ["https://a.example", "https://b.example:8443"]);
    for wrong in ["allowedHosts: [1]", "allowedHosts: ['a b']", "publicUrl: https://hub.example/path", "publicUrl: hub"]
    {
        assert!(load_file(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_mistake_in_the_file_is_named_with_its_place() {
    let cases = [
        ("lisen: x", "line 1, column 1: `lisen`: there is no key `lisen` here (did you mean `listen`?)"),
        (
            "node: a\nscript:\n  worker: 2\n",
            "line 3, column 3: `script.worker`: there is no key `worker` here (did you mean `workers`?)",
        ),
        (
            "feet:\n  zzz: 1\n",
            "line 2, column 3: `feet.zzz`: there is no key `zzz` here (the keys here are heartbeatMs, resumeGraceMs)",
        ),
        ("script: 4", "line 1, column 9: `script`: this must be a map of keys, it is the number `4`"),
        (
            "script.workers: 4",
            "line 1, column 1: `script.workers`: it must stand in its section (write `script:` and `workers` below it)",
        ),
        ("node: 1.10", "line 1, column 7: `node`: it must be a text, it is the number `1.10` (write it in quotes)"),
        ("script:\n  queue: '7'\n", "line 2, column 10: `script.queue`: it must be a number, it is the text `7`"),
        (
            "node: a\nnode: b\n",
            "line 2, column 1: `node`: the key `node` stands twice; it stands on line 1 already (keep one of the two)",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(load_file(text).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn a_value_that_does_not_fit_is_named_with_its_origin() {
    let error = |environment: &[(&str, &str)]| load_with(None, environment, &Flags::default()).unwrap_err().to_string();
    assert_eq!(
        error(&[("FOOTBRIDGE_LISTEN", "7800")]),
        "`listen` cannot be `7800` (environment FOOTBRIDGE_LISTEN): use an address and a port, for instance \
         127.0.0.1:7800 or [::]:7800"
    );
    assert!(error(&[("FOOTBRIDGE_SCRIPT_WORKERS", "0")]).contains("from 1 to"));
    assert!(error(&[("FOOTBRIDGE_LOG", "a=b=c")]).contains("FOOTBRIDGE_LOG"));
    let flags = Flags::default().with(Key::Listen, Some("localhost"));
    assert!(load_with(None, &[], &flags).unwrap_err().to_string().contains("flag --listen"));
}

#[test]
fn a_slip_in_a_variable_is_remarked_and_foreign_ones_are_not() {
    let environment = [("FOOTBRIDGE_LISTN", "127.0.0.1:1"), ("FOOTBRIDGE_SOMETHING_ELSE", "1"), ("PATH", "/bin")];
    let loaded = load_with(None, &environment, &Flags::default()).unwrap();
    assert_eq!(
        loaded.warnings,
        ["the environment variable FOOTBRIDGE_LISTN is not read; did you mean FOOTBRIDGE_LISTEN?"]
    );
}

#[test]
fn programs_of_mcp_servers_are_listed_and_inherit_no_secret() {
    let listed = |names: &[&str]| Some(McpCommands::Listed(names.iter().map(|name| (*name).to_owned()).collect()));
    let of = |text: &str| load_file(text).map(|loaded| loaded.config.mcp.commands);
    assert_eq!(of("node: a\n"), Ok(None));
    assert_eq!(of("mcpCommands: [npx, /usr/bin/uvx]\n"), Ok(listed(&["npx", "/usr/bin/uvx"])));
    assert_eq!(of("mcpCommands: []\n"), Ok(listed(&[])));
    assert_eq!(of("mcpCommands: ['*']\n"), Ok(Some(McpCommands::Any)));
    for wrong in ["npx", "['a,b']", "[1]", "['']", "[./here]", "['*', npx]"] {
        assert!(of(&format!("mcpCommands: {wrong}\n")).is_err(), "{wrong}");
    }
    let environment = [("FOOTBRIDGE_MCP_COMMANDS", "npx, uvx"), ("PATH", "/bin"), ("LC_ALL", "C"), ("AWS_SECRET", "x")];
    let config = load_with(None, &environment, &Flags::default()).unwrap().config.mcp;
    assert_eq!(config.commands, listed(&["npx", "uvx"]));
    assert_eq!(config.environment, [("LC_ALL".into(), "C".into()), ("PATH".into(), "/bin".into())]);
    assert!(config.variables.is_empty());
}

#[test]
fn programs_of_mcp_servers_inherit_the_way_to_the_network_without_its_credentials() {
    let environment = [
        ("NODE_EXTRA_CA_CERTS", "/ca.pem"),
        ("HTTPS_PROXY", "http://proxy:3128"),
        ("no_proxy", "localhost"),
        ("HTTP_PROXY", "http://me:secret@proxy:3128"),
    ];
    let config = load_with(None, &environment, &Flags::default()).unwrap().config.mcp;
    let names: Vec<_> = config.environment.iter().filter_map(|(name, _)| name.to_str()).collect();
    assert_eq!(names, ["HTTPS_PROXY", "NODE_EXTRA_CA_CERTS", "no_proxy"]);
}

#[test]
fn variables_that_documents_may_set_are_named() {
    let of = |text: &str| load_file(text).map(|loaded| loaded.config.mcp.variables);
    assert_eq!(of("mcpVariables: [API_TOKEN, SHOP_*]\n"), Ok(vec!["API_TOKEN".to_owned(), "SHOP_*".to_owned()]));
    for wrong in ["['*']", "['A B']", "['A=b']", "['A*B']"] {
        assert!(of(&format!("mcpVariables: {wrong}\n")).is_err(), "{wrong}");
    }
}

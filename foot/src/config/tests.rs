use super::*;

struct Place {
    dir: tempfile::TempDir,
    environment: Vec<(&'static str, String)>,
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("home/.config/footbridge")).unwrap();
    std::fs::create_dir_all(dir.path().join("My Project!")).unwrap();
    let home = dir.path().join("home").display().to_string();
    Place { dir, environment: vec![("HOME", home), ("FOOTBRIDGE_TOKEN", "from-env".to_owned())] }
}

impl Place {
    fn settings_file(&self, text: &str) {
        std::fs::write(self.dir.path().join("home/.config/footbridge/foot.yaml"), text).unwrap();
    }

    fn resolve(&self, flags: Settings) -> Result<Resolved, ConfigError> {
        let variables: Vec<(&str, &str)> = self.environment.iter().map(|(n, v)| (*n, v.as_str())).collect();
        resolve(flags, None, &Environment::of(&variables), &self.dir.path().join("My Project!"))
    }
}

fn flags() -> Settings {
    Settings { hub: Some("https://hub.example.org".into()), project: Some("web".into()), ..Settings::default() }
}

#[test]
fn what_nobody_says_is_the_default() {
    let place = place();
    let Resolved { config, .. } = place.resolve(flags()).unwrap();
    assert_eq!((config.tenant.as_str(), config.name.as_str()), ("local", "my-project"));
    assert_eq!(config.roots, [place.dir.path().join("My Project!")]);
    assert_eq!((config.share, config.max_concurrent), (Share::Owner, DEFAULT_MAX_CONCURRENT));
    assert_eq!(config.state, place.dir.path().join("home/.local/state/footbridge"));
    assert!(config.deny.contains(&place.dir.path().join("home/.config/footbridge")));
}

#[test]
fn the_command_line_beats_the_environment_beats_the_file() {
    let mut place = place();
    place
        .settings_file("hub: https://file\ntenant: file\nproject: file\nname: file\nmaxConcurrent: 3\ndeny: [/file]\n");
    place.environment.extend([("FOOTBRIDGE_TENANT", "env".to_owned()), ("FOOTBRIDGE_PROJECT", "env".to_owned())]);
    let flags = Settings { project: Some("flag".into()), deny: Some(vec!["mine".into()]), ..Settings::default() };
    let resolved = place.resolve(flags).unwrap();
    let config = &resolved.config;
    assert_eq!(config.hub.to_string(), "https://file:443");
    assert_eq!((config.tenant.as_str(), config.project.as_str(), config.name.as_str()), ("env", "flag", "file"));
    assert_eq!(config.max_concurrent, 3);
    let origins = ["hub", "tenant", "project", "roots"].map(|key| resolved.origin(key).to_string());
    assert!(origins[0].ends_with("foot.yaml"), "{origins:?}");
    assert_eq!(origins[1..], ["environment", "command line", "default"]);
    for path in [PathBuf::from("/file"), place.dir.path().join("My Project!/mine")] {
        assert!(config.deny.contains(&path), "{}", path.display());
    }
}

#[test]
fn without_home_the_users_own_one_counts_and_with_it_both_do() {
    let home = |environment: Environment| {
        let flags = Settings { roots: Some(vec!["/".into()]), ..flags() };
        resolve(flags, None, &environment, Path::new("/"))
            .map(|resolved| (resolved.config.homes, resolved.config.state))
    };
    let bare = || Environment::of(&[("FOOTBRIDGE_TOKEN", "t")]);
    let (homes, state) = home(bare().with_account_home("/srv/ada")).unwrap();
    assert_eq!((homes, state), (vec!["/srv/ada".into()], "/srv/ada/.local/state/footbridge".into()));
    let other = Environment::of(&[("FOOTBRIDGE_TOKEN", "t"), ("HOME", "/root")]).with_account_home("/srv/ada");
    assert_eq!(home(other).unwrap().0, [PathBuf::from("/root"), "/srv/ada".into()]);
    assert!(home(bare()).is_err(), "no place for the key");
}

#[test]
fn a_settings_file_in_the_working_directory_is_not_read() {
    let place = place();
    std::fs::write(place.dir.path().join("My Project!/foot.yaml"), "share: project\n").unwrap();
    assert_eq!(place.resolve(flags()).unwrap().config.share, Share::Owner);
}

#[test]
fn a_settings_file_that_everybody_may_write_is_not_read() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let place = place();
    let folder = place.dir.path().join("home/.config/footbridge");
    std::fs::write(folder.join("elsewhere"), "share: project\n").unwrap();
    symlink("elsewhere", folder.join("foot.yaml")).unwrap();
    let read_with = |mode| {
        std::fs::set_permissions(folder.join("elsewhere"), std::fs::Permissions::from_mode(mode)).unwrap();
        place.resolve(flags()).map(|resolved| resolved.config.share)
    };
    assert_eq!(read_with(0o664).unwrap(), Share::Project);
    assert!(matches!(read_with(0o666), Err(ConfigError::Open { .. })), "by a link or not");
    // A device is no file that somebody filled.
    std::fs::remove_file(folder.join("foot.yaml")).unwrap();
    symlink("/dev/null", folder.join("foot.yaml")).unwrap();
    assert_eq!(read_with(0o666).unwrap(), Share::Owner);
}

#[test]
fn a_token_comes_from_a_file_or_the_environment() {
    let place = place();
    let token = |flags| place.resolve(flags).map(|resolved| resolved.config.token);
    assert_eq!(token(flags()).unwrap(), TokenSource::Value(Token::parse("from-env").unwrap()));
    let file = token(Settings { token_file: Some("t".into()), ..flags() }).unwrap();
    assert_eq!(file, TokenSource::File(place.dir.path().join("My Project!/t")));
}

#[test]
fn sharing_is_said_in_words() {
    assert_eq!(parse_share("owner").unwrap(), Share::Owner);
    assert_eq!(parse_share("project").unwrap(), Share::Project);
    let subjects = ["bob", "eve@example.org"].map(|subject| Subject::parse(subject).unwrap());
    assert_eq!(parse_share("bob, eve@example.org").unwrap(), Share::Subjects(subjects.into()));
    assert!(parse_share("").is_err() && parse_share("bob,,eve").is_err());
}

#[test]
fn a_setting_that_cannot_be_is_named() {
    let place = place();
    for (flags, part) in [
        (Settings { hub: None, ..flags() }, "--hub"),
        (Settings { project: None, ..flags() }, "--project"),
        (Settings { hub: Some("http://hub.example.org".into()), ..flags() }, "without TLS"),
        (Settings { name: Some("A".into()), ..flags() }, "foot name"),
        (Settings { max_concurrent: Some(0), ..flags() }, "maxConcurrent"),
    ] {
        let error = place.resolve(flags).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn any_folder_gives_a_name() {
    let dir = tempfile::tempdir().unwrap();
    for (folder, name) in [
        ("Web App", "web-app"),
        ("__init__", "init"),
        ("2048", "foot-2048"),
        ("日本語", "foot"),
        ("a--b__c", "a-b-c"),
        (&"x".repeat(100), &"x".repeat(59)),
    ] {
        let path = dir.path().join(folder);
        std::fs::create_dir(&path).unwrap();
        assert_eq!(default_name(Some(&path)).unwrap().as_str(), name, "{folder}");
    }
    assert_eq!(default_name(Some(Path::new("/"))).unwrap().as_str(), "foot");
}

#[test]
fn commands_read_the_git_settings_that_there_are() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path();
    std::fs::create_dir_all(home.join(".config/git")).unwrap();
    for file in [".gitconfig", ".config/git/ignore", ".config/git/credentials"] {
        std::fs::write(home.join(file), "").unwrap();
    }
    let environment = Environment::of(&[("HOME", &home.display().to_string())]);
    let served = super::served(Settings::default(), None, &environment, home).unwrap();
    assert_eq!(served.exec.extra_read, [home.join(".gitconfig"), home.join(".config/git/ignore")]);
}

#[test]
fn the_hub_that_is_served_is_no_server_of_the_foot() {
    let place = place();
    place.settings_file(
        "hub: http://localhost:7070\nservers:\n  hub: {url: 'http://127.0.0.1:7070/mcp/local/web'}\n  git: {command: git-mcp}\n",
    );
    let config = place.resolve(Settings { hub: None, ..flags() }).unwrap().config;
    assert_eq!(config.servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["git"]);
    assert_eq!(config.left_out.iter().map(|left| left.name.as_str()).collect::<Vec<_>>(), ["hub"]);
    assert_eq!(place.resolve(flags()).unwrap().config.left_out, []);
}

use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn state_in(path: &Path) -> StateFolder {
    StateFolder::find(&Environment::of([("XDG_STATE_HOME", path.as_os_str())])).unwrap()
}

fn hub_of(folder: &Path) -> HubFile {
    HubFile {
        url: "http://127.0.0.1:7800".to_owned(),
        tenant: "local".to_owned(),
        project: "main".to_owned(),
        token_file: folder.join("token"),
        subject: "ana".to_owned(),
        pid: 4711,
        folder: folder.to_owned(),
    }
}

#[test]
fn the_state_folder_follows_xdg_and_then_home() {
    let find = |variables: &[(&str, &str)]| {
        StateFolder::find(&Environment::of(variables.iter().copied())).map(|state| state.0.display().to_string()).ok()
    };
    assert_eq!(find(&[("XDG_STATE_HOME", "/x"), ("HOME", "/h")]).as_deref(), Some("/x/footbridge"));
    assert_eq!(find(&[("HOME", "/h")]).as_deref(), Some("/h/.local/state/footbridge"));
    assert_eq!(find(&[("XDG_STATE_HOME", "x"), ("HOME", "/h")]).as_deref(), Some("/h/.local/state/footbridge"));
    assert_eq!(find(&[("XDG_STATE_HOME", "")]), None);
}

#[test]
fn folders_of_one_name_are_told_apart() {
    let state = state_in(Path::new("/state"));
    let name = |path: &str| state.hub_folder(Path::new(path)).0.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(name("/home/ana/My Site!"), name("/home/ana/My Site!"));
    assert!(name("/home/ana/My  Site!").starts_with("my-site-"));
    assert_ne!(name("/home/ana/site"), name("/home/bob/site"));
    assert!(name("/").starts_with("root-"));
    assert!(name("/漢字").starts_with("root-"));
    assert!(name(&format!("/{}", "a".repeat(300))).len() <= MAX_SLUG_CHARS + 1 + DIGEST_CHARS);
}

#[test]
fn a_hub_is_found_from_below_and_is_private() {
    let dir = tempfile::tempdir().unwrap();
    let state = state_in(&dir.path().join("state"));
    let folder = Path::new("/srv/site");
    let ours = state.hub_folder(folder);
    let _lock = ours.lock().unwrap();
    ours.write_hub(&hub_of(folder)).unwrap();
    write_token(&ours.path().join("token"), &Secret::new(" fb_1 \n")).unwrap();

    assert_eq!(state.nearest(Path::new("/srv/site/src/deep")), Some(hub_of(folder)));
    assert_eq!(state.nearest(Path::new("/work/other")), None);
    assert_eq!(read_token(&ours.path().join("token")).unwrap().reveal(), "fb_1");
    for (path, mode) in [("hub.json", 0o600), ("token", 0o600), ("up.lock", 0o600), ("", 0o700)] {
        let found = fs::metadata(ours.path().join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{path}: {found:o}");
    }

    ours.remove_hub();
    assert_eq!(state.nearest(folder), None);
}

#[test]
fn a_second_hub_of_a_folder_is_refused_with_the_pid_of_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let state = state_in(dir.path());
    let ours = state.hub_folder(Path::new("/srv/site"));
    assert!(!ours.is_running());
    let lock = ours.lock().unwrap();
    ours.write_hub(&hub_of(Path::new("/srv/site"))).unwrap();
    assert!(ours.is_running());
    let refused = ours.lock().unwrap_err().to_string();
    assert_eq!(refused, "a hub of this folder is running already (pid 4711, http://127.0.0.1:7800)");

    drop(lock);
    assert!(ours.hub().is_some() && !ours.is_running(), "what a killed hub left behind is not a running hub");
    assert_eq!(state.nearest(Path::new("/srv/site")), None);
    ours.lock().unwrap();
}

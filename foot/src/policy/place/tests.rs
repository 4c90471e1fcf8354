use super::*;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::Duration;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    (dir, top)
}

fn place(top: &Path, name: &str) -> Place {
    Place::new(top, OsStr::new(name)).unwrap()
}

fn names(top: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(top).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn another_name_of_the_old_file_keeps_the_old_content() {
    let (_dir, top) = folder();
    std::fs::write(top.join("a"), "old").unwrap();
    std::fs::hard_link(top.join("a"), top.join("b")).unwrap();
    let place = place(&top, "a");
    let found = place.current().unwrap();
    place.put(b"new", found.as_ref(), None).unwrap();
    let read = |name: &str| std::fs::read_to_string(top.join(name)).unwrap();
    assert_eq!((read("a"), read("b")), ("new".to_owned(), "old".to_owned()));
    assert_eq!(names(&top), ["a", "b"]);
}

#[test]
fn the_mode_is_kept_unless_another_is_given_and_never_acts_for_others() {
    let (_dir, top) = folder();
    std::fs::write(top.join("a"), "old").unwrap();
    std::fs::set_permissions(top.join("a"), PermissionsExt::from_mode(0o4750)).unwrap();
    let mode = || std::fs::metadata(top.join("a")).unwrap().mode() & 0o7777;
    let place = place(&top, "a");
    let put = |mode| place.put(b"new", place.current().unwrap().as_ref(), mode).unwrap();
    put(None);
    assert_eq!(mode(), 0o750);
    put(Some(0o4600));
    assert_eq!(mode(), 0o600);
}

#[test]
fn what_changed_since_it_was_opened_is_left_alone() {
    let (_dir, top) = folder();
    let place = place(&top, "a");
    let other = |text: &str| std::fs::write(top.join("a"), text).unwrap();
    let changed = |result: Result<(), WriteError>| assert!(matches!(result, Err(WriteError::Changed)), "{result:?}");

    let nothing = place.current().unwrap();
    other("theirs");
    changed(place.put(b"mine", nothing.as_ref(), None));
    let found = place.current().unwrap().unwrap();
    other("theirs, again");
    changed(place.put(b"mine", Some(&found), None));
    changed(place.remove(&found));
    assert_eq!(std::fs::read_to_string(top.join("a")).unwrap(), "theirs, again");
    assert_eq!(names(&top), ["a"], "nothing unfinished is left");
}

#[test]
fn a_folder_that_became_a_link_is_not_written_into() {
    let (_dir, top) = folder();
    std::fs::create_dir_all(top.join("elsewhere/sub")).unwrap();
    std::fs::create_dir(top.join("root")).unwrap();
    symlink("../elsewhere", top.join("root/link")).unwrap();
    let (root, name) = (top.join("root"), OsStr::new("a"));
    let moved = |result: Result<Place, OpenError>| assert!(matches!(result, Err(OpenError::Moved)), "{result:?}");
    moved(Place::new(&root.join("link/sub"), name));
    moved(Place::with_folders(&root, &root.join("link/sub"), name));
    moved(Place::with_folders(&root, &root.join("link/new"), name));
    assert_eq!(names(&top.join("elsewhere")), ["sub"]);

    std::fs::write(root.join("file"), "").unwrap();
    let below_a_file = Place::with_folders(&root, &root.join("file/new"), name);
    assert!(matches!(below_a_file, Err(OpenError::WrongKind)), "{below_a_file:?}");
    Place::with_folders(&root, &root.join("new/er"), name).unwrap().put(b"x", None, None).unwrap();
    assert_eq!(names(&root.join("new/er")), ["a"]);
}

#[test]
fn links_folders_and_pipes_are_no_files() {
    let (_dir, top) = folder();
    std::fs::create_dir(top.join("folder")).unwrap();
    symlink("folder", top.join("link")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, top.join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    assert!(matches!(place(&top, "folder").current(), Err(OpenError::WrongKind)));
    assert!(matches!(place(&top, "pipe").current(), Err(OpenError::WrongKind)));
    assert!(matches!(place(&top, "link").current(), Err(OpenError::Moved)));
    assert!(matches!(place(&top, "link").put(b"x", None, None), Err(WriteError::Changed)), "a link is in the way");
}

#[test]
fn what_a_crash_left_goes_with_the_next_write_but_not_what_is_being_written() {
    let (_dir, top) = folder();
    let leave = |name: &str, seconds_ago: u64| {
        let file = File::create(top.join(name)).unwrap();
        let now = file.metadata().unwrap().modified().unwrap();
        file.set_modified(now - Duration::from_secs(seconds_ago)).unwrap();
    };
    leave(&format!("{UNFINISHED}old"), 3600);
    leave(&format!("{UNFINISHED}young"), 5);
    leave("old", 3600);
    place(&top, "a").put(b"x", None, None).unwrap();
    assert_eq!(names(&top), [format!("{UNFINISHED}young"), "a".to_owned(), "old".to_owned()]);
}

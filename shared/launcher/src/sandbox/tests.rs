use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;

/// Runs something on a thread of its own: it stays restricted until it ends.
fn restricted<T: Send + 'static>(roots: &[&Path], write: bool, work: impl FnOnce() -> T + Send + 'static) -> T {
    let roots: Vec<PathBuf> = roots.iter().map(|root| (*root).to_owned()).collect();
    let thread = std::thread::spawn(move || {
        restrict_this_thread(&roots, write).unwrap();
        work()
    });
    thread.join().unwrap()
}

fn kind<T>(result: std::io::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

const DENIED: Option<ErrorKind> = Some(ErrorKind::PermissionDenied);

#[test]
fn a_thread_reads_what_lies_below_its_roots_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let (root, secret) = (dir.path().join("root"), dir.path().join("secret"));
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("file"), "x").unwrap();
    std::fs::write(&secret, "x").unwrap();
    symlink(&secret, root.join("link")).unwrap();
    restricted(&[&root.clone()], false, move || {
        assert_eq!(kind(std::fs::read(root.join("file"))), None);
        assert_eq!(kind(std::fs::read_dir(&root)), None);
        let by_the_kernel = Path::new("/proc/self/root").join(secret.strip_prefix("/").unwrap());
        for way in [&secret, &root.join("link"), &root.join("../secret"), &by_the_kernel] {
            assert!(way.exists(), "{}", way.display());
            assert_eq!(kind(std::fs::read(way)), DENIED, "{}", way.display());
        }
        assert_eq!(kind(std::fs::write(root.join("file"), "y")), DENIED);
        assert_eq!(kind(std::fs::remove_file(root.join("file"))), DENIED);
        assert_eq!(kind(std::fs::File::options().append(true).open(root.join("file"))), DENIED);
    });
}

#[test]
fn a_thread_that_may_write_does_so_below_its_roots_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (root, other) = (dir.path().join("root"), dir.path().join("other"));
    std::fs::create_dir_all(root.join("a")).unwrap();
    std::fs::write(&other, "x").unwrap();
    let top = dir.path().to_owned();
    restricted(&[&root.clone()], true, move || {
        std::fs::write(root.join("a/new"), "x").unwrap();
        std::fs::rename(root.join("a/new"), root.join("moved")).unwrap();
        std::fs::hard_link(root.join("moved"), root.join("a/again")).unwrap();
        std::fs::remove_file(root.join("moved")).unwrap();
        // A file of elsewhere cannot be pulled in, by whatever name, and nothing leaves.
        assert!(std::fs::hard_link(&other, root.join("pulled")).is_err());
        assert!(std::fs::rename(&other, root.join("pulled")).is_err());
        assert!(std::fs::rename(root.join("a/again"), top.join("out")).is_err());
        assert_eq!(kind(std::fs::write(top.join("out"), "x")), DENIED);
        let cut = rustix::fs::open(&other, rustix::fs::OFlags::TRUNC, rustix::fs::Mode::empty());
        assert_eq!(cut.unwrap_err(), rustix::io::Errno::ACCESS);
    });
    assert_eq!(std::fs::read(dir.path().join("other")).unwrap(), b"x");
}

#[test]
fn a_grant_to_nothing_grants_nothing_and_stops_nothing() {
    restricted(&[Path::new("/none/such")], true, || {
        assert_eq!(kind(std::fs::read_dir("/")), DENIED);
    });
}

#[test]
fn this_system_can_confine_or_the_tests_of_commands_say_nothing() {
    probe().unwrap();
}

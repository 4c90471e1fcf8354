//! The policy as a table: what is asked for, and what comes of it.

use super::*;
use std::os::unix::fs::symlink;

/// A home folder with a project, a neighbour of nearly the same name, keys, and links of every kind.
struct Home {
    dir: tempfile::TempDir,
    top: PathBuf,
}

fn home() -> Home {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    for folder in ["proj/src", "proj-private", ".ssh", "proj/caf\u{e9}", "dotfiles/aws", "other"] {
        std::fs::create_dir_all(top.join(folder)).unwrap();
    }
    for file in [
        "proj/a.txt",
        "proj/a..b.md",
        "proj/src/main.rs",
        "proj/caf\u{e9}/x.txt",
        "proj-private/x.md",
        ".ssh/id_ed25519",
        "dotfiles/aws/credentials",
        "other/notes",
    ] {
        std::fs::write(top.join(file), file).unwrap();
    }
    let proj = top.join("proj");
    for (link, target) in [
        ("inside", "src/main.rs"),
        ("escape", "../other/notes"),
        ("keys", "../.ssh"),
        ("dangling_in", "src/later.rs"),
        ("dangling_out", "/nonexistent/x"),
        ("loop_a", "loop_b"),
        ("loop_b", "loop_a"),
        ("self", "self"),
        ("proc_root", "/proc/self/root"),
    ] {
        symlink(target, proj.join(link)).unwrap();
    }
    symlink(top.join("dotfiles/aws"), top.join(".aws")).unwrap();
    symlink(top.join("proj"), top.join("way_in")).unwrap();
    Home { dir, top }
}

impl Home {
    fn policy(&self, roots: &[&str]) -> Policy {
        let roots: Vec<PathBuf> = roots.iter().map(|root| self.top.join(root)).collect();
        Policy::new(&roots, Floor::new(Some(self.top.as_path()))).unwrap()
    }

    /// `ok`, or the code; `{}` in a path is the home folder.
    fn outcome(&self, policy: &Policy, given: &str) -> &'static str {
        let given = given.replace("{}", &self.top.display().to_string());
        policy.gate().resolve(&given).map_or_else(|failure| failure.code.as_str(), |_| "ok")
    }

    fn expect(&self, policy: &Policy, table: &[(&str, &str)]) {
        assert!(self.dir.path().exists());
        for (given, expected) in table {
            assert_eq!(self.outcome(policy, given), *expected, "{given}");
        }
    }
}

#[test]
fn only_what_really_lies_under_a_root_is_served() {
    let home = home();
    home.expect(
        &home.policy(&["proj"]),
        &[
            (".", "ok"),
            ("a.txt", "ok"),
            ("a..b.md", "ok"),
            ("./src/../a.txt", "ok"),
            ("{}/proj/src/main.rs", "ok"),
            ("{}/way_in/a.txt", "ok"),
            ("src/", "ok"),
            ("inside", "ok"),
            ("caf\u{e9}/x.txt", "ok"),
            // Another spelling of the same word is another name, as the file system has it.
            ("cafe\u{301}/x.txt", "not_found"),
            ("missing", "not_found"),
            ("missing/deeper", "not_found"),
            ("a.txt/x", "not_found"),
            ("dangling_in", "not_found"),
            ("..", "path_denied"),
            ("../proj/a.txt", "ok"),
            ("../other/notes", "path_denied"),
            ("../other/missing", "path_denied"),
            ("{}/proj-private/x.md", "path_denied"),
            ("../proj-private/x.md", "path_denied"),
            ("src/../../other/notes", "path_denied"),
            ("escape", "path_denied"),
            ("keys", "path_denied"),
            ("keys/id_ed25519", "path_denied"),
            ("dangling_out", "path_denied"),
            ("loop_a", "path_denied"),
            ("self/x", "path_denied"),
            ("a.txt\0.png", "path_denied"),
            ("/etc/passwd", "path_denied"),
            ("proc_root", "path_denied"),
            ("proc_root/etc/passwd", "path_denied"),
            ("/proc/self/root{}/proj/a.txt", "ok"),
            ("/proc/self/environ", "path_denied"),
            ("%2e%2e/other/notes", "not_found"),
            ("..\\other\\notes", "not_found"),
        ],
    );
}

#[test]
fn the_floor_holds_below_a_root_that_contains_it() {
    let home = home();
    home.expect(
        &home.policy(&["."]),
        &[
            ("other/notes", "ok"),
            (".ssh", "path_denied"),
            (".SSH/id_ed25519", "path_denied"),
            (".ssh/id_ed25519", "path_denied"),
            (".ssh/missing", "path_denied"),
            (".gnupg", "path_denied"),
            ("proj/keys/id_ed25519", "path_denied"),
            // The folder that `~/.aws` links to is covered by its real name, too.
            (".aws/credentials", "path_denied"),
            ("dotfiles/aws/credentials", "path_denied"),
            ("dotfiles", "ok"),
            (".ssh/../other/notes", "path_denied"),
            (".gnupg/../other/notes", "path_denied"),
        ],
    );
    let top = Policy::new(&["/".into()], Floor::new(Some(home.top.as_path()))).unwrap();
    home.expect(
        &top,
        &[
            ("etc", "ok"),
            ("/proc/self/environ", "path_denied"),
            ("/proc/self/root/etc", "ok"),
            ("/dev/null", "path_denied"),
            ("{}/.ssh/id_ed25519", "path_denied"),
            ("/proc/self/root{}/.ssh/id_ed25519", "path_denied"),
        ],
    );
}

#[test]
fn keys_are_kept_in_any_home_also_when_none_is_known() {
    let home = home();
    std::fs::create_dir_all(home.top.join("other/.ssh")).unwrap();
    std::fs::write(home.top.join("other/.ssh/id_rsa"), "").unwrap();
    for known in [None, Some(Path::new("/nonexistent")), Some(home.top.as_path())] {
        let policy = Policy::new(std::slice::from_ref(&home.top), Floor::new(known)).unwrap();
        home.expect(
            &policy,
            &[
                ("other/notes", "ok"),
                (".ssh/id_ed25519", "path_denied"),
                ("other/.ssh", "path_denied"),
                ("other/.ssh/id_rsa", "path_denied"),
                ("other/.ssh/missing", "path_denied"),
                ("proj/keys/id_ed25519", "path_denied"),
                ("other/.Netrc", "path_denied"),
            ],
        );
        assert!(!policy.gate().serves(&home.top.join("other/.ssh/id_rsa")), "nor in a walk");
    }
    let root = Policy::new(&[home.top.join("other/.ssh")], Floor::new(None));
    assert!(matches!(root, Err(PolicyError::RootInFloor { .. })));
}

#[test]
fn answers_do_not_tell_what_exists_elsewhere() {
    let home = home();
    let policy = home.policy(&["proj"]);
    let answer = |given: &str| {
        let failure = policy.gate().resolve(given).unwrap_err();
        (failure.code, failure.message.replace(given, "PATH"), failure.hint)
    };
    let there = home.top.join("other/notes").display().to_string();
    let not_there = home.top.join("other/nonexistent").display().to_string();
    assert_eq!(answer(&there), answer(&not_there));
    // Neither by walking in and out again.
    for folder in ["other", "nonexistent"] {
        let around = home.top.join(folder).join("../proj/a.txt").display().to_string();
        assert_eq!(home.outcome(&policy, &around), "path_denied", "{folder}");
    }
    let whole = home.policy(&["."]);
    for folder in [".ssh", ".gnupg", ".kube"] {
        assert_eq!(home.outcome(&whole, &format!("{folder}/../proj/a.txt")), "path_denied", "{folder}");
    }
}

#[test]
fn relative_paths_start_at_the_first_root_and_every_root_is_served() {
    let home = home();
    let policy = home.policy(&["other", "proj"]);
    home.expect(&policy, &[("notes", "ok"), ("a.txt", "not_found"), ("{}/proj/a.txt", "ok"), ("../proj/a.txt", "ok")]);
    let gate = policy.gate();
    assert_eq!(gate.show(&home.top.join("other/notes")), "notes");
    assert_eq!(gate.show(&home.top.join("other")), ".");
    assert_eq!(gate.show(&home.top.join("proj/a.txt")), home.top.join("proj/a.txt").display().to_string());
}

#[test]
fn a_root_is_a_folder_outside_of_the_floor() {
    let home = home();
    let make = |root: PathBuf| Policy::new(&[root], Floor::new(Some(home.top.as_path())));
    assert!(matches!(make(home.top.join("proj/a.txt")), Err(PolicyError::Root { .. })));
    assert!(matches!(make(home.top.join("missing")), Err(PolicyError::Root { .. })));
    assert!(matches!(make(home.top.join("proj/keys")), Err(PolicyError::RootInFloor { .. })));
    assert!(matches!(make("/proc/self".into()), Err(PolicyError::RootInFloor { .. })));
    assert!(matches!(Policy::new(&[], Floor::default()), Err(PolicyError::NoRoots)));
}

#[test]
fn a_verdict_names_its_rule() {
    let home = home();
    let policy = home.policy(&["proj"]);
    assert!(matches!(policy.explain("a.txt"), Verdict::Served { exists: true, .. }));
    assert!(matches!(policy.explain("new.txt"), Verdict::Served { exists: false, .. }));
    assert!(matches!(policy.explain("keys/id"), Verdict::Floor(rule) if rule.label == "~/.ssh"));
    assert!(matches!(policy.explain("/etc/passwd"), Verdict::Outside));
    assert!(matches!(policy.explain("self"), Verdict::Nowhere));
    assert!(policy.cut_out().is_empty());
    assert!(home.policy(&["."]).cut_out().iter().any(|rule| rule.label == "~/.ssh"));
}

#[test]
fn what_is_opened_is_a_file_that_was_judged() {
    let home = home();
    let policy = home.policy(&["proj"]);
    let gate = policy.gate();
    let code = |result: Result<File, Failure>| result.map_or_else(|failure| failure.code.as_str(), |_| "ok");
    let open = |path: &str| code(gate.open_file(&home.top.join(path), path));
    assert_eq!(open("proj/a.txt"), "ok");
    assert_eq!(open("proj/src"), "not_a_file");
    assert_eq!(open("proj/missing"), "not_found");
    assert_eq!(open("proj/inside"), "path_denied", "a link is opened by its real path alone");
    assert_eq!(open("other/notes"), "path_denied");
    assert!(gate.open_folder(&home.top.join("proj/src"), "src").is_ok());
    assert_eq!(gate.open_folder(&home.top.join("proj/a.txt"), "a.txt").unwrap_err().code, ErrorCode::NotAFile);
}

#[test]
fn a_link_on_the_way_to_what_is_our_own_is_our_own_too() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    std::fs::create_dir(top.join("root")).unwrap();
    std::fs::write(top.join("real"), "").unwrap();
    std::os::unix::fs::symlink(top.join("real"), top.join("root/between")).unwrap();
    std::os::unix::fs::symlink("root/between", top.join("settings")).unwrap();
    let mut floor = Floor::default();
    floor.add(&top.join("settings"), "the settings of this foot");
    let policy = Policy::new(&[top.join("root")], floor).unwrap();
    assert!(!policy.gate().serves(&top.join("root/between")));
    // A command could replace it, and the kernel cannot keep it from a part of a folder.
    assert_eq!(policy.cut_out().len(), 1);
}

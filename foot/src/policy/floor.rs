//! Paths that are never served, whatever the roots are: keys, credentials, browser profiles, and our own state.
//!
//! A rule covers its path with everything below, also when a link leads there. What is known by its name is covered
//! wherever it lies, so a foot that does not know its home, or serves the homes of others, serves no keys. A hard link to
//! a file, or a bind mount of a folder, looks like any other file or folder: neither can be told from what it was made of.

use std::path::{Path, PathBuf};

use super::place;

/// What lies in home folders, and why it is not served. By these names, which no program gives to anything else, it is kept
/// wherever it lies: a root may hold the homes of others, or a copy of one. All of them start with a dot.
const NAMED: &[(&str, &str)] = &[
    (".ssh", "SSH keys"),
    (".gnupg", "GnuPG keys"),
    (".password-store", "passwords"),
    (".aws", "cloud credentials"),
    (".azure", "cloud credentials"),
    (".config/gcloud", "cloud credentials"),
    (".kube", "cluster credentials"),
    (".docker/config.json", "registry credentials"),
    (".config/containers/auth.json", "registry credentials"),
    (".terraform.d", "cloud credentials"),
    (".vault-token", "credentials"),
    (".config/gh", "credentials"),
    (".config/hub", "credentials"),
    (".config/glab-cli", "credentials"),
    (".config/op", "passwords"),
    (".config/rclone", "credentials"),
    (".config/sops", "keys"),
    (".config/age", "keys"),
    (".git-credentials", "credentials"),
    (".config/git/credentials", "credentials"),
    (".netrc", "credentials"),
    (".pgpass", "credentials"),
    (".my.cnf", "credentials"),
    (".npmrc", "registry credentials"),
    (".pypirc", "registry credentials"),
    (".cargo/credentials", "registry credentials"),
    (".cargo/credentials.toml", "registry credentials"),
    (".local/share/keyrings", "passwords"),
    (".local/share/kwalletd", "passwords"),
    (".pki", "keys"),
    (".bash_history", "command history"),
    (".zsh_history", "command history"),
    (".local/share/fish/fish_history", "command history"),
    (".mozilla", "browser profile"),
    (".thunderbird", "mail profile"),
    (".config/google-chrome", "browser profile"),
    (".config/google-chrome-beta", "browser profile"),
    (".config/chromium", "browser profile"),
    (".config/BraveSoftware", "browser profile"),
    (".config/microsoft-edge", "browser profile"),
    (".config/opera", "browser profile"),
    (".config/vivaldi", "browser profile"),
    (".var/app", "data of sandboxed applications"),
];

/// The same of names that a project may use for something else: they are kept in home folders alone.
const IN_HOME: &[(&str, &str)] = &[
    ("snap", "data of sandboxed applications"),
    ("Library/Keychains", "passwords"),
    ("Library/Cookies", "browser data"),
    ("Library/Safari", "browser profile"),
    ("Library/Messages", "messages"),
    ("Library/Mail", "mail"),
    ("Library/Application Support/Google/Chrome", "browser profile"),
    ("Library/Application Support/Chromium", "browser profile"),
    ("Library/Application Support/Firefox", "browser profile"),
    ("Library/Application Support/BraveSoftware", "browser profile"),
    ("Library/Application Support/Microsoft Edge", "browser profile"),
    ("Library/Application Support/com.apple.TCC", "permissions"),
];

/// Folders whose folders are homes.
const HOMES: [&str; 2] = ["/home", "/Users"];
/// Homes that lie elsewhere.
const MORE_HOMES: [&str; 2] = ["/root", "/var/root"];

/// Views into the kernel and other processes: no files of a developer, and the environment of the foot among them.
const SYSTEM: &[(&str, &str)] = &[
    ("/proc", "processes and their environment"),
    ("/sys", "kernel settings"),
    ("/dev", "devices"),
    ("/run/secrets", "credentials"),
    ("/run/user", "session sockets and credentials"),
    ("/etc/shadow", "passwords"),
    ("/etc/gshadow", "passwords"),
    ("/etc/ssh", "SSH keys"),
    ("/etc/ssl/private", "keys"),
];

/// One path that is never served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FloorRule {
    /// The path, as a person writes it.
    pub label: String,
    /// What lies there.
    pub why: &'static str,
    path: PathBuf,
    /// Whether the links on its way are kept, too.
    with_links: bool,
}

impl FloorRule {
    /// Whether there is something to keep.
    pub(super) fn exists(&self) -> bool {
        self.path.symlink_metadata().is_ok()
    }

    /// Whether it keeps something in a folder.
    pub(crate) fn lies_in(&self, folder: &Path) -> bool {
        covers(folder, &self.path)
    }
}

/// All paths that are never served.
#[derive(Debug, Clone, Default)]
pub(crate) struct Floor {
    rules: Vec<FloorRule>,
}

impl Floor {
    /// The built-in rules, and where those for home folders lead in these.
    pub(crate) fn new<'a>(homes: impl IntoIterator<Item = &'a Path>) -> Self {
        let mut floor = Self::default();
        for (path, why) in SYSTEM {
            floor.push((*path).to_owned(), PathBuf::from(path), why);
        }
        // Names alone would keep them; their links are followed from here, so that what they lead to is kept, too.
        for (nth, home) in homes.into_iter().enumerate() {
            for (path, why) in NAMED.iter().chain(IN_HOME) {
                let real = home.join(path);
                let label = if nth == 0 { format!("~/{path}") } else { real.display().to_string() };
                floor.push(label, real, why);
            }
        }
        floor
    }

    /// Adds a path: one of our own folders, or one that the user wants to keep to themselves.
    pub(crate) fn add(&mut self, path: &Path, why: &'static str) {
        if !self.rules.iter().any(|rule| rule.path == path) {
            self.push(path.display().to_string(), path.to_owned(), why);
            // Whoever replaced a link on the way to the settings would put others in their place.
            self.rules.iter_mut().filter(|rule| rule.path == path).for_each(|rule| rule.with_links = true);
        }
    }

    fn push(&mut self, label: String, path: PathBuf, why: &'static str) {
        self.rules.push(FloorRule { label, why, path, with_links: false });
    }

    /// The rules as the file system stands now, by the paths they cover: where their links lead, and as written.
    pub(super) fn resolved(&self) -> Vec<(&FloorRule, PathBuf)> {
        let mut covered = Vec::new();
        for rule in &self.rules {
            if let Some(real) = super::resolve::real(&rule.path).map(|real| real.path)
                && real != rule.path
            {
                covered.push((rule, real));
            }
            if rule.with_links {
                let links = super::resolve::links(&rule.path).into_iter().filter(|link| *link != rule.path);
                covered.extend(links.map(|link| (rule, link)));
            }
            covered.push((rule, rule.path.clone()));
        }
        covered
    }
}

/// The rule that keeps a path for the names in it, whosever they are. Case does not count.
pub(super) fn by_name(path: &Path) -> Option<FloorRule> {
    if path.file_name().is_some_and(place::is_unfinished) {
        let label = format!("{}* in any folder", place::UNFINISHED);
        return Some(FloorRule {
            label,
            why: "files that are still being written",
            path: place::UNFINISHED.into(),
            with_links: false,
        });
    }
    let anywhere = NAMED.iter().map(|rule| (rule, "any folder")).find(|((name, _), _)| stands_in(path, name));
    let in_home = || {
        let rest = below_a_home(path)?;
        IN_HOME.iter().map(|rule| (rule, "any home folder")).find(|((name, _), _)| covers(Path::new(name), rest))
    };
    let ((name, why), place) = anywhere.or_else(in_home)?;
    Some(FloorRule { label: format!("{name} in {place}"), why, path: PathBuf::from(name), with_links: false })
}

/// Whether the parts of `name` stand in a path, one after the other.
fn stands_in(path: &Path, name: &str) -> bool {
    let mut rest = path.components();
    loop {
        let here = rest.as_path();
        match rest.next() {
            None => return false,
            // Most parts have no dot in front: they are passed by without a closer look.
            Some(part) if part.as_os_str().as_encoded_bytes().starts_with(b".") => {
                if covers(Path::new(name), here) {
                    return true;
                }
            }
            Some(_) => {}
        }
    }
}

/// What stands behind a home folder in a path.
fn below_a_home(path: &Path) -> Option<&Path> {
    let in_homes = HOMES.iter().find_map(|homes| path.strip_prefix(homes).ok()).map(|rest| {
        let mut parts = rest.components();
        parts.next();
        parts.as_path()
    });
    in_homes.or_else(|| MORE_HOMES.iter().find_map(|home| path.strip_prefix(home).ok()))
}

/// Whether `path` is `covered` or lies below it. Case does not count: on some file systems `.SSH` is `.ssh`.
pub(crate) fn covers(covered: &Path, path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt as _;
    let (covered, path) = (covered.as_os_str().as_bytes(), path.as_os_str().as_bytes());
    // `/` itself covers everything: its last byte is the separator already.
    let covered = covered.strip_suffix(b"/").unwrap_or(covered);
    match path.split_at_checked(covered.len()) {
        Some((head, rest)) => head.eq_ignore_ascii_case(covered) && (rest.is_empty() || rest.starts_with(b"/")),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_kept_wherever_they_lie_and_common_ones_in_homes() {
        let rule = |path: &str| by_name(Path::new(path)).map(|rule| rule.label);
        for (path, label) in [
            ("/home/eve/.ssh/id", ".ssh in any folder"),
            ("/srv/backup/ada/.AWS", ".aws in any folder"),
            ("/x/.docker/config.json", ".docker/config.json in any folder"),
            ("/x/.config/.config/gh/hosts.yml", ".config/gh in any folder"),
            ("/home/ada/snap/x", "snap in any home folder"),
            ("/Users/ada/Library/Mail/x", "Library/Mail in any home folder"),
            ("/root/snap", "snap in any home folder"),
            ("/x/.footbridge-tmp-a1", ".footbridge-tmp-* in any folder"),
        ] {
            assert_eq!(rule(path).as_deref(), Some(label), "{path}");
        }
        for path in
            ["/x/.docker", "/x/.docker/x/config.json", "/x/.sshx", "/x/ssh", "/home/ada/web/snap", "/home/snap", "/"]
        {
            assert_eq!(rule(path), None, "{path}");
        }
        assert!(NAMED.iter().all(|(name, _)| name.starts_with('.')), "other names are passed by");
    }

    #[test]
    fn a_rule_covers_its_path_and_all_below_in_any_case() {
        let covered = Path::new("/home/ada/.ssh");
        for inside in ["/home/ada/.ssh", "/home/ada/.ssh/id", "/home/ada/.SSH/id"] {
            assert!(covers(covered, Path::new(inside)), "{inside}");
        }
        for outside in ["/home/ada/.sshx", "/home/ada", "/home/adb/.ssh", "/"] {
            assert!(!covers(covered, Path::new(outside)), "{outside}");
        }
        assert!(covers(Path::new("/"), covered) && covers(Path::new("/"), Path::new("/")));
    }
}

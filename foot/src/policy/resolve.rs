//! Where a path really leads.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Links that are followed for one path.
const MAX_LINKS: u32 = 40;
/// Parts that are looked at for one path, those of its links among them. Links come with the trees that are served, and a
/// chain of them may be made to name any number.
const MAX_PARTS: usize = 4096;

/// A path without links and without `.` and `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Real {
    pub(super) path: PathBuf,
    /// Whether there is something at this path, as far as one can see.
    pub(super) exists: bool,
}

/// Resolves an absolute path, also one whose last parts do not exist: the deepest part that does decides where the rest
/// would be made, and a link that leads to nothing is where its target would be. `None` for a path that means nothing, or
/// takes too long to follow: links in a circle, `..` below something that is no folder, more than [`MAX_PARTS`].
pub(super) fn real(path: &Path) -> Option<Real> {
    follow(path, |_| {})
}

/// The links that stand on the way of an absolute path, each by its own real path: who replaces one of them chooses where
/// the path leads.
pub(super) fn links(path: &Path) -> Vec<PathBuf> {
    let mut links = Vec::new();
    follow(path, |link| links.push(link.to_owned()));
    links
}

fn follow(path: &Path, mut on_link: impl FnMut(&Path)) -> Option<Real> {
    let mut real = Real { path: PathBuf::new(), exists: true };
    let mut ahead = Ahead::default();
    ahead.push(path)?;
    let mut links = 0;
    while let Some(part) = ahead.parts.pop() {
        if part == ".." {
            if !real.exists || !real.path.is_dir() {
                return None;
            }
            real.path.pop();
            continue;
        }
        real.path.push(&part);
        if !real.exists {
            continue;
        }
        match std::fs::symlink_metadata(&real.path) {
            Err(_) => real.exists = false,
            Ok(found) if found.is_symlink() => {
                links += 1;
                on_link(&real.path);
                let target = std::fs::read_link(&real.path).ok().filter(|_| links <= MAX_LINKS)?;
                real.path.pop();
                ahead.push(&target)?;
            }
            Ok(_) => {}
        }
    }
    Some(real)
}

/// What is left of the way, the next part last.
#[derive(Default)]
struct Ahead {
    parts: Vec<OsString>,
    /// All that ever were.
    count: usize,
}

impl Ahead {
    /// Puts a path before what is left; `None` if that is too long.
    fn push(&mut self, path: &Path) -> Option<()> {
        let start = self.parts.len();
        // The root is a part, too: pushed to a path it takes that path's place.
        let parts = path.components().filter(|part| *part != Component::CurDir);
        self.parts.extend(parts.map(|part| part.as_os_str().to_owned()));
        self.parts.get_mut(start..)?.reverse();
        self.count += self.parts.len() - start;
        (self.count <= MAX_PARTS).then_some(())
    }
}

/// The parts of the path that stand before a `..`.
pub(super) fn stepped_out_of(path: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    let parts: Vec<Component<'_>> = path.components().collect();
    let steps: Vec<usize> = (0..parts.len()).filter(|at| parts.get(*at) == Some(&Component::ParentDir)).collect();
    steps.into_iter().map(move |at| parts.iter().take(at).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_that_chain_into_a_very_long_way_are_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let tail = "/n".repeat(2000);
        for link in 0..MAX_LINKS {
            symlink(format!("{}{tail}", link + 1), top.join(link.to_string())).unwrap();
        }
        assert_eq!(real(&top.join("0")), None);
        let last = real(&top.join((MAX_LINKS - 1).to_string())).unwrap();
        assert_eq!(last, Real { path: top.join(format!("{MAX_LINKS}{tail}")), exists: false });
    }

    #[test]
    fn links_are_followed_wherever_they_stand_and_a_circle_is_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        std::fs::write(top.join("a/file"), "").unwrap();
        for (target, link) in [("a/b", "down"), ("../../down", "a/b/up"), ("turn", "turn"), ("later/x", "dangling")] {
            symlink(target, top.join(link)).unwrap();
        }
        let found = |path: &str| real(&top.join(path)).map(|real| (real.path, real.exists));
        assert_eq!(found("down/up/up/../file"), Some((top.join("a/file"), true)));
        assert_eq!(found("dangling/y"), Some((top.join("later/x/y"), false)));
        assert_eq!(found("a/file/x"), Some((top.join("a/file/x"), false)));
        for nowhere in ["turn", "turn/x", "dangling/..", "a/file/..", "none/.."] {
            assert_eq!(found(nowhere), None, "{nowhere}");
        }
    }
}

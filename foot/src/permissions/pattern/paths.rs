//! Patterns for paths, matched against where a path really leads.
//!
//! To allow something a pattern matches what it says, byte by byte. To keep something it is generous: case does not count,
//! nor in which of its Unicode forms a name is written, what it matches is kept with everything below, and it follows the
//! links in its own fixed part as they are at that moment.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use unicode_normalization::UnicodeNormalization as _;

use super::PatternError;

/// Characters by which a part of a pattern is more than a name.
const SPECIAL: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// A pattern for paths.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    /// Whether it starts at each root, and not at `/`.
    relative: bool,
    exact: GlobMatcher,
    folded: GlobMatcher,
    /// The parts before the first that is more than a name.
    fixed: PathBuf,
    /// Whether it is about everything.
    whole: bool,
}

impl PathPattern {
    /// Compiles a pattern. `home` is what `~/` stands for.
    ///
    /// # Errors
    /// [`PatternError`]: it cannot be read, or holds `..`, or starts at a home that is not known.
    pub(crate) fn new(text: &str, home: Option<&Path>) -> Result<Self, PatternError> {
        let fail = |reason: &dyn std::fmt::Display| PatternError::new(text, reason);
        let body = match (text.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => {
                let home = std::fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
                let home = home.to_str().ok_or_else(|| fail(&"the home folder has no name in UTF-8"))?;
                format!("{}/{rest}", escape(home.trim_end_matches('/')))
            }
            (Some(_), None) => return Err(fail(&"the home folder is not known")),
            (None, _) => text.to_owned(),
        };
        let relative = !body.starts_with('/');
        let body = body.strip_prefix("./").unwrap_or(&body);
        let body = if body == "." { "**" } else { body };
        // `a/` is `a`: whether that is a folder is not asked.
        let body = if body.len() > 1 { body.strip_suffix('/').unwrap_or(body) } else { body };
        if body.is_empty() || body.contains('\0') {
            return Err(fail(&"it names nothing"));
        }
        if body.split('/').any(|part| part == "..") {
            return Err(fail(&"`..` means nothing in a pattern"));
        }
        let glob = |body: &str| {
            let mut glob = GlobBuilder::new(body);
            glob.literal_separator(true).backslash_escape(true);
            glob.build().map(|glob| glob.compile_matcher()).map_err(|error| fail(error.kind()))
        };
        let fixed = body.split('/').take_while(|part| !part.contains(SPECIAL)).collect::<Vec<_>>().join("/");
        let fixed = if relative || !fixed.is_empty() { PathBuf::from(fixed) } else { PathBuf::from("/") };
        Ok(Self { relative, exact: glob(body)?, folded: glob(&fold(body))?, fixed, whole: body == "**" })
    }

    /// Whether it is just this path, to allow something there.
    pub(crate) fn is(&self, real: &Path, roots: &[PathBuf]) -> bool {
        let is = |path: &Path| self.names(path) && self.exact.is_match(path);
        if self.relative { roots.iter().any(|root| real.strip_prefix(root).is_ok_and(is)) } else { is(real) }
    }

    /// `*` is any name, and no name at all is none.
    fn names(&self, path: &Path) -> bool {
        self.whole || path != Path::new("")
    }

    /// Where its fixed part leads besides where it is written, as things are: the real path, and the written one.
    pub(crate) fn detours(&self, roots: &[PathBuf]) -> Vec<(PathBuf, PathBuf)> {
        let leads = |written: PathBuf| {
            let real = crate::policy::real_path(&written)?;
            (real != written).then_some((real, written))
        };
        match self.relative {
            true => roots.iter().filter_map(|root| leads(root.join(&self.fixed))).collect(),
            false => leads(self.fixed.clone()).into_iter().collect(),
        }
    }

    /// Whether it keeps this path, or one above it. `detours` are those of [`Self::detours`].
    pub(crate) fn keeps(&self, real: &Path, roots: &[PathBuf], detours: &[(PathBuf, PathBuf)]) -> bool {
        let by_detour = |(from, to): &(PathBuf, PathBuf)| {
            below(from, real).is_some_and(|rest| self.keeps_written(&to.join(rest), roots))
        };
        self.keeps_written(real, roots) || detours.iter().any(by_detour)
    }

    fn keeps_written(&self, path: &Path, roots: &[PathBuf]) -> bool {
        if !self.relative {
            return self.keeps_some(path);
        }
        roots.iter().filter_map(|root| below(root, path)).any(|rest| self.keeps_some(&rest))
    }

    fn keeps_some(&self, path: &Path) -> bool {
        path.ancestors().any(|above| {
            self.names(above) && (self.exact.is_match(above) || self.folded.is_match(fold(&above.to_string_lossy())))
        })
    }
}

/// What stands behind a folder in a path. Case does not count.
fn below(folder: &Path, path: &Path) -> Option<PathBuf> {
    let inside = crate::policy::covers(folder, path);
    inside.then(|| path.components().skip(folder.components().count()).collect())
}

/// A name as a pattern that is this name alone.
fn escape(name: &str) -> String {
    let escaped = name.chars().flat_map(|c| SPECIAL.contains(&c).then_some('\\').into_iter().chain([c]));
    escaped.collect()
}

/// A text in the form in which two spellings of one name are the same.
pub(crate) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    // Up and down again: `ß` and `SS` are one name to file systems that do not tell case apart.
    text.nfd().collect::<String>().to_uppercase().to_lowercase().nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "/w";

    fn pattern(text: &str) -> PathPattern {
        PathPattern::new(text, Some(Path::new("/home/ada"))).unwrap()
    }

    fn is(text: &str, path: &str) -> bool {
        pattern(text).is(Path::new(path), &[ROOT.into()])
    }

    fn keeps(text: &str, path: &str) -> bool {
        pattern(text).keeps(Path::new(path), &[ROOT.into()], &[])
    }

    #[test]
    fn to_allow_it_is_what_it_says() {
        for (text, path) in [
            ("src/**", "/w/src/a/b"),
            ("src/*", "/w/src/a"),
            ("**/*.rs", "/w/a.rs"),
            ("~/x/*", "/home/ada/x/y"),
            ("/opt/{a,b}/c", "/opt/b/c"),
            (r"app/\[slug\]/page.tsx", "/w/app/[slug]/page.tsx"),
            ("./a/", "/w/a"),
        ] {
            assert!(is(text, path), "{text} {path}");
        }
        for (text, path) in [
            ("src/*", "/w/src/a/b"),
            ("src", "/w/src/a"),
            ("src/**", "/w/Src/a"),
            ("src/**", "/src/a"),
            (r"app/\[slug\]/page.tsx", "/w/app/s/page.tsx"),
            ("caf\u{e9}/*", "/w/cafe\u{301}/x"),
        ] {
            assert!(!is(text, path), "{text} {path}");
        }
    }

    #[test]
    fn to_keep_something_it_takes_every_spelling_and_all_below() {
        for (text, path) in [
            ("secrets", "/w/secrets/deep/file"),
            ("secrets/**", "/w/SECRETS/file"),
            ("caf\u{e9}", "/w/cafe\u{301}/x"),
            ("cafe\u{301}", "/w/CAF\u{c9}/x"),
            ("stra\u{df}e", "/w/STRASSE"),
            ("**/*.pem", "/w/a/b.PEM"),
            ("*.key/**", "/w/x.key/y"),
            ("**", "/w"),
            ("/W/secrets", "/w/secrets"),
        ] {
            assert!(keeps(text, path), "{text} {path}");
        }
        for (text, path) in [("secrets", "/w/secrets2"), ("*", "/w"), ("secrets", "/w/a/secrets"), ("a/b", "/w/a")] {
            assert!(!keeps(text, path), "{text} {path}");
        }
    }

    #[test]
    fn to_keep_something_it_follows_links_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("vault")).unwrap();
        let (pattern, roots) = (pattern("secrets/*.key"), [root.clone()]);
        let keeps = || pattern.keeps(&root.join("vault/a.key"), &roots, &pattern.detours(&roots));
        assert!(!keeps());
        std::os::unix::fs::symlink("vault", root.join("secrets")).unwrap();
        assert!(keeps());
        assert!(!pattern.keeps(&root.join("vault/a.txt"), &roots, &pattern.detours(&roots)));
    }

    #[test]
    fn what_cannot_be_read_is_no_pattern() {
        for text in ["", "/w/[", "{a", "a}", "a/../b", "x\\", "~/x\0"] {
            assert!(PathPattern::new(text, Some(Path::new("/h"))).is_err(), "{text}");
        }
        assert!(PathPattern::new("~/x", None).is_err());
    }

    proptest::proptest! {
        #[test]
        fn a_name_escaped_is_itself_alone(name in "[a-z\\[\\]{}*?!,\\\\-]{1,12}", other in "[a-z\\[\\]{}*?!,\\\\-]{1,12}") {
            let pattern = pattern(&escape(&name));
            let at = |name: &str| pattern.is(&Path::new(ROOT).join(name), &[ROOT.into()]);
            proptest::prop_assert!(at(&name));
            proptest::prop_assert!(name == other || !at(&other));
        }

        #[test]
        fn no_pattern_panics(text in ".{0,40}", path in ".{0,40}") {
            if let Ok(pattern) = PathPattern::new(&text, Some(Path::new("/home/ada"))) {
                let path: PathBuf = Path::new(ROOT).join(path).components().collect();
                if pattern.is(&path, &[ROOT.into()]) {
                    proptest::prop_assert!(pattern.keeps(&path, &[ROOT.into()], &[]), "what it is, it keeps");
                }
            }
        }
    }
}

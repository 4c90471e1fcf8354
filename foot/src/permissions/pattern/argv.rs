//! Patterns for commands: one for each word, `*` for any text within a word, `**` for any words.

use super::{NamePattern, PatternError};
use crate::permissions::command::{Part, Word};

/// How sure a match has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Whatever is not known yet: to allow something.
    Certain,
    /// For something that is not known yet: to keep something from happening.
    Possible,
}

/// A pattern for a program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArgvPattern {
    program: Program,
    rest: Vec<Element>,
}

/// What stands for the program. Which file that means is not for a pattern to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Program {
    /// Any.
    Any,
    /// A name, without a folder.
    Named(NamePattern),
    /// A path from `/` on.
    At(NamePattern),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Element {
    One(NamePattern),
    Rest,
}

impl ArgvPattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// [`PatternError`]: no program, a relative path for one, or, to allow something, a `**` that is not the last word.
    pub(crate) fn new(words: &[String], fit: Fit) -> Result<Self, PatternError> {
        let Some((program, arguments)) = words.split_first() else {
            return Err(PatternError::new("argv", "there has to be a program"));
        };
        let mut rest: Vec<Element> = Vec::new();
        let program = match program.as_str() {
            "" => return Err(PatternError::new("argv", "the program has no name")),
            "**" => {
                rest.push(Element::Rest);
                Program::Any
            }
            "*" => Program::Any,
            path if path.starts_with('/') => Program::At(NamePattern::new(path)),
            path if path.contains('/') => {
                return Err(PatternError::new(path, "name a program by its name alone, or by its path from / on"));
            }
            name => Program::Named(NamePattern::new(name)),
        };
        for word in arguments {
            rest.push(if word == "**" { Element::Rest } else { Element::One(NamePattern::new(word)) });
        }
        let before_last = rest.len().saturating_sub(1);
        if fit == Fit::Certain && rest.iter().take(before_last).any(|element| *element == Element::Rest) {
            return Err(PatternError::new("**", "it stands last where something is allowed"));
        }
        Ok(Self { program, rest })
    }

    /// What stands for the program.
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// Whether the words behind the program fit.
    pub(crate) fn arguments_fit(&self, part: &Part, fit: Fit) -> bool {
        let words = part.words.get(1..).unwrap_or_default();
        let mut fits = Vec::new();
        // fits[n]: the elements so far may stand for the first n words.
        fits.resize(words.len() + 1, false);
        if let Some(first) = fits.first_mut() {
            *first = true;
        }
        spread_over_open(&mut fits, words, fit);
        for element in &self.rest {
            fits = match element {
                Element::Rest => {
                    let first = fits.iter().position(|fits| *fits).unwrap_or(usize::MAX);
                    (0..fits.len()).map(|at| at >= first).collect()
                }
                Element::One(pattern) => {
                    let mut next = vec![false; fits.len()];
                    for (at, word) in words.iter().enumerate() {
                        if !fits.get(at).copied().unwrap_or(false) {
                            continue;
                        }
                        let (takes, to) = match word {
                            Word::Text(text) => (pattern.matches(text), at + 1),
                            // It stays: what is open may stand for more than one word.
                            Word::Any => (fit == Fit::Possible, at),
                        };
                        if let Some(slot) = next.get_mut(to) {
                            *slot |= takes;
                        }
                    }
                    spread_over_open(&mut next, words, fit);
                    next
                }
            };
        }
        fits.last().copied().unwrap_or(false)
    }
}

/// What is open may stand for no word at all.
fn spread_over_open(fits: &mut [bool], words: &[Word], fit: Fit) {
    if fit == Fit::Certain {
        return;
    }
    for (at, word) in words.iter().enumerate() {
        if *word == Word::Any
            && fits.get(at).copied().unwrap_or(false)
            && let Some(slot) = fits.get_mut(at + 1)
        {
            *slot = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str, fit: Fit) -> ArgvPattern {
        ArgvPattern::new(&text.split(' ').map(str::to_owned).collect::<Vec<_>>(), fit).unwrap()
    }

    /// `…` in the words stands for what is open.
    fn fits(text: &str, words: &str, fit: Fit) -> bool {
        let word = |word: &str| if word == "…" { Word::Any } else { Word::Text(word.to_owned()) };
        let words = words.split(' ').map(word).collect();
        let part = Part { words, env: Vec::new(), scripted: false, sure: true };
        pattern(text, fit).arguments_fit(&part, fit)
    }

    #[test]
    fn each_element_stands_for_one_word_and_two_stars_for_any() {
        for (pattern, words, expected) in [
            ("git push", "git push", true),
            ("git push", "git push origin", false),
            ("git push **", "git push", true),
            ("git push **", "git push origin main", true),
            ("git * **", "git", false),
            ("cargo --*=*", "cargo --jobs=4", true),
            ("cargo --*=*", "cargo --jobs 4", false),
            ("** x", "a x", true),
            ("git ** push **", "git -C a push b", true),
            ("git ** push **", "git -C a pull b", false),
            ("npm [a]", "npm a", false),
            ("npm [a]", "npm [a]", true),
        ] {
            assert_eq!(fits(pattern, words, Fit::Possible), expected, "{pattern} / {words}");
        }
    }

    #[test]
    fn what_is_open_is_never_allowed_by_a_word_and_always_kept_by_one() {
        for (pattern, words, certain, possible) in [
            ("git push **", "git …", false, true),
            ("git **", "git …", true, true),
            ("git *", "git …", false, true),
            ("git push origin", "git … origin", false, true),
            ("git push", "git … …", false, true),
            ("git push", "git push …", false, true),
            ("git push", "git pull …", false, false),
            ("git a b c", "git …", false, true),
        ] {
            assert_eq!(fits(pattern, words, Fit::Certain), certain, "{pattern} / {words}");
            assert_eq!(fits(pattern, words, Fit::Possible), possible, "{pattern} / {words}");
        }
    }

    #[test]
    fn what_could_mean_another_thing_than_it_seems_is_no_pattern() {
        let refused = |words: &[&str], fit| {
            ArgvPattern::new(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), fit).is_err()
        };
        assert!(refused(&[], Fit::Certain) && refused(&[""], Fit::Possible) && refused(&["./git"], Fit::Possible));
        assert!(refused(&["git", "**", "push"], Fit::Certain) && !refused(&["git", "**", "push"], Fit::Possible));
        assert!(refused(&["**", "push"], Fit::Certain) && !refused(&["**"], Fit::Certain));
    }
}

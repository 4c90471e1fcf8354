//! `permissions` in `foot.yaml`: three lists of rules.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::permissions::{List, Place, Rule, RuleText, Rules};

/// The lists as they are written.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct RuleLists {
    deny: Vec<Spanned<Text>>,
    allow: Vec<Spanned<Text>>,
    ask: Vec<Spanned<Text>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Text {
    tools: Option<Vec<String>>,
    paths: Option<Vec<String>>,
    argv: Option<Vec<String>>,
    shell: bool,
    env: Option<Vec<String>>,
}

impl RuleLists {
    /// Compiles all rules. `home` is what `~/` stands for.
    ///
    /// # Errors
    /// What is wrong with the first one that cannot be used, and where it stands.
    pub(super) fn compile(self, file: &Path, home: Option<&Path>) -> Result<Rules, String> {
        let file: Arc<Path> = file.into();
        let list = |list: List, texts: Vec<Spanned<Text>>| {
            let rules = texts.into_iter().enumerate().map(|(at, text)| {
                let place = Place { list, nth: at + 1, line: text.defined.line(), file: file.clone() };
                let Text { tools, paths, argv, shell, env } = text.value;
                let told = format!("{}, line {}", place.short(), place.line);
                let rule = Rule::new(RuleText { tools, paths, argv, shell, env }, place, home);
                rule.map_err(|error| format!("{told}: {error}"))
            });
            rules.collect::<Result<Vec<_>, _>>()
        };
        Ok(Rules {
            deny: list(List::Deny, self.deny)?,
            allow: list(List::Allow, self.allow)?,
            ask: list(List::Ask, self.ask)?,
        })
    }
}

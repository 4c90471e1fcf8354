//! What the suite says of one scenario.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Outcomes by scenario.
pub(super) type Outcomes = BTreeMap<String, Outcome>;

/// How one check ended, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Status {
    Info,
    Success,
    Skipped,
    Warning,
    Failure,
}

/// One entry of the suite's `checks.json`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    id: String,
    name: String,
    status: Status,
    #[serde(default)]
    error_message: Option<String>,
}

/// All checks of one scenario.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// By id and name, each with the worst that came of it.
    checks: BTreeMap<(String, String), (Status, Option<String>)>,
}

impl Outcome {
    /// Reads the checks that the suite wrote.
    ///
    /// # Errors
    /// When that is not what they look like.
    pub(super) fn parse(json: &[u8]) -> serde_json::Result<Self> {
        let mut checks = BTreeMap::new();
        for check in serde_json::from_slice::<Vec<Check>>(json)? {
            let now = (check.status, check.error_message);
            let kept = checks.entry((check.id, check.name)).or_insert_with(|| now.clone());
            if now.0 > kept.0 {
                *kept = now;
            }
        }
        Ok(Self { checks })
    }

    /// Whether something was checked, and nothing is wrong. A warning is: it says that something is not as it should be.
    pub(super) fn passes(&self) -> bool {
        self.successes() > 0 && self.checks.values().all(|(status, _)| *status < Status::Warning)
    }

    /// Whether there was nothing to check.
    pub(super) fn is_skipped(&self) -> bool {
        self.checks.values().all(|(status, _)| matches!(status, Status::Skipped | Status::Info))
    }

    /// Whether a check was not made because the tools changed meanwhile: what the scenario before changed arrived late.
    pub(super) fn was_disturbed(&self) -> bool {
        let mut messages = self.checks.values().filter_map(|(_, message)| message.as_deref());
        messages.any(|message| message.starts_with("Not testable: the set of tools changed"))
    }

    /// How many checks succeed.
    pub(super) fn successes(&self) -> usize {
        self.checks.values().filter(|(status, _)| *status == Status::Success).count()
    }

    /// What is wrong, a line each.
    pub(super) fn complaints(&self) -> Vec<String> {
        let wrong = self.checks.iter().filter(|(_, (status, _))| *status >= Status::Warning);
        wrong.map(|((id, _), (_, message))| format!("{id}: {}", message.as_deref().unwrap_or("failed"))).collect()
    }

    /// What succeeded in `direct` and does not here, a line each.
    pub(super) fn lost(&self, direct: &Self) -> Vec<String> {
        let wanted = direct.checks.iter().filter(|(_, (status, _))| *status == Status::Success);
        let lost = wanted.filter_map(|(check, _)| match self.checks.get(check) {
            Some((Status::Success | Status::Info, _)) => None,
            Some((status, message)) => {
                Some(format!("{}: {}", check.0, message.clone().unwrap_or_else(|| format!("{status:?}"))))
            }
            None => Some(format!("{}: was not checked", check.0)),
        });
        lost.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(checks: &[(&str, &str)]) -> Outcome {
        let checks = checks.iter().map(|(id, status)| serde_json::json!({ "id": id, "name": id, "status": status }));
        Outcome::parse(serde_json::json!(checks.collect::<Vec<_>>()).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_scenario_passes_when_a_check_succeeds_and_none_fails_or_warns() {
        assert!(outcome(&[("a", "SUCCESS"), ("b", "INFO"), ("c", "SKIPPED")]).passes());
        for worse in ["WARNING", "FAILURE"] {
            assert!(!outcome(&[("a", "SUCCESS"), ("a", worse), ("a", "SUCCESS")]).passes(), "{worse}");
        }
        assert!(!outcome(&[("a", "SKIPPED")]).passes() && outcome(&[("a", "SKIPPED")]).is_skipped());
        assert!(Outcome::parse(br#"[{ "id": "a", "name": "a", "status": "SPLENDID" }]"#).is_err());
    }

    #[test]
    fn a_check_that_is_skipped_or_missing_on_the_way_is_lost() {
        let direct = outcome(&[("a", "SUCCESS"), ("b", "SUCCESS"), ("c", "SUCCESS"), ("d", "INFO")]);
        let through = outcome(&[("a", "SUCCESS"), ("b", "SKIPPED")]);
        assert_eq!(through.lost(&direct), ["b: Skipped", "c: was not checked"]);
        assert!(direct.lost(&direct).is_empty());
    }
}

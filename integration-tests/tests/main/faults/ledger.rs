//! What callers were told, against what really ran.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde_json::Value;

/// What a caller knows of one call in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The result.
    Done,
    /// A failure, with its code and outcome.
    Failed(String, String),
    /// Nothing: whoever should have answered was killed.
    Silent,
}

impl Answer {
    /// Reads the reply to an invocation.
    pub(super) fn of(reply: &integration_tests::api::Answer) -> Self {
        let json = reply.json();
        let text = |key: &str| json[key].as_str().map(str::to_owned);
        match (&json["isError"], text("code")) {
            (Value::Bool(false), None) => Self::Done,
            (Value::Bool(true), Some(code)) => Self::Failed(code, text("outcome").unwrap_or_default()),
            // A problem: the tool certainly did not run.
            (Value::Null, Some(code)) if !reply.status.is_success() => {
                Self::Failed(code, text("outcome").unwrap_or_else(|| NOT_RUN.to_owned()))
            }
            _ => Self::Failed(format!("{}: {}", reply.status, reply.text), String::new()),
        }
    }

    /// Whether a call with the same key may run after this answer.
    pub(super) fn did_not_run(&self) -> bool {
        matches!(self, Self::Failed(_, outcome) if outcome == NOT_RUN)
    }
}

const NOT_RUN: &str = "not_run";

/// The calls of a story and what was answered.
#[derive(Debug, Default)]
pub(super) struct Ledger(BTreeMap<String, Answer>);

impl Ledger {
    pub(super) fn note(&mut self, id: &str, answer: Answer) {
        self.0.insert(id.to_owned(), answer);
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Compares the answers with the lines that the calls wrote.
    ///
    /// # Errors
    /// Every answer that is not true.
    pub(super) fn judge(&self, lines: &str) -> Result<Tally, String> {
        let mut ran: HashMap<&str, usize> = HashMap::new();
        for line in lines.lines() {
            *ran.entry(line).or_default() += 1;
        }
        let (mut tally, mut lies) = (Tally::default(), Vec::new());
        for (id, answer) in &self.0 {
            let times = ran.remove(id.as_str()).unwrap_or_default();
            let (possible, count) = match answer {
                Answer::Done => (times == 1, &mut tally.done),
                Answer::Failed(_, outcome) => match outcome.as_str() {
                    NOT_RUN => (times == 0, &mut tally.not_run),
                    "completed" => (times == 1, &mut tally.completed),
                    "unknown" if times == 1 => (true, &mut tally.unknown_ran),
                    "unknown" => (times == 0, &mut tally.unknown_not),
                    _ => (false, &mut tally.unknown_not),
                },
                Answer::Silent => (times <= 1, &mut tally.silent),
            };
            *count += 1;
            if let Answer::Failed(code, _) = answer {
                *tally.codes.entry(code.clone()).or_default() += 1;
            }
            if !possible {
                lies.push(format!("{id} was answered with {answer:?} and ran {times} times"));
            }
        }
        lies.extend(ran.into_keys().map(|line| format!("nobody called `{line}`")));
        if lies.is_empty() { Ok(tally) } else { Err(format!("{} lies:\n{}\n{tally}", lies.len(), lies.join("\n"))) }
    }
}

/// How many calls ended how.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) done: usize,
    pub(super) completed: usize,
    pub(super) not_run: usize,
    pub(super) unknown_ran: usize,
    pub(super) unknown_not: usize,
    pub(super) silent: usize,
    codes: BTreeMap<String, usize>,
}

impl Tally {
    /// Calls in all.
    pub(super) fn all(&self) -> usize {
        self.done + self.completed + self.not_run + self.unknown_ran + self.unknown_not + self.silent
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { done, completed, not_run, unknown_ran, unknown_not, silent, codes } = self;
        write!(f, "{done} done, {completed} completed without a result, {not_run} not run, ")?;
        write!(f, "{unknown_ran} unknown that ran, {unknown_not} unknown that did not, {silent} unanswered; {codes:?}")
    }
}

#[test]
fn a_ledger_finds_every_kind_of_lie() {
    let failed = |outcome: &str| Answer::Failed("x".to_owned(), outcome.to_owned());
    let judge = |answer: Answer, lines: &str| {
        let mut ledger = Ledger::default();
        ledger.note("a", answer);
        ledger.judge(lines).is_ok()
    };
    for (answer, fits) in [
        (Answer::Done, [false, true, false]),
        (failed("not_run"), [true, false, false]),
        (failed("completed"), [false, true, false]),
        (failed("unknown"), [true, true, false]),
        (failed("perhaps"), [false, false, false]),
        (Answer::Silent, [true, true, false]),
    ] {
        let judged = ["", "a\n", "a\na\n"].map(|lines| judge(answer.clone(), lines));
        assert_eq!(judged, fits, "{answer:?}");
    }
    assert!(!judge(Answer::Done, "a\nb\n"), "a line that nobody asked for");
}

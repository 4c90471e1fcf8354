//! Asking: one answer, in time, once or for good.

use std::time::Duration;

use super::*;
use crate::permissions::audit::Audit;
use tokio_util::sync::CancellationToken;

/// Somebody who says what the test says, and remembers what they were asked.
#[derive(Debug, Default)]
struct Person {
    says: Mutex<Vec<Option<Reply>>>,
    asked: Arc<Mutex<Vec<Question>>>,
}

#[async_trait::async_trait]
impl Asker for Person {
    fn is_there(&self) -> bool {
        true
    }

    async fn ask(&self, question: Question) -> Option<Reply> {
        self.asked.lock().unwrap().push(question);
        let next = self.says.lock().unwrap().pop();
        match next {
            Some(said) => said,
            None => std::future::pending().await,
        }
    }
}

struct Scene {
    machine: Machine,
    permissions: Arc<Permissions>,
    asked: Arc<Mutex<Vec<Question>>>,
    audit: PathBuf,
}

fn scene(yaml: &str, says: &[Option<Reply>]) -> Scene {
    let machine = Machine::new();
    let person = Person { says: Mutex::new(says.iter().rev().copied().collect()), ..Person::default() };
    let (asked, audit) = (person.asked.clone(), machine.dir.path().join("audit.jsonl"));
    let desk = Desk {
        asker: Box::new(person),
        remembered: Arc::new(Remembered::open(machine.dir.path().join("answers.json")).unwrap()),
        audit: Audit::open(audit.clone()).unwrap(),
        clock: crate::clock::ManualClock::shared(),
    };
    let permissions = Permissions::with(machine.judge(yaml), Arc::new(desk));
    Scene { machine, permissions, asked, audit }
}

impl Scene {
    fn write(&self, path: &str) -> Action {
        Action::File { access: Access::Write, path: self.machine.top.join("w").join(path) }
    }

    async fn admit(&self, path: &str) -> Result<(), Failure> {
        let (ctx, _told, _cancel) = context::detached();
        self.permissions.admit("file_write", &self.write(path), &ctx).await
    }

    /// Ends the foot, and reads what it wrote down.
    fn decisions(self) -> Vec<(String, String)> {
        drop(self.permissions);
        let lines = read_back(&self.audit, 99, |_| true).unwrap();
        lines.into_iter().map(|line| (line.decision, line.by)).collect()
    }
}

const YES: Option<Reply> = Some(Reply { allow: true, always: false });
const NO: Option<Reply> = Some(Reply { allow: false, always: false });
const ALWAYS: Option<Reply> = Some(Reply { allow: true, always: true });
const NEVER: Option<Reply> = Some(Reply { allow: false, always: true });

#[tokio::test]
async fn once_is_once_and_always_is_for_exactly_this() {
    let scene = scene("write: ask", &[YES, NO, ALWAYS, NEVER, YES]);
    assert!(scene.admit("app/[slug]/a").await.is_ok());
    assert_eq!(scene.admit("app/[slug]/a").await.unwrap_err().message, "the owner of this foot said no");
    assert!(scene.admit("app/[slug]/a").await.is_ok());
    assert!(scene.admit("app/[slug]/a").await.is_ok(), "always");
    assert_eq!(scene.asked.lock().unwrap().len(), 3);

    let failure = scene.admit("app/s/a").await.unwrap_err();
    assert_eq!((failure.code, failure.outcome), (ErrorCode::PermissionDenied, Outcome::NotRun));
    assert!(scene.admit("app/s/a").await.unwrap_err().hint.unwrap().contains("foot permissions list"), "never");
    assert_eq!(scene.asked.lock().unwrap().len(), 4, "what was said of [slug] says nothing of s");
    let lines = scene.asked.lock().unwrap()[0].clone();
    assert_eq!((lines.subject.as_str(), lines.tool.as_str(), lines.seconds), ("ada", "file_write", 60));
    assert!(lines.lines[0].ends_with("/w/app/[slug]/a\""), "{lines:?}");
    let decisions = scene.decisions();
    let said: Vec<&str> = decisions.iter().map(|(decision, _)| decision.as_str()).collect();
    assert_eq!(said, ["ask-yes", "ask-no", "ask-yes", "allow", "ask-no", "deny"]);
    assert_eq!(decisions[3].1, "remembered: always yes");
}

#[tokio::test(start_paused = true)]
async fn a_question_ends_with_the_time_that_is_left_and_shows_life_until_then() {
    let scene = scene("write: ask", &[]);
    let (ctx, mut told, _cancel) = context::detached();
    let started = tokio::time::Instant::now();
    let failure = scene.permissions.admit("file_write", &scene.write("a"), &ctx).await.unwrap_err();
    assert_eq!((failure.code, failure.outcome), (ErrorCode::PermissionDenied, Outcome::NotRun));
    assert!(failure.hint.unwrap().contains("`write: ask`"));
    assert_eq!(started.elapsed().as_secs(), 60, "the call had a minute left");
    assert_eq!(ctx.progression().phase(), crate::tools::context::Phase::Asking);
    let first = format!("{:?}", told.try_recv().unwrap());
    assert!(first.contains("awaiting_approval"), "{first}");
    assert_eq!(scene.decisions()[0].0, "expired");
}

#[tokio::test]
async fn a_call_that_is_stopped_while_a_person_is_asked_does_not_run() {
    let scene = scene("write: ask", &[]);
    let (ctx, _told, cancel): (_, _, CancellationToken) = context::detached();
    let action = scene.write("a");
    let stop = async {
        while scene.asked.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (admitted, ()) = tokio::join!(scene.permissions.admit("file_write", &action, &ctx), stop);
    let failure = admitted.unwrap_err();
    assert_eq!((failure.code, failure.outcome), (ErrorCode::Cancelled, Outcome::NotRun));
    assert_eq!(scene.decisions(), [("withdrawn".to_owned(), "write: ask".to_owned())]);
}

#[tokio::test]
async fn without_anybody_it_is_no_and_the_setting_is_named() {
    let machine = Machine::new();
    let judge = machine.judge("write: ask\npermissions: {ask: [{paths: [src]}]}");
    let permissions = Permissions::with(judge, Arc::new(Desk::closed()));
    let (ctx, _told, _cancel) = context::detached();
    for (path, part) in [("w/a", "`write: ask` asks"), ("w/src/a", "permissions.ask rule 1 asks")] {
        let action = Action::File { access: Access::Write, path: machine.top.join(path) };
        let failure = permissions.admit("file_write", &action, &ctx).await.unwrap_err();
        assert_eq!((failure.code, failure.outcome), (ErrorCode::PermissionDenied, Outcome::NotRun));
        assert!(failure.hint.unwrap().starts_with(part));
    }
    let gone = scene("write: ask", &[None]);
    assert!(gone.admit("a").await.unwrap_err().message.contains("nobody is there"));
}

#[tokio::test]
async fn what_a_person_said_for_good_goes_before_a_rule_that_asks_and_behind_one_that_denies() {
    let scene = scene("permissions: {deny: [{paths: [x]}], ask: [{paths: [y, x]}]}", &[ALWAYS]);
    assert!(scene.admit("y").await.is_ok());
    assert!(scene.admit("y").await.is_ok());
    assert_eq!(scene.asked.lock().unwrap().len(), 1);
    let failure = scene.admit("x").await.unwrap_err();
    assert_eq!(failure.hint.as_deref(), Some("permissions.deny rule 1 in the foot's settings speaks against it"));
    assert_eq!(Duration::from_secs(120), super::super::desk::MAX_WAIT);
}

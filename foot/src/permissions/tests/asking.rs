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

/// What a call of a local server's tool would do.
fn server(arguments: &str, permission: Mode) -> Action {
    Action::Server(ServerAction {
        server: "notes".to_owned(),
        what: "add".to_owned(),
        arguments: arguments.to_owned(),
        permission,
    })
}

#[tokio::test]
async fn a_servers_tool_goes_by_rules_that_name_it_then_by_what_its_server_is_permitted() {
    let rules = "permissions: {deny: [{tools: ['notes__delete*']}], allow: [{tools: [notes__get]}], ask: [{tools: ['*__add']}]}";
    let judge = Machine::new().judge(rules);
    for (tool, permission, expected) in [
        ("notes__list", Mode::Allow, Verdict::Allow),
        ("notes__list", Mode::Deny, Verdict::Deny),
        ("notes__list", Mode::Ask, Verdict::Ask),
        ("notes__delete_all", Mode::Allow, Verdict::Deny),
        ("notes__get", Mode::Deny, Verdict::Allow),
        ("notes__add", Mode::Allow, Verdict::Ask),
    ] {
        assert_eq!(judge.decide(tool, &server("{}", permission), None).verdict, expected, "{tool} {permission}");
    }
}

#[tokio::test]
async fn an_answer_about_a_server_holds_for_the_same_arguments_alone() {
    let always = Some(Reply { allow: true, always: true });
    let scene = scene("", &[always, Some(Reply { allow: false, always: false })]);
    let (ctx, _told, _cancel) = context::detached();
    for (arguments, expected) in [(r#"{"a":1}"#, true), (r#"{"a":1}"#, true), (r#"{"a":2}"#, false)] {
        let admitted = scene.permissions.admit("notes__add", &server(arguments, Mode::Ask), &ctx).await;
        assert_eq!(admitted.is_ok(), expected, "{arguments}");
    }
    assert_eq!(scene.asked.lock().unwrap().len(), 2);
    assert!(scene.asked.lock().unwrap()[0].lines[0].contains("the server \"notes\" for \"add\""));
}

/// Asks for a call that came through a client, which answers so; what it was asked, if it was.
async fn through_client(scene: &Scene, by_owner: bool, can: &str, answer: &str) -> (bool, Option<String>) {
    use footbridge_shared::message::{CallerClient, FootToHub};
    let (mut ctx, _told, _cancel) = context::detached();
    ctx.caller.client = Some(Box::new(CallerClient {
        protocol: "2025-11-25".to_owned(),
        capabilities: serde_json::from_str(can).unwrap(),
        session: None,
    }));
    let line = crate::line::Line::default();
    line.connected(false);
    let ctx = ctx.over(line.clone(), None, by_owner);
    let action = server("{}", Mode::Ask);
    let hub = async {
        line.news().await;
        let Some(FootToHub::Upcall(upcall)) = line.take().pop() else { panic!("a question") };
        let result = serde_json::json!({"call": upcall.call, "id": upcall.id, "result":
            serde_json::from_str::<serde_json::Value>(answer).unwrap()});
        line.answered(serde_json::from_value(result).unwrap());
        assert_eq!(upcall.method, "elicitation/create");
        Some(upcall.params.get().to_owned())
    };
    let admitted = scene.permissions.admit("notes__add", &action, &ctx);
    tokio::select! {
        admitted = async { tokio::join!(admitted, hub) } => (admitted.0.is_ok(), admitted.1),
        admitted = scene.permissions.admit("notes__add", &action, &ctx), if !by_owner || can == "{}" => (admitted.is_ok(), None),
    }
}

#[tokio::test]
async fn the_owner_is_asked_through_their_own_client_where_they_allow_it() {
    let yes = r#"{"action": "accept", "content": {"allow": true, "always": true}}"#;
    let scene = scene("askClient: true", &[]);
    let (allowed, asked) = through_client(&scene, true, r#"{"elicitation": {}}"#, yes).await;
    assert!(allowed && asked.unwrap().contains("notes__add"));
    for no in
        [r#"{"action": "accept", "content": {"allow": false}}"#, r#"{"action": "decline"}"#, r#"{"action": "cancel"}"#]
    {
        assert!(!through_client(&scene, true, r#"{"elicitation": {}}"#, no).await.0, "{no}");
    }
    assert!(scene.asked.lock().unwrap().is_empty(), "nobody was asked at the terminal");
}

#[tokio::test]
async fn nobody_else_is_asked_through_a_client() {
    for (yaml, by_owner, can) in [("askClient: true", false, r#"{"elicitation": {}}"#), ("askClient: true", true, "{}")]
    {
        let scene = scene(yaml, &[Some(Reply { allow: true, always: false }); 2]);
        let (allowed, asked) = through_client(&scene, by_owner, can, "{}").await;
        assert!(allowed && asked.is_none() && !scene.asked.lock().unwrap().is_empty(), "{yaml} {by_owner} {can}");
    }
}

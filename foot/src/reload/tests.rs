use std::path::Path;

use super::*;
use crate::config::{Environment, Settings, resolve};
use crate::permissions::{Access, Action, Headless};
use crate::tools::context;

/// A foot whose settings file a test changes.
struct Place {
    dir: tempfile::TempDir,
    offer: Offer,
    config: FootConfig,
    tools: Arc<ToolSet>,
    servers: Arc<Servers>,
}

const HUB: &str = "hub: https://hub.example.org\nproject: web\nname: laptop\ntokenFile: /t0\n";

fn source(dir: &Path) -> Source {
    let (file, here) = (dir.join("foot.yaml"), dir.to_owned());
    let environment = Environment::of(&[("HOME", here.to_str().unwrap())]);
    let path = file.clone();
    let read = move || {
        let flags = Settings { roots: Some(vec!["w".into()]), ..Settings::default() };
        Ok(resolve(flags, Some(&path), &environment, &here)?.config)
    };
    Source { file, read: Arc::new(read) }
}

/// As editors do: another file takes the place of the first.
fn write(dir: &Path, text: &str) {
    std::fs::write(dir.join("draft"), text).unwrap();
    std::fs::rename(dir.join("draft"), dir.join("foot.yaml")).unwrap();
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("w")).unwrap();
    std::fs::write(dir.path().join("w/a"), "").unwrap();
    write(dir.path(), HUB);
    let config = (source(dir.path()).read)().unwrap();
    std::fs::create_dir_all(config.own_folder()).unwrap();
    let offer = Offer::open(&config, Box::new(Headless), crate::clock::ManualClock::shared()).unwrap();
    let permissions = offer.permissions(&config).unwrap();
    let tools = Arc::new(ToolSet::new(offer.tools(&config, &permissions), &permissions).0);
    let clock = crate::clock::ManualClock::shared();
    let servers = Servers::launched_by(crate::servers::tests::launcher(), (&tools, &permissions), clock);
    Place { dir, offer, config, tools, servers }
}

impl Place {
    async fn reads(&self) -> bool {
        let (ctx, _told, _cancel) = context::detached();
        let action = Action::File { access: Access::Read, path: self.dir.path().canonicalize().unwrap().join("w/a") };
        self.tools.get("file_read").unwrap().permissions.admit("file_read", &action, &ctx).await.is_ok()
    }

    /// Follows the file until the set of tools was replaced.
    async fn follow_until_replaced(&self) {
        let mut changes = self.tools.follow();
        changes.mark_unchanged();
        tokio::select! {
            () = follow(source(self.dir.path()), self.config.clone(), &self.offer, &self.tools, &self.servers) => {}
            changed = changes.changed() => changed.unwrap(),
        }
    }
}

const DENY: &str = "permissions: {deny: [{paths: [a]}]}\n";

#[tokio::test(start_paused = true)]
async fn a_changed_file_is_in_force_for_the_next_call() {
    let place = place();
    assert!(place.reads().await);
    write(place.dir.path(), &format!("{HUB}{DENY}"));
    place.follow_until_replaced().await;
    assert!(!place.reads().await);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_understood_changes_nothing_until_it_is_mended() {
    let place = place();
    let following = place.follow_until_replaced();
    let editing = async {
        for broken in
            ["permissions: {deny: [{paths: ['[']}]}\n", "roots: [/no/such/folder/at/all]\nwrite", "write: yes\n", ""]
        {
            // The file without a hub is broken, too.
            let text = if broken.is_empty() { String::new() } else { format!("{HUB}{broken}") };
            write(place.dir.path(), &text);
            tokio::time::sleep(INTERVAL * 5).await;
            assert!(place.reads().await, "{broken}");
        }
        std::fs::remove_file(place.dir.path().join("foot.yaml")).unwrap();
        tokio::time::sleep(INTERVAL * 5).await;
        write(place.dir.path(), &format!("{HUB}{DENY}"));
    };
    tokio::join!(following, editing);
    assert!(!place.reads().await);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_taken_back_elsewhere_no_longer_holds() {
    use crate::permissions::{Answer, Literal, Remembered};
    let place = place();
    let about = Literal::of("ada", "file_write", &Action::Nothing).unwrap();
    place.offer.answers().keep(Answer { allow: true, about: about.clone(), given_ms: 1 }).unwrap();
    let elsewhere = Remembered::open(place.config.own_file(crate::offer::ANSWERS)).unwrap();
    let forgotten = async {
        tokio::time::sleep(INTERVAL * 2).await;
        elsewhere.forget(1).unwrap();
        while place.offer.answers().said_of(&about).is_some() {
            tokio::time::sleep(INTERVAL).await;
        }
    };
    tokio::select! {
        () = follow(source(place.dir.path()), place.config.clone(), &place.offer, &place.tools, &place.servers) => {}
        () = forgotten => {}
    }
    assert_eq!(place.offer.answers().all(), []);
}

#[test]
fn what_a_foot_is_born_with_stays_as_it_was() {
    let place = place();
    let text = "hub: https://other.example.org\nproject: other\nname: other\nshare: project\nmaxConcurrent: 3\ntokenFile: /t\n";
    write(place.dir.path(), &format!("{text}{DENY}"));
    let next = (source(place.dir.path()).read)().unwrap();
    assert_eq!(born_with(&place.config, &next), ["hub", "tokenFile", "project", "name", "share", "maxConcurrent"]);
    let now = take_up(&place.config, next, &place.offer, (&place.tools, &place.servers)).unwrap();
    assert_eq!((now.name.as_str(), now.project.as_str(), now.permitted.rules.count()), ("laptop", "web", 1));
    assert!(now.deny.contains(&"/t".into()), "a token to come is kept to itself");
}

#[tokio::test]
async fn servers_come_and_go_with_the_settings_and_with_the_file_of_other_programs() {
    use crate::servers::tests::fake;
    let place = place();
    let program = std::env::current_exe().unwrap();
    let server = format!(
        "{{command: '{}', args: [--exact, '{}', --nocapture], env: {{{}: session}}",
        program.display(),
        fake::TEST,
        fake::KIND
    );
    let json = serde_json::json!({"mcpServers": {"B": {"command": program, "args": ["--exact", fake::TEST, "--nocapture"],
        "env": {fake::KIND: "session"}}}});
    let beside = place.dir.path().join("mcp.json");
    let settings = format!("{HUB}kernelSandbox: off\nmcpJson: {}\n", beside.display());
    let offered = async |packs: &[&str]| {
        let mut changes = place.tools.follow();
        loop {
            let of = |pack: &str| place.tools.get(&format!("{pack}__state")).is_some();
            if ["a", "b"].iter().all(|pack| of(pack) == packs.contains(pack)) {
                return;
            }
            changes.changed().await.unwrap();
        }
    };
    let story = async {
        std::fs::write(&beside, r#"{"mcpServers": {}}"#).unwrap();
        write(place.dir.path(), &format!("{settings}servers: {{a: {server}}}}}\n"));
        offered(&["a"]).await;
        std::fs::write(&beside, json.to_string()).unwrap();
        offered(&["a", "b"]).await;
        write(place.dir.path(), &format!("{settings}servers: {{a: {server}, disabled: true}}}}\n"));
        offered(&["b"]).await;
        let mut infos = place.servers.infos();
        infos.wait_for(|infos| infos.keys().all(|name| name.as_str() == "b")).await.unwrap();
        place.servers.end().await;
    };
    let following = follow(source(place.dir.path()), place.config.clone(), &place.offer, &place.tools, &place.servers);
    tokio::select! {
        () = following => {}
        story = tokio::time::timeout(std::time::Duration::from_secs(60), story) => story.unwrap(),
    }
}

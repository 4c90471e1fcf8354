//! What a foot permits, told on the real binaries: the modes, the rules, who is told what, and changes while it runs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use integration_tests::api::Api;
use integration_tests::binaries;
use integration_tests::eventually::eventually;
use integration_tests::foot::TestFoot;
use integration_tests::hub::TestHub;
use integration_tests::process::Process;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::TestResult;

/// A hub, a project, and a foot that serves it under settings of the test's.
struct Scene {
    hub: TestHub,
    foot: TestFoot,
    root: TempDir,
    settings: TempDir,
}

impl Scene {
    async fn start(settings: &str, more: &[&str]) -> TestResult<Self> {
        let hub = TestHub::start().await?;
        let (root, folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
        std::fs::write(root.path().join("README.md"), "# Hello\n")?;
        let file = folder.path().join("foot.yaml");
        std::fs::write(&file, settings)?;
        let file = file.to_string_lossy().into_owned();
        let flags: Vec<&str> = ["--config", &file].into_iter().chain(more.iter().copied()).collect();
        let foot = TestFoot::start(&hub, "ada", "laptop", root.path(), &flags).await?;
        Ok(Self { hub, foot, root, settings: folder })
    }

    async fn api(&self) -> TestResult<Api> {
        Ok(self.hub.api()?.with_token(&self.hub.token("ada", &["engine", "viewer"]).await?))
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// Another file takes the place of the settings, as editors do it.
    fn change_settings(&self, settings: &str) -> TestResult {
        let draft = self.settings.path().join("draft");
        std::fs::write(&draft, settings)?;
        Ok(std::fs::rename(draft, self.settings.path().join("foot.yaml"))?)
    }

    /// A command of the foot's owner, at a terminal.
    fn foot(&self, arguments: &[&str]) -> TestResult<Output> {
        Ok(Command::new(binaries::foot()?).args(arguments).current_dir(self.root.path()).output()?)
    }

    /// What was decided, as the owner gets to see it.
    fn audit(&self) -> TestResult<Vec<Value>> {
        let state = self.foot.state().to_string_lossy().into_owned();
        let output = self.foot(&["audit", "--state", &state, "--json"])?;
        let text = String::from_utf8(output.stdout)?;
        Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }

    async fn tools(&self, api: &Api) -> TestResult<(Vec<String>, String)> {
        let feet = api.get("feet").await?.ok()?.json();
        let foot = &feet["feet"][0];
        let tools = foot["tools"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        Ok((tools.collect(), foot["connectedAt"].to_string()))
    }
}

fn refused(answer: &integration_tests::api::Answer, part: &str) {
    let json = answer.json();
    let told = (json["code"].as_str(), json["outcome"].as_str());
    assert_eq!(told, (Some("permission_denied"), Some("not_run")), "{}", answer.text);
    assert!(json["hint"].as_str().is_some_and(|hint| hint.contains(part)), "{part}: {}", answer.text);
}

#[tokio::test]
async fn what_would_be_asked_is_refused_without_a_terminal_and_all_of_it_is_written_down() -> TestResult {
    let settings =
        "permissions:\n  deny: [{paths: ['secrets/**']}]\n  allow: [{tools: [file_write], paths: ['notes/*']}]\n";
    let scene = Scene::start(settings, &["--write", "ask"]).await?;
    let api = scene.api().await?;
    std::fs::create_dir(scene.path("notes"))?;
    std::fs::create_dir(scene.path("secrets"))?;
    std::fs::write(scene.path("secrets/key"), "needle")?;

    api.call("file_write", json!({"path": "notes/a", "content": "x"})).await?;
    refused(&api.invoke("file_write", json!({"path": "src", "content": "x"})).await?, "`write: ask`");
    for path in ["secrets/key", "notes/../secrets/key", "Secrets/key"] {
        if !scene.path(path).exists() {
            continue;
        }
        refused(&api.invoke("file_read", json!({ "path": path })).await?, "permissions.deny rule 1");
    }
    // Whether something is there cannot be learnt.
    refused(&api.invoke("file_read", json!({"path": "secrets/none"})).await?, "permissions.deny rule 1");
    assert_eq!(api.invoke("file_read", json!({"path": "/etc/passwd"})).await?.code(), "path_denied");
    let found = api.call("file_grep", json!({"pattern": "needle", "path": "."})).await?;
    assert_eq!(found["matches"].as_array().map(Vec::len), Some(0), "{found}");
    assert!(!scene.path("src").exists());

    let decisions = eventually("all decisions are written down", || async {
        let lines = scene.audit()?;
        Ok((lines.len() >= 7).then_some(lines))
    })
    .await?;
    let told: Vec<(&str, &str)> = decisions
        .iter()
        .map(|line| (line["tool"].as_str().unwrap_or_default(), line["decision"].as_str().unwrap_or_default()))
        .collect();
    let expected = [
        ("file_write", "allow"),
        ("file_write", "nobody"),
        ("file_read", "deny"),
        ("file_read", "deny"),
        ("file_read", "deny"),
        ("file_read", "deny"),
        ("file_grep", "allow"),
    ];
    assert_eq!(told, expected);
    assert_eq!(decisions[0]["subject"], "ada");
    assert!(decisions[0]["path"].as_str().is_some_and(|path| path.ends_with("notes/a")), "{}", decisions[0]);
    assert!(decisions[0]["by"].as_str().is_some_and(|by| by.contains("foot.yaml, line 3")), "{}", decisions[0]);
    Ok(())
}

#[tokio::test]
async fn commands_go_by_their_words_and_not_by_their_text() -> TestResult {
    let settings = "permissions:\n  deny: [{argv: [rm, '**']}, {paths: [secrets]}]\n  allow: [{argv: [echo, '**']}, {argv: [env, '**']}]\n";
    let scene = Scene::start(settings, &["--no-kernel-sandbox"]).await?;
    let api = scene.api().await?;
    std::fs::write(scene.path("keep"), "")?;
    std::fs::create_dir(scene.path("secrets"))?;
    for argv in [json!(["echo", "a; rm keep"]), json!(["env", "echo", "b"])] {
        api.call("exec_run", json!({ "argv": argv })).await?;
    }
    for (arguments, part) in [
        (json!({"argv": ["rm", "keep"]}), "permissions.deny rule 1"),
        (json!({"argv": ["env", "X=1", "rm", "keep"]}), "permissions.deny rule 1"),
        (json!({"argv": ["sh", "-c", "echo a; rm keep"]}), "permissions.deny rule 1"),
        (json!({"command": "echo $(rm keep)"}), "permissions.deny rule 1"),
        (json!({"argv": ["echo", "secrets/x"]}), "permissions.deny rule 2"),
        (json!({"command": "echo a"}), "`exec: deny`"),
        (json!({"argv": ["ls"]}), "`exec: deny`"),
        (json!({"argv": ["env", "ls"]}), "`exec: deny`"),
        (json!({"argv": ["echo", "a"], "env": {"SECRET_NAME": "hunter2"}}), "`exec: deny`"),
    ] {
        refused(&api.invoke("exec_run", arguments).await?, part);
    }
    assert!(scene.path("keep").exists());
    let lines = eventually("all decisions are written down", || async {
        let lines = scene.audit()?;
        Ok((lines.len() >= 11).then_some(lines))
    })
    .await?;
    let text = json!(lines).to_string();
    assert!(text.contains("SECRET_NAME") && !text.contains("hunter2"), "names are written down, values never");
    Ok(())
}

#[tokio::test]
async fn changed_settings_hold_for_the_next_call_on_the_same_connection() -> TestResult {
    let scene = Scene::start("# nothing yet\n", &[]).await?;
    let api = scene.api().await?;
    let (before, connected) = scene.tools(&api).await?;
    assert!(!before.contains(&"file_write".to_owned()), "{before:?}");

    scene.change_settings("write: allow\npermissions: {deny: [{paths: [README.md]}]}\n")?;
    eventually("the hub lists the tools that write", || async {
        let (tools, _) = scene.tools(&api).await?;
        Ok(tools.contains(&"file_write".to_owned()).then_some(()))
    })
    .await?;
    refused(&api.invoke("file_read", json!({"path": "README.md"})).await?, "permissions.deny rule 1");
    api.call("file_write", json!({"path": "new", "content": "x"})).await?;

    // What cannot be understood changes nothing, neither to more nor to less.
    scene.change_settings("write: allow\npermissions: {deny: [{paths: ['[']}]}\n")?;
    eventually("the foot says so", || async {
        Ok(scene.foot.process.output().contains("cannot be used; those before stay in force").then_some(()))
    })
    .await?;
    refused(&api.invoke("file_read", json!({"path": "README.md"})).await?, "permissions.deny rule 1");

    scene.change_settings("write: deny\n")?;
    let (after, still) = eventually("the tools that write are gone", || async {
        let (tools, connected) = scene.tools(&api).await?;
        Ok((!tools.contains(&"file_write".to_owned())).then_some((tools, connected)))
    })
    .await?;
    assert_eq!((after, still), (before, connected), "nothing was connected anew");
    Ok(())
}

#[tokio::test]
async fn nothing_in_the_working_directory_widens_what_is_permitted() -> TestResult {
    let scene = Scene::start("write: ask\n", &[]).await?;
    let api = scene.api().await?;
    let hostile = "write: allow\nexec: allow\npermissions: {allow: [{tools: ['*']}, {shell: true}]}\n";
    for path in ["foot.yaml", ".footbridge/foot.yaml", ".config/footbridge/foot.yaml", "permissions.yaml", ".env"] {
        let path = scene.path(path);
        std::fs::create_dir_all(path.parent().ok_or("no folder")?)?;
        std::fs::write(path, hostile)?;
    }
    refused(&api.invoke("file_write", json!({"path": "a", "content": "x"})).await?, "`write: ask`");
    assert_eq!(api.invoke("exec_run", json!({"argv": ["ls"]})).await?.code(), "unknown_tool");
    // A foot that is started there reads none of it either.
    let home = scene.root.path().join("home");
    let output = Command::new(binaries::foot()?)
        .args(["check", "--tool", "file_write", "--path", "a"])
        .current_dir(scene.root.path())
        .env("HOME", home)
        .env_remove("XDG_CONFIG_HOME")
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    assert!(text.contains("write: deny") && output.status.code() == Some(1), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_check_explains_a_call_and_settings_that_are_not_understood_stop_a_start() -> TestResult {
    let settings = "write: ask\nexec: deny\npermissions:\n  deny:\n  - {argv: [git, push, '**']}\n  allow:\n  - {argv: [echo, '**']}\n";
    let scene = Scene::start(settings, &[]).await?;
    let file = scene.settings.path().join("foot.yaml").to_string_lossy().into_owned();
    let check = |arguments: &[&str]| -> TestResult<(Option<i32>, String)> {
        let all: Vec<&str> = ["check", "--config", &file].into_iter().chain(arguments.iter().copied()).collect();
        let output = scene.foot(&all)?;
        Ok((output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned()))
    };
    for (arguments, code, part) in [
        (&["--path", "README.md"][..], 0, "yes, without asking"),
        (&["--tool", "file_write", "--path", "README.md"], 1, "a person is asked"),
        (&["--", "echo", "a b"], 0, "permissions.allow rule 1 ("),
        (&["--", "sudo", "git", "push"], 1, "foot.yaml, line 5)"),
        (&["--shell", "echo a; git push"], 1, "permissions.deny rule 1"),
        (&["--path", "/etc/passwd"], 1, "under no root"),
    ] {
        let (found, text) = check(arguments)?;
        assert_eq!(found, Some(code), "{arguments:?}: {text}");
        assert!(text.contains(part), "{arguments:?}: {text}");
    }
    scene.change_settings("permissions: {deny: [{paths: ['a[']}]}\n")?;
    for arguments in [&["check", "--config", &file, "--path", "x"][..], &["run", "--config", &file]] {
        let output = scene.foot(arguments)?;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains("permissions.deny rule 1, line 1: `a[`"), "{errors}");
    }
    Ok(())
}

#[test]
fn up_takes_what_is_allowed_as_flags_and_says_so() -> TestResult {
    let (home, folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let command = |binary: &Path, arguments: &[&str]| {
        let mut command = Command::new(binary);
        command.args(arguments).current_dir(folder.path());
        command.env_remove("FOOTBRIDGE_URL").env_remove("FOOTBRIDGE_TOKEN");
        command.env("HOME", home.path()).env("XDG_STATE_HOME", home.path().join("state"));
        command.env("XDG_CONFIG_HOME", home.path().join("config"));
        command
    };
    let footbridge = binaries::footbridge()?;
    let flags = ["up", "--listen", "127.0.0.1:0", "--allow-write", "--allow-exec", "--no-kernel-sandbox"];
    let mut up = Process::spawn(&mut command(&footbridge, &flags))?;
    up.line_with("allows reading, writing, any command, WITHOUT the kernel's sandbox")?;
    for arguments in
        [&["call", "file_write", "path=a", "content=x"][..], &["call", "exec_run", r#"argv=["sh","-c","cat a"]"#]]
    {
        let output = command(&footbridge, arguments).output()?;
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("a"))?, "x");
    // The owner finds the book of that foot without naming its folder.
    let audit = command(&binaries::foot()?, &["audit"]).output()?;
    let text = String::from_utf8(audit.stdout)?;
    assert!(text.contains("file_write  write") && text.contains("exec: allow"), "{text}");
    Ok(())
}

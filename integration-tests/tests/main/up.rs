//! The main job, on real input: `footbridge up` in a folder, a call from another terminal, a second foot.

use std::path::Path;
use std::process::{Command, Output};

use integration_tests::binaries;
use integration_tests::process::Process;
use tempfile::TempDir;

use crate::TestResult;

/// A user's machine: a folder to work in, a home of its own.
struct Machine {
    home: TempDir,
    folder: TempDir,
}

impl Machine {
    fn new() -> TestResult<Self> {
        Ok(Self { home: tempfile::tempdir()?, folder: tempfile::tempdir()? })
    }

    fn command(&self, binary: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary);
        command.args(arguments).current_dir(self.folder.path());
        command.env_remove("FOOTBRIDGE_URL").env_remove("FOOTBRIDGE_TOKEN");
        command.env("HOME", self.home.path()).env("XDG_STATE_HOME", self.home.path().join("state"));
        command.env("XDG_CONFIG_HOME", self.home.path().join("config"));
        command
    }

    fn footbridge(&self, arguments: &[&str]) -> TestResult<Output> {
        Ok(self.command(&binaries::footbridge()?, arguments).output()?)
    }

    fn says(&self, arguments: &[&str]) -> TestResult<String> {
        let output = self.footbridge(arguments)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(text) } else { Err(format!("{arguments:?}: {text}{errors}").into()) }
    }
}

#[test]
fn up_serves_the_folder_to_another_terminal() -> TestResult {
    let machine = Machine::new()?;
    std::fs::write(machine.folder.path().join("README.md"), "# Hello from the folder\n")?;
    let mut up = Process::spawn(&mut machine.command(&binaries::footbridge()?, &["up", "--listen", "127.0.0.1:0"]))?;
    up.line_with("footbridge call file_read path=README.md")?;

    assert!(machine.says(&["call", "file_read", "path=README.md"])?.contains("# Hello from the folder"));
    let why = machine.says(&["tools", "why", "file_read"])?;
    assert!(why.contains("foot:"), "{why}");

    // A project tool hides a tenant tool hides a bundled one; `why` names the winner and each layer it hides.
    let page = machine.folder.path().join("page.yaml");
    std::fs::write(&page, "type: doc_lookup\ndescription: Mine.\nparameters: { path: documents/mine.md }\n")?;
    let page = page.to_string_lossy().into_owned();
    machine.says(&["tools", "put", "doc_getting_started", &page])?;
    machine.says(&["tools", "put", "doc_getting_started", &page, "--tenant-layer"])?;
    let why = machine.says(&["tools", "why", "doc_getting_started", "--json"])?;
    let why: serde_json::Value = serde_json::from_str(&why)?;
    let layers: Vec<(&str, bool)> = why["layers"]
        .as_array()
        .ok_or("no layers")?
        .iter()
        .map(|layer| (layer["layer"].as_str().unwrap_or_default(), layer["winner"] == true))
        .collect();
    assert_eq!(layers, [("project", true), ("tenant", false), ("bundled", false)]);

    // A second foot on another folder joins.
    let second = tempfile::tempdir()?;
    std::fs::write(second.path().join("README.md"), "# Hello from the second\n")?;
    let token = machine.says(&["token", "create", "--role", "foot", "--json"])?;
    let token: serde_json::Value = serde_json::from_str(&token)?;
    let token_file = machine.home.path().join("second.token");
    integration_tests::foot::write_private(&token_file, token["token"].as_str().ok_or("no token")?)?;
    let url = up.line_with("tenant local, project main")?;
    let url = url.split_whitespace().find(|word| word.starts_with("http://")).ok_or("no address")?;
    let mut foot = machine.command(
        &binaries::foot()?,
        &["run", "--hub", url, "--project", "main", "--tenant", "local", "--name", "zz-second"],
    );
    foot.arg("--token-file").arg(&token_file).arg("--root").arg(second.path());
    let _foot = Process::spawn(&mut foot)?;
    let end = std::time::Instant::now() + integration_tests::eventually::PATIENCE;
    while !machine.says(&["feet"])?.contains("zz-second") {
        assert!(std::time::Instant::now() < end, "the second foot does not join");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let bare = machine.says(&["call", "file_read", "path=README.md"])?;
    assert!(bare.contains("# Hello from the folder"), "the bare name stays with the first by name: {bare}");
    let qualified = machine.says(&["call", "zz_second__file_read", "path=README.md"])?;
    assert!(qualified.contains("# Hello from the second"), "{qualified}");
    Ok(())
}

#[test]
fn a_second_hub_on_the_same_data_is_refused_with_the_pid() -> TestResult {
    let machine = Machine::new()?;
    let mut up = Process::spawn(
        &mut machine.command(&binaries::footbridge()?, &["up", "--listen", "127.0.0.1:0", "--no-foot"]),
    )?;
    up.line_with("footbridge tools list")?;
    let second = machine.footbridge(&["up", "--listen", "127.0.0.1:0", "--no-foot"])?;
    let errors = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success());
    assert!(errors.contains(&up.pid().to_string()), "{errors}");
    assert!(machine.says(&["tools", "list"])?.contains("whoami"), "the first one goes on");
    Ok(())
}

//! The `foot` binary as people and service managers meet it.

#[path = "process/restart.rs"]
mod restart;

use std::io::Read as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A machine of its own: a home folder, a project, a token, and a port that nobody listens on.
struct Machine {
    dir: tempfile::TempDir,
    hub: String,
}

impl Machine {
    fn new() -> TestResult<Self> {
        let dir = tempfile::tempdir()?;
        for folder in ["home/.ssh", "project"] {
            std::fs::create_dir_all(dir.path().join(folder))?;
        }
        let machine = Self { dir, hub: format!("http://{}", TcpListener::bind("127.0.0.1:0")?.local_addr()?) };
        std::fs::write(machine.path("token"), "fbt_test\n")?;
        std::fs::set_permissions(machine.path("token"), std::fs::Permissions::from_mode(0o600))?;
        Ok(machine)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn foot(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_foot"));
        command.args(words).current_dir(self.path("project")).env_clear().env("HOME", self.path("home"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, words: &[&str]) -> TestResult<Output> {
        Ok(self.foot(words).output()?)
    }

    /// Starts `foot run` and waits until it has begun.
    fn start(&self, words: &[&str], stdin: Stdio) -> TestResult<Child> {
        let settings = ["run", "--hub", &self.hub, "--project", "web", "--token-file", "../token"];
        let mut child = self.foot(&[&settings, words].concat()).stdin(stdin).spawn()?;
        let mut log = child.stderr.take().ok_or("no log")?;
        let (mut seen, mut byte) = (Vec::new(), [0]);
        while !String::from_utf8_lossy(&seen).contains("not connected") {
            if log.read(&mut byte)? == 0 {
                return Err(format!("it ended: {}", String::from_utf8_lossy(&seen)).into());
            }
            seen.extend(byte);
        }
        // Whoever logs to a closed pipe would fail for that.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Ok(child)
    }
}

/// The exit code; a process that does not end in time is killed.
fn code_of(mut child: Child) -> TestResult<Option<i32>> {
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code());
        }
        std::thread::yield_now();
    }
    child.kill()?;
    Err("it does not end".into())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn it_ends_in_order_on_a_signal_and_when_its_parent_is_gone() -> TestResult {
    let machine = Machine::new()?;
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let child = machine.start(&[], Stdio::null())?;
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, signal)?;
        assert_eq!(code_of(child)?, Some(0));
    }
    // A signal counts also while the pipe is open, and a thread waits for its end.
    let mut child = machine.start(&["--exit-with-stdin"], Stdio::piped())?;
    let pipe = child.stdin.take();
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)?;
    assert_eq!(code_of(child)?, Some(0));
    drop(pipe);
    let mut child = machine.start(&["--exit-with-stdin"], Stdio::piped())?;
    assert!(child.try_wait()?.is_none(), "it runs as long as the pipe is open");
    drop(child.stdin.take());
    assert_eq!(code_of(child)?, Some(0));
    assert!(machine.path("home/.local/state/footbridge/feet/local/web/project.key").exists());
    Ok(())
}

#[test]
fn a_foot_of_another_folder_with_the_same_name_is_left_alone() -> TestResult {
    let machine = Machine::new()?;
    std::fs::create_dir_all(machine.path("other/project"))?;
    let mut first = machine.start(&[], Stdio::null())?;
    let settings = ["run", "--hub", &machine.hub, "--project", "web", "--token-file", "../token"];
    let second = machine.run(&[&settings[..], &["--root", "../other/project"]].concat())?;
    assert_eq!(second.status.code(), Some(2));
    let said = text(&second.stderr);
    assert!(said.contains("`project`") && said.contains("--name"), "{said}");
    assert!(first.try_wait()?.is_none());
    // Whoever names it means it.
    let mut named = machine.start(&["--root", "../other/project", "--name", "project"], Stdio::null())?;
    for child in [&mut first, &mut named] {
        child.kill()?;
        child.wait()?;
    }
    Ok(())
}

#[test]
fn tools_are_listed_for_people_and_for_programs() -> TestResult {
    let machine = Machine::new()?;
    let json: serde_json::Value = serde_json::from_slice(&machine.run(&["tools", "--json"])?.stdout)?;
    let names: Vec<&str> = json.as_array().ok_or("no list")?.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["file_find", "file_grep", "file_list", "file_read", "file_stat"]);
    let table = text(&machine.run(&["tools"])?.stdout);
    assert!(table.contains("file_grep") && table.contains("read-only"), "{table}");
    Ok(())
}

#[test]
fn what_is_wrong_is_said_on_standard_error_with_a_code() -> TestResult {
    let machine = Machine::new()?;
    for (words, code, part) in [
        (vec!["run"], 2, "no hub"),
        (vec!["run", "--hub", "http://hub.example.org", "--project", "web"], 2, "without TLS"),
        (vec!["run", "--hub", &machine.hub, "--project", "web"], 2, "no token"),
        (vec!["run", "--hub", &machine.hub, "--project", "web", "--token-file", "../typo"], 2, "typo"),
        (vec!["walk"], 2, "walk"),
    ] {
        let output = machine.run(&words)?;
        assert_eq!(output.status.code(), Some(code), "{words:?}");
        assert!(text(&output.stderr).contains(part), "{words:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty(), "{words:?}");
    }
    assert!(text(&machine.run(&["--help"])?.stdout).contains("1 `check` found"));
    Ok(())
}

#[test]
fn a_check_of_a_path_needs_nothing_but_the_path() -> TestResult {
    let machine = Machine::new()?;
    for (path, code, part) in [("x", 0, "served"), ("../home/.ssh/id", 1, "~/.ssh is never served"), ("..", 1, "root")]
    {
        let output = machine.run(&["check", "--path", path])?;
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{path}: {said}{}", text(&output.stderr));
        assert!(said.contains(part), "{path}: {said}");
    }
    Ok(())
}

#[test]
fn a_check_shows_what_run_would_do_and_fails_when_it_would() -> TestResult {
    let machine = Machine::new()?;
    let settings = machine.path("home/.config/footbridge/foot.yaml");
    std::fs::create_dir_all(settings.parent().unwrap_or(Path::new("/")))?;
    std::fs::write(
        &settings,
        format!("hub: {}\nproject: web\ntokenFile: {}\n", machine.hub, machine.path("token").display()),
    )?;
    let offline = machine.run(&["check", "--offline", "--root", "../home"])?;
    let said = text(&offline.stdout);
    assert_eq!(offline.status.code(), Some(0), "{said}{}", text(&offline.stderr));
    for part in ["foot.yaml)", "home  (command line)", "~/.ssh  (SSH keys)", "share       owner  (default)"] {
        assert!(said.contains(part), "{part} is missing in\n{said}");
    }
    let online = machine.run(&["check"])?;
    assert_eq!(online.status.code(), Some(1));
    assert!(text(&online.stdout).contains("nothing of use"), "{}", text(&online.stdout));

    std::fs::set_permissions(machine.path("token"), std::fs::Permissions::from_mode(0o644))?;
    let open = machine.run(&["check", "--offline"])?;
    assert_eq!(open.status.code(), Some(1));
    assert!(text(&open.stdout).contains("chmod 600"), "{}", text(&open.stdout));
    assert_eq!(machine.run(&["check", "--path", "../token"])?.status.code(), Some(1));
    Ok(())
}

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::Mutex;

use super::ask::{Question, Reply};
use super::*;
use crate::config::settings_of;
use crate::policy::Floor;
use crate::tools::context;

mod asking;
mod commands;
mod paths;

/// A machine: a home with a project in it, and programs.
struct Machine {
    dir: tempfile::TempDir,
    top: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        for folder in ["home/.ssh", "home/private", "w/src", "w/secrets", "bin"] {
            std::fs::create_dir_all(top.join(folder)).unwrap();
        }
        let machine = Self { dir, top };
        for program in ["git", "cargo", "rm", "ls", "env", "sh", "bash", "timeout", "xargs", "find", "sudo"] {
            machine.program(&format!("bin/{program}"));
        }
        machine
    }

    fn program(&self, path: &str) {
        self.file(path);
        std::fs::set_permissions(self.top.join(path), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn file(&self, path: &str) {
        let path = self.top.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Each of them another one.
        std::fs::write(&path, path.as_os_str().as_encoded_bytes()).unwrap();
    }

    fn judge(&self, yaml: &str) -> Judge {
        let settings = settings_of(yaml, &self.top.join("home")).unwrap();
        let rules: Arc<Rules> = settings.rules.unwrap_or_default();
        let roots = [self.top.join("w")];
        let policy = Policy::new(&[self.top.join("w")], Floor::new(Some(self.top.join("home").as_path()))).unwrap();
        Judge {
            policy: Arc::new(policy.with_rules(Arc::new(ReadRules::new(rules.clone())))),
            defaults: Defaults { write: settings.write.unwrap_or_default(), exec: settings.exec.unwrap_or_default() },
            rules,
            programs: Programs::new(Some(self.top.join("bin").into()), &roots),
            ask_client: settings.ask_client.unwrap_or_default(),
        }
    }

    fn command(&self, line: CommandLine, env: &[&str]) -> Action {
        Action::Run(Command {
            line,
            cwd: self.top.join("w"),
            env: env.iter().map(|name| ((*name).to_owned(), "1".to_owned())).collect(),
            stdin: None,
            configured: false,
        })
    }

    fn argv(&self, words: &[&str]) -> Action {
        self.command(CommandLine::Argv(words.iter().map(|word| (*word).to_owned()).collect()), &[])
    }

    fn shell(&self, script: &str) -> Action {
        self.command(CommandLine::Shell(script.to_owned()), &[])
    }

    /// A path as a call gives it, and what is said of it.
    fn on_path(&self, judge: &Judge, access: Access, given: &str) -> Verdict {
        let gate = judge.policy.gate();
        let Ok(real) = gate.resolve(given).or_else(|failure| match failure.code {
            // What is to be written need not be there.
            ErrorCode::NotFound => Ok(crate::policy::real_path(&gate.written(given)).unwrap()),
            _ => Err(failure),
        }) else {
            return Verdict::Deny;
        };
        let tool = if access == Access::Read { "file_read" } else { "file_write" };
        judge.decide(tool, &Action::File { access, path: real }, None).verdict
    }
}

fn run(judge: &Judge, action: &Action) -> Verdict {
    judge.decide("exec_run", action, None).verdict
}

//! The kernel alone: what a command cannot reach when no rule keeps it back. The tests run as root too, whom no file mode
//! stops.

use std::process::Stdio;

use super::*;
use serde_json::json;

/// What is out of reach: a folder with a secret beside the root.
fn outside(machine: &Machine) -> PathBuf {
    let folder = machine.dir.path().canonicalize().unwrap().join("outside");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("secret"), "hunter2").unwrap();
    folder
}

/// Runs a script that must not get at the secret, and must fail.
async fn refused(machine: &Machine, script: &str) {
    let done = machine.shell(script).await;
    assert_eq!(done["isError"], true, "{script}: {done}");
    assert!(!done.to_string().contains("hunter2"), "{script}: {done}");
}

#[tokio::test]
async fn nothing_is_read_outside_of_the_roots_by_whatever_way() {
    let machine = Machine::new();
    let (root, outside) = (machine.root(), outside(&machine));
    let secret = outside.join("secret");
    std::os::unix::fs::symlink(&secret, root.join("link")).unwrap();
    std::os::unix::fs::symlink(&outside, root.join("folder")).unwrap();
    let (secret, foot) = (secret.display(), std::process::id());
    for script in [
        format!("cat {secret}"),
        "cat link".to_owned(),
        "cat folder/secret".to_owned(),
        "cat ../outside/secret".to_owned(),
        format!("cat /proc/self/root{secret}"),
        "cat /proc/self/cwd/../outside/secret".to_owned(),
        format!("cat /proc/{foot}/root{secret}"),
        format!("cat /proc/{foot}/cwd/src/lib.rs"),
        format!("cat /proc/$PPID/root{secret}"),
        "ls folder".to_owned(),
        format!("cp {secret} here && cat here"),
        format!("ln {secret} here && cat here"),
        format!("mv {secret} here && cat here"),
        format!("ln -s {secret} here && cat here"),
        format!("cd {} && cat secret", outside.display()),
        "ls /".to_owned(),
        "ls /tmp".to_owned(),
        "ls /home /root".to_owned(),
        "cat /etc/shadow".to_owned(),
        "ls /run".to_owned(),
        "ls /dev".to_owned(),
        "head -c 1 /dev/mem || head -c 1 /proc/kcore".to_owned(),
    ] {
        refused(&machine, &script).await;
        let _ = std::fs::remove_file(root.join("here"));
    }
    assert!(Path::new(&secret.to_string()).exists());
}

#[tokio::test]
async fn limits_of_other_processes_are_left_alone() {
    let machine = Machine::new();
    let foot = std::process::id();
    // What it has is set again: should this go through, nothing comes of it.
    let script = format!(
        "core=$(prlimit --pid {foot} --core -o SOFT --noheadings) && prlimit --pid {foot} --core=${{core##* }}:"
    );
    let others = machine.shell(&script).await;
    assert!(others.to_string().contains("Operation not permitted"), "{others}");
    let own = machine.shell("ulimit -c 0 && ulimit -n 20 && prlimit --core=0 true").await;
    assert_eq!(own["isError"], false, "{own}");
}

#[tokio::test]
async fn nothing_is_changed_outside_of_the_roots() {
    let machine = Machine::new();
    let outside = outside(&machine);
    let shared = format!("/dev/shm/footbridge-test-{}", std::process::id());
    for script in [
        format!("echo x > {}/new", outside.display()),
        format!("echo x >> {}/secret", outside.display()),
        format!(": > {}/secret", outside.display()),
        format!("truncate -s 0 {}/secret", outside.display()),
        format!("rm {}/secret", outside.display()),
        format!("mkdir {}/new", outside.display()),
        format!("touch made && mv made {}/new", outside.display()),
        format!("touch made && ln made {}/new", outside.display()),
        format!("echo x > {shared}"),
        "echo x > /tmp/footbridge-test-new".to_owned(),
        "echo x > /usr/footbridge-test-new".to_owned(),
        "echo x > /etc/footbridge-test-new".to_owned(),
        "mknod device c 1 8 || mknod device b 8 0".to_owned(),
        "mkdir -p there && mount -t tmpfs none there".to_owned(),
        "mkdir -p there && chroot . /there".to_owned(),
        "echo 1 > /proc/sys/kernel/core_uses_pid".to_owned(),
        "echo 1 > /proc/self/oom_score_adj".to_owned(),
    ] {
        refused(&machine, &script).await;
    }
    let left: Vec<_> = std::fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["secret"]);
    assert_eq!(std::fs::read(outside.join("secret")).unwrap(), b"hunter2");
    assert!(!Path::new(&shared).exists());
}

#[tokio::test]
async fn other_processes_are_out_of_reach() {
    let machine = Machine::new();
    let foot = std::process::id();
    // Somebody else's process, with something in its environment.
    let other = std::process::Command::new("cat").env("PASSWORD", "hunter2").stdin(Stdio::piped()).spawn();
    // It ends with its input, whatever becomes of this test.
    let mut other = other.unwrap();
    let victim = other.id();
    for script in [
        format!("kill -0 {foot}"),
        format!("kill -0 {victim}"),
        format!("kill -9 {victim}"),
        "kill -9 $PPID".to_owned(),
        format!("cat /proc/{foot}/environ"),
        format!("cat /proc/{victim}/environ"),
        "cat /proc/$PPID/environ".to_owned(),
        format!("readlink /proc/{victim}/fd/0"),
        format!("cat /proc/{victim}/fd/0"),
        format!("readlink /proc/{victim}/exe"),
        format!("head -c 1 /proc/{victim}/mem"),
        format!("cat /proc/{victim}/maps"),
        format!("cat /proc/{victim}/stack || cat /proc/{victim}/syscall"),
    ] {
        refused(&machine, &script).await;
    }
    assert!(other.try_wait().unwrap().is_none());
    // Its own processes are its own.
    let done = machine.shell("sleep 1000 & kill $! && wait $!; cat /proc/$$/environ > /dev/null && echo seen").await;
    assert_eq!(done["stdout"], "seen\n", "{done}");
}

#[tokio::test]
async fn abstract_sockets_of_others_are_out_of_reach() {
    use std::os::linux::net::SocketAddrExt as _;
    let name = format!("footbridge-test-{}", crate::random::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
    let connect = format!(
        "import socket\ns = socket.socket(socket.AF_UNIX)\ntry:\n  s.connect('\\0{name}')\n  print('connected')\n\
         except PermissionError:\n  print('refused')\n"
    );
    let run = |machine: Machine| {
        let arguments = json!({"argv": ["python3", "-c", &connect]});
        async move { machine.run(arguments).await["stdout"].as_str().unwrap().to_owned() }
    };
    let free = run(Machine::with(Special { sandbox: KernelSandbox::Off, ..Special::default() })).await;
    assert_eq!(free, "connected\n", "the test can tell");
    assert_eq!(run(Machine::new()).await, "refused\n");
}

#[tokio::test]
async fn work_within_the_roots_goes_on_as_usual() {
    let machine = Machine::new();
    let script = "set -e; mkdir -p a/b; echo text > a/file; mv a/file a/b/; ln a/b/file again; ln -s a/b here; cat here/file; \
        mkfifo pipe; cp /usr/bin/env tool; ./tool A=1 sh -c 'echo $A'; printf '#!/bin/sh\\necho script\\n' > s; chmod +x s; \
        ./s; tar cf - a | tar tf - | wc -l; rm -r a again here pipe tool s; sort -o $TMPDIR/x /dev/null; \
        head -c 1 /dev/urandom > /dev/null; grep -c processor /proc/cpuinfo > /dev/null; getent hosts localhost > /dev/null; \
        sh -c 'exit 0' < /dev/null > /dev/null 2>&1; ls -A | wc -l";
    let done = machine.shell(script).await;
    assert_eq!(done["stdout"], "text\n1\nscript\n3\n0\n", "{done}");
    assert_eq!(done["stderr"], "", "{done}");
}

#[tokio::test]
async fn roots_that_are_only_read_stay_as_they_are_and_temporary_files_work() {
    let machine = Machine::with(Special { write: Mode::Deny, ..Special::default() });
    std::fs::write(machine.root().join("file"), "text").unwrap();
    let done = machine.shell("cat file; echo x > $TMPDIR/x && cat $TMPDIR/x").await;
    assert_eq!(done["stdout"], "textx\n", "{done}");
    for script in ["echo x > file", "rm file", "touch new", "mkdir new", ": > file"] {
        refused(&machine, script).await;
    }
    assert_eq!(std::fs::read(machine.root().join("file")).unwrap(), b"text");
}

#[tokio::test]
async fn folders_of_the_owner_can_be_added() {
    let more = tempfile::tempdir().unwrap();
    let machine = Machine::with(Special { extra_write: vec![more.path().to_owned()], ..Special::default() });
    let done = machine.shell(&format!("echo x > {0}/new && cat {0}/new", more.path().display())).await;
    assert_eq!(done["stdout"], "x\n", "{done}");
}

#[test]
fn folders_around_secrets_take_no_commands() {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["web/keys", "other", "more/keys"] {
        std::fs::create_dir_all(dir.path().join(folder)).unwrap();
    }
    let reason = |kept: &str, extra_write: &[&str]| {
        let mut floor = Floor::new(Some(Path::new("/home/nobody")));
        floor.add(&dir.path().join(kept), "kept by you");
        let policy = Policy::new(&[dir.path().join("web")], floor).unwrap();
        let extra_write = extra_write.iter().map(|folder| dir.path().join(folder)).collect();
        let settings = ExecSettings { extra_write, ..ExecSettings::default() };
        reach::grants(&policy, true, &settings, &[]).err().map(|error| error.to_string())
    };
    let around = reason("web/keys", &[]).unwrap();
    assert!(around.contains("web/keys") && around.contains("--no-kernel-sandbox"), "{around}");
    assert_eq!(reason("other", &[]), None);
    assert_eq!(reason("other/none", &["more"]), None);
    assert!(reason("more/keys", &["more"]).unwrap().contains("more/keys"));
    assert!(reason("more", &["more/keys"]).is_some(), "nor may one that lies in what is kept");
    assert_eq!(reason("web/none", &[]), None, "what is not there needs no keeping");
}

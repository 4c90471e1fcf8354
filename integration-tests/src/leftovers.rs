//! Processes that a story left behind.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::Result;
use crate::foot::TestFoot;
use crate::hub::TestHub;

/// How long processes may take to end when what they worked for is gone: a script worker notices within this.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// Ends the feet in order and kills the hub; then no process may be left that works in their folders or in `folder`.
///
/// # Errors
/// A foot that does not end in order, and what is left behind.
pub fn end(hub: TestHub, feet: Vec<TestFoot>, folder: &Path) -> Result<()> {
    for mut foot in feet {
        foot.process.signal(Signal::TERM)?;
        let status = foot.process.wait()?;
        if !status.success() {
            return Err(format!("the foot {} ended with {status}:\n{}", foot.name, foot.process.output()).into());
        }
        none_left(&[foot.state()])?;
    }
    let data = hub.data();
    drop(hub);
    none_left(&[&data, folder])
}

/// Waits until no process is left that has to do with any of these folders: that names one in its command line, or works
/// in one. Its own process does not count.
///
/// # Errors
/// Lists those that are left.
#[cfg(target_os = "linux")]
pub fn none_left(folders: &[&Path]) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let left = of(folders)?;
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() >= end {
            return Err(format!("processes were left behind:\n{}", left.join("\n")).into());
        }
        std::thread::sleep(PAUSE);
    }
}

/// The processes that have to do with any of these folders, as they would be listed.
///
/// # Errors
/// When processes cannot be looked at.
#[cfg(target_os = "linux")]
pub fn of(folders: &[&Path]) -> Result<Vec<String>> {
    Ok(processes(folders)?.into_iter().map(|(_, shown)| shown).collect())
}

/// Kills the processes that have to do with any of these folders, and waits for their end.
///
/// # Errors
/// When one is left.
#[cfg(target_os = "linux")]
pub fn kill(folders: &[&Path]) -> Result<()> {
    for (number, _) in processes(folders)? {
        if let Some(pid) = rustix::process::Pid::from_raw(i32::try_from(number)?) {
            // It may have ended by itself.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
    none_left(folders)
}

#[cfg(target_os = "linux")]
fn processes(folders: &[&Path]) -> Result<Vec<(u32, String)>> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut left = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let process = entry?.path();
        let number = process.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<u32>().ok());
        let Some(number) = number.filter(|number| *number != std::process::id()) else { continue };
        // A process that ended while it was looked at has no command line.
        let command = std::fs::read(process.join("cmdline")).unwrap_or_default();
        let works_in = std::fs::read_link(process.join("cwd")).unwrap_or_default();
        let concerned = folders.iter().any(|folder| {
            let name = folder.as_os_str().as_bytes();
            works_in.starts_with(folder) || command.windows(name.len()).any(|part| part == name)
        });
        if concerned {
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            left.push((number, format!("{}: {command}(in {})", process.display(), works_in.display())));
        }
    }
    Ok(left)
}

/// Elsewhere nothing is known of other processes.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn none_left(_: &[&Path]) -> Result<()> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_found_by_its_folder_and_by_its_command_line() {
        let folder = tempfile::tempdir().unwrap();
        let named = folder.path().join("named");
        let sleeps = |command: &mut Command| command.arg("60").spawn().unwrap();
        let mut inside = sleeps(Command::new("sleep").current_dir(folder.path()));
        let mut outside = sleeps(Command::new("tail").args(["--quiet", "--retry", "-f"]).arg(&named));
        // A process that was only just started has no command line yet.
        let end = Instant::now() + PATIENCE;
        let mut found = of(&[folder.path()]).unwrap();
        while found.len() < 2 && Instant::now() < end {
            std::thread::sleep(PAUSE);
            found = of(&[folder.path()]).unwrap();
        }
        for child in [&mut inside, &mut outside] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(found.len(), 2, "{found:?}");
        none_left(&[folder.path()]).unwrap();
    }
}

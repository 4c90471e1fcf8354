//! What a command may reach: the system it needs, the roots, and what the owner adds.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use footbridge_launcher::sandbox::{Grant, Right};

use super::settings::ExecSettings;
use crate::policy::Policy;

/// Programs and their libraries.
const PROGRAMS: [&str; 9] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/gnu/store"];
/// What programs read of the system. Of other processes `/proc` shows names and numbers; their memory, their environment and
/// what they have open take a right that the sandbox denies.
const SYSTEM: [&str; 5] = [
    "/proc",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
    "/var/lib/ca-certificates",
];
/// Devices that lead nowhere.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// Of all devices, the one that is a folder of files: the owner may grant it.
const SHARED_MEMORY: &str = "/dev/shm";
/// Settings of the system.
const SETTINGS: &str = "/etc";
/// Those that hold secrets, on top of what is never served. The system keeps most users out; root it does not.
const SECRET_SETTINGS: [&str; 9] = [
    "/etc/shadow-",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/security/opasswd",
    "/etc/pki/tls/private",
    "/etc/NetworkManager/system-connections",
    "/etc/wireguard",
    "/etc/krb5.keytab",
];

/// Why commands cannot be kept within what is granted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReachError {
    /// The kernel can grant a folder with all below it, or not at all.
    #[error(
        "`{}` holds what is never served ({kept}), and the kernel cannot keep commands from a part of a folder; \
         serve narrower folders, or run commands unconfined with --no-kernel-sandbox",
        path.display()
    )]
    AroundSecrets {
        /// What was to be granted.
        path: PathBuf,
        /// What lies in it.
        kept: String,
    },
}

/// The grants of all commands; those of one command have its temporary folder besides.
///
/// # Errors
/// [`ReachError`]: a root, or a folder to be changed, holds what is never served.
pub(crate) fn grants(
    policy: &Policy,
    write: bool,
    settings: &ExecSettings,
    path: &[PathBuf],
) -> Result<Vec<Grant>, ReachError> {
    if let (Some(rule), Some(root)) = (policy.cut_out().first(), policy.roots().first()) {
        let root = policy.roots().iter().find(|root| rule.lies_in(root)).unwrap_or(root);
        return Err(ReachError::AroundSecrets { path: root.clone(), kept: rule.label.clone() });
    }
    let mut secrets = policy.never_served();
    secrets.extend(SECRET_SETTINGS.iter().map(PathBuf::from));
    let mut grants: Vec<Grant> = Vec::new();
    let right = if write { Right::ChangeAndExecute } else { Right::Execute };
    grants.extend(policy.roots().iter().map(|root| Grant::new(root, right)));
    for path in &settings.extra_write {
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        let kept = |secret: &&PathBuf| overlap(secret, &real) && secret.exists() && !real.starts_with(SHARED_MEMORY);
        if let Some(secret) = secrets.iter().find(kept) {
            return Err(ReachError::AroundSecrets { path: path.clone(), kept: secret.display().to_string() });
        }
        grants.push(Grant::new(real, Right::ChangeAndExecute));
    }
    grants.extend(PROGRAMS.map(|path| Grant::new(path, Right::Execute)));
    grants.extend(SYSTEM.map(|path| Grant::new(path, Right::Read)));
    grants.extend(DEVICES.map(|path| Grant::new(path, Right::Use)));
    grants.push(Grant::new(SETTINGS, Right::List));
    around(Path::new(SETTINGS), Right::Execute, &secrets, &mut grants);
    for folder in path {
        let real = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.clone());
        // A home folder, or one above it, is no folder of programs, whatever PATH says.
        if !secrets.iter().any(|secret| overlap(secret, &real)) {
            grants.push(Grant::new(real, Right::Execute));
        }
    }
    for path in &settings.extra_read {
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        around(&real, Right::Execute, &secrets, &mut grants);
    }
    Ok(grants)
}

/// Grants a path but for the secrets in it, by granting what lies beside them. What is made there later is not granted.
fn around(path: &Path, right: Right, secrets: &[PathBuf], grants: &mut Vec<Grant>) {
    if secrets.iter().any(|secret| path.starts_with(secret)) {
        return;
    }
    if !secrets.iter().any(|secret| secret.starts_with(path)) {
        grants.push(Grant::new(path, right));
        return;
    }
    grants.push(Grant::new(path, Right::List));
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        let inner = path.join(entry.file_name());
        match entry.file_type() {
            // A link leads anywhere: only a single file of the system is granted through one.
            Ok(kind) if kind.is_symlink() => {
                grants.extend(linked_file(&inner, secrets).map(|file| Grant::new(file, right)))
            }
            Ok(_) => around(&inner, right, secrets, grants),
            Err(_) => {}
        }
    }
}

fn linked_file(link: &Path, secrets: &[PathBuf]) -> Option<PathBuf> {
    const HOMES: [&str; 3] = ["/home", "/root", "/proc"];
    let real = std::fs::canonicalize(link).ok()?;
    let elsewhere = HOMES.iter().any(|home| real.starts_with(home));
    let secret = secrets.iter().any(|secret| real.starts_with(secret));
    (real.is_file() && !elsewhere && !secret).then_some(real)
}

/// Whether one lies in the other.
fn overlap(a: &Path, b: &Path) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

/// Where the folder of a command's temporary files is made: a name that nobody can guess, so nobody can be there first.
pub(crate) fn temporary() -> PathBuf {
    std::env::temp_dir().join(OsString::from(format!("footbridge-{}", crate::random::id())))
}

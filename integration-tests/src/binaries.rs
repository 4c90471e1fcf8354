//! Where the binaries under test are, built from this very source.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::Result;

/// The `footbridge` binary.
///
/// # Errors
/// When it does not build.
pub fn footbridge() -> Result<PathBuf> {
    binary("footbridge")
}

/// The `foot` binary.
///
/// # Errors
/// When it does not build.
pub fn foot() -> Result<PathBuf> {
    binary("foot")
}

/// A binary of this package, which cargo builds with its tests.
///
/// # Errors
/// When it is not there.
pub fn own(name: &str) -> Result<PathBuf> {
    let path = target()?.join(name);
    if path.is_file() { Ok(path) } else { Err(format!("{} is not there", path.display()).into()) }
}

/// The profile's folder: the test binary lies in its `deps`.
fn target() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().ok_or("no folder")?;
    let folder = if folder.ends_with("deps") { folder.parent().ok_or("no target folder")? } else { folder };
    Ok(folder.to_owned())
}

fn binary(name: &str) -> Result<PathBuf> {
    static BUILT: OnceLock<std::result::Result<(), String>> = OnceLock::new();
    BUILT.get_or_init(|| build().map_err(|error| error.to_string())).clone()?;
    own(name)
}

/// Builds both binaries, so that no test runs against an old one. Quick when nothing changed.
fn build() -> Result<()> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no workspace")?;
    let mut cargo = Command::new(env!("CARGO"));
    // All of the workspace, as whoever started this built it: for some packages alone their dependencies would be built anew,
    // with fewer features.
    cargo.current_dir(workspace).args(["build", "--quiet", "--locked", "--workspace", "--bins"]);
    // What the outer cargo says of this package is nothing to the inner one; build scripts that look at it would run anew.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            cargo.env_remove(name);
        }
    }
    let target = target()?;
    if target.ends_with("release") {
        cargo.arg("--release");
    }
    if let Some(folder) = target.parent() {
        cargo.arg("--target-dir").arg(folder);
    }
    let output = cargo.output()?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned().into()) }
}

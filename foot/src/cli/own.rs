//! The files that a foot keeps, found by whoever asks after them at the terminal.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::config::{self, Environment, Settings};
use crate::error::FootError;

/// Which foot is meant.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct OwnArgs {
    /// Its name, if there are several.
    #[arg(long)]
    name: Option<String>,
    /// Its tenant, if there are several.
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Its project, if there are several.
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// Where it keeps its key [default: your state folder, and those of hubs of `footbridge up` in it]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl OwnArgs {
    /// A file of the one foot that is meant.
    ///
    /// # Errors
    /// [`FootError::WhichFoot`]: there is none, or there are several.
    pub(super) fn file(&self, suffix: &str, environment: &Environment, here: &Path) -> Result<PathBuf, FootError> {
        let flags = Settings { state: self.state.clone(), ..Settings::default() };
        let states = config::state_folders(flags, environment, here);
        let mut found: Vec<PathBuf> = states.iter().flat_map(|state| self.files(state)).collect();
        found.dedup();
        // A foot that was only checked has a key and nothing else.
        let with_file: Vec<PathBuf> = found.iter().filter(|key| key.with_extension(suffix).exists()).cloned().collect();
        if with_file.len() == 1 {
            found = with_file;
        }
        let names = |found: &[PathBuf]| -> String {
            found.iter().map(|key| format!("\n  {}", key.with_extension("").display())).collect()
        };
        match found.as_slice() {
            [] => Err(FootError::WhichFoot(
                "no such foot has run here; see --name, --tenant, --project, --state".to_owned(),
            )),
            [key] => Ok(key.with_extension(suffix)),
            several => Err(FootError::WhichFoot(format!(
                "several feet have run here; say which with --name, --tenant, --project or --state:{}",
                names(several)
            ))),
        }
    }

    /// The keys of feet that fit.
    fn files(&self, state: &Path) -> Vec<PathBuf> {
        let fits = |wanted: &Option<String>, path: &Path| {
            wanted.as_deref().is_none_or(|wanted| path.file_name().is_some_and(|name| name == wanted))
        };
        let tenants = below(&state.join(config::FEET_FOLDER)).into_iter().filter(|path| fits(&self.tenant, path));
        let projects = tenants.flat_map(|tenant| below(&tenant)).filter(|path| fits(&self.project, path));
        let keys = projects.flat_map(|project| below(&project));
        keys.filter(|path| path.extension().is_some_and(|extension| extension == "key"))
            .filter(|path| fits(&self.name, &path.with_extension("")))
            .collect()
    }
}

/// What lies in a folder, in order; nothing if it cannot be read.
pub(super) fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_foot_is_found_and_among_several_the_one_that_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state/footbridge");
        let text = dir.path().display().to_string();
        let environment = Environment::of(&[("HOME", &text), ("XDG_STATE_HOME", &format!("{text}/state"))]);
        let find =
            |args: &OwnArgs| args.file("audit.jsonl", &environment, dir.path()).map_err(|error| error.to_string());
        assert!(find(&OwnArgs::default()).unwrap_err().contains("no such foot"));
        let add = |path: &str| {
            let path = state.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        add("feet/local/main/laptop.key");
        add("feet/local/main/laptop.answers.json");
        assert_eq!(find(&OwnArgs::default()).unwrap(), state.join("feet/local/main/laptop.audit.jsonl"));
        add("hubs/site-1/foot/feet/local/main/site.key");
        let several = find(&OwnArgs::default()).unwrap_err();
        assert!(several.contains("main/laptop") && several.contains("main/site"), "{several}");
        add("feet/local/main/laptop.audit.jsonl");
        assert!(find(&OwnArgs::default()).unwrap().ends_with("main/laptop.audit.jsonl"), "the other one has none");
        let site = OwnArgs { name: Some("site".to_owned()), ..OwnArgs::default() };
        assert!(find(&site).unwrap().ends_with("hubs/site-1/foot/feet/local/main/site.audit.jsonl"));
        let other = OwnArgs { project: Some("other".to_owned()), ..OwnArgs::default() };
        assert!(find(&other).is_err());
    }
}

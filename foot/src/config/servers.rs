//! Names of servers in the settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use footbridge_shared::id::EntryName;
use footbridge_shared::names::pack_name;

use super::expand::expanded;
use super::settings::Environment;
use crate::failure::shown;
use crate::servers::{ServerSettings, ServerText};

/// Servers that were checked, by the names of their packs.
pub(super) struct Named<'a> {
    /// What `~/` stands for.
    home: Option<&'a Path>,
    /// The original name of each, and its settings.
    known: BTreeMap<EntryName, (String, ServerSettings)>,
}

impl<'a> Named<'a> {
    /// None yet.
    pub(super) fn new(home: Option<&'a Path>) -> Self {
        Self { home, known: BTreeMap::new() }
    }

    /// Checks one and adds it.
    ///
    /// # Errors
    /// Why it cannot be used; then it is not among them.
    pub(super) fn add(&mut self, original: &str, text: ServerText) -> Result<(), String> {
        let name = pack_name(original).ok_or("there is no letter or digit in the name that could stay")?;
        if let Some((other, _)) = self.known.get(&name) {
            return Err(format!("it would be called `{name}`, and so would `{}`", shown(other)));
        }
        let path = |text: &str| -> Result<PathBuf, String> { super::file::absolute("path", text, self.home) };
        let server = text.check(name.clone(), &path)?;
        self.known.insert(name, (original.to_owned(), server));
        Ok(())
    }

    /// All, sorted by name.
    pub(super) fn into_servers(self) -> Vec<ServerSettings> {
        self.known.into_values().map(|(_, server)| server).collect()
    }
}

/// All of them with their variables filled in, or none. `key` is what they stand under.
///
/// # Errors
/// What is wrong with the first one that cannot be used, and where it stands.
pub(super) fn all(
    key: &str,
    texts: impl IntoIterator<Item = (String, ServerText)>,
    environment: &Environment,
) -> Result<Vec<ServerSettings>, String> {
    let home = environment.home();
    let mut named = Named::new(home.as_deref());
    for (original, text) in texts {
        let added = expanded(text, environment).and_then(|text| named.add(&original, text));
        added.map_err(|why| format!("{key}.{}: {why}", shown(&original)))?;
    }
    Ok(named.into_servers())
}

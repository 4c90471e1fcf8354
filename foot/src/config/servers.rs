//! Names of servers in the settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use footbridge_shared::id::EntryName;
use footbridge_shared::names::pack_name;

use crate::failure::shown;
use crate::servers::{ServerSettings, ServerText};

/// Checks servers and gives them the names of their packs, by which they are sorted. `key` is what they stand under, `home`
/// what `~/` stands for. Those that are disabled are left out.
///
/// # Errors
/// What is wrong with the first one that cannot be used, and where it stands.
pub(super) fn named(
    key: &str,
    texts: impl IntoIterator<Item = (String, ServerText)>,
    home: Option<&Path>,
) -> Result<Vec<ServerSettings>, String> {
    let mut known: BTreeMap<EntryName, (String, Option<ServerSettings>)> = BTreeMap::new();
    for (original, text) in texts {
        let told = |why: String| format!("{key}.{}: {why}", shown(&original));
        let name = pack_name(&original);
        let name = name.ok_or_else(|| told("there is no letter or digit in the name that could stay".to_owned()))?;
        if let Some((other, _)) = known.get(&name) {
            let (a, b) = (shown(other), shown(&original));
            return Err(format!("{key}: `{a}` and `{b}` would both be called `{name}`"));
        }
        let disabled = text.disabled;
        let path = |text: &str| -> Result<PathBuf, String> { super::file::absolute("path", text, home) };
        let server = text.check(name.clone(), &path).map_err(told)?;
        known.insert(name, (original, (!disabled).then_some(server)));
    }
    Ok(known.into_values().filter_map(|(_, server)| server).collect())
}

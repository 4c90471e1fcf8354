//! Which tools of a server somebody has looked at.

use std::collections::{HashMap, HashSet};

use super::LIMITS;

/// Tools of one server that are remembered, listed or not.
pub(super) const MAX_ACCEPTED: usize = 2 * LIMITS.items;

/// What tools were when somebody last looked, those that are not listed any more too. For this process.
#[derive(Clone, Default)]
pub(in super::super) struct Accepted {
    /// Hash of the name → hash of the tool.
    pub(super) known: HashMap<blake3::Hash, blake3::Hash>,
    /// Some were forgotten, for there were too many. Since then a tool that is not known counts as one that has changed.
    forgot: bool,
}

impl Accepted {
    /// Whether a tool is another one than it was. With `accept` it counts as looked at.
    pub(super) fn changed(&mut self, original: &str, hash: blake3::Hash, accept: bool) -> bool {
        let name = blake3::hash(original.as_bytes());
        if accept {
            self.known.insert(name, hash);
        }
        match self.known.get(&name) {
            Some(known) => *known != hash,
            None if self.forgot => true,
            None => {
                self.known.insert(name, hash);
                false
            }
        }
    }

    /// Forgets those that are not listed any more, if there are too many.
    pub(super) fn forget<'a>(&mut self, listed: impl Iterator<Item = &'a String>) {
        if self.known.len() > MAX_ACCEPTED {
            let listed: HashSet<blake3::Hash> = listed.map(|name| blake3::hash(name.as_bytes())).collect();
            self.known.retain(|name, _| listed.contains(name));
            self.forgot = true;
        }
    }
}

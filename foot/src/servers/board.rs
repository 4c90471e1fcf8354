//! Where servers show what they offer, and what they need of the foot.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use footbridge_shared::id::EntryName;
use footbridge_shared::message::ServerInfo;
use tokio::sync::watch;

use crate::clock::SharedClock;
use crate::line::Line;
use crate::permissions::Permissions;
use crate::tools::{Tool, ToolSet};

/// The servers that were heard of, by name.
pub(crate) type Infos = BTreeMap<EntryName, ServerInfo>;

/// What all servers of a foot share.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) tools: Arc<ToolSet>,
    pub(super) line: Line,
    pub(super) clock: SharedClock,
    pub(super) permissions: Mutex<Arc<Permissions>>,
    pub(super) infos: watch::Sender<Infos>,
    /// Held while a server shows something, and while one is stopped: one that is stopped shows nothing any more.
    pub(super) showing: Mutex<()>,
}

impl Board {
    /// The permissions as they are.
    pub(super) fn permissions(&self) -> Arc<Permissions> {
        self.permissions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Shows what a server offers in place of what it did.
    pub(super) fn show(&self, name: &EntryName, info: ServerInfo, tools: Vec<Arc<dyn Tool>>) {
        crate::offer::tell(self.tools.replace_pack(name, tools));
        self.infos.send_if_modified(|infos| {
            let text = |info: &ServerInfo| serde_json::to_string(info).ok();
            let changed = infos.get(name).map(text) != Some(text(&info));
            infos.insert(name.clone(), info);
            changed
        });
    }

    /// Takes a server away.
    pub(super) fn remove(&self, name: &EntryName) {
        self.tools.remove_pack(name);
        self.infos.send_if_modified(|infos| infos.remove(name).is_some());
    }
}

//! What local MCP servers offer beside tools. Their lists are fetched in the background: when the foot connects, and when a
//! server says that one has changed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use footbridge_mcp::{Fields, RpcError, codes};
use footbridge_shared::message::Raw;
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use super::Core;
use super::foot::Foot;
use super::requests::{Asker, unreadable};
use super::servers::LocalServer;
use crate::domain::mcp::{ListKind, McpNote};

/// How long all pages of one list may take together.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// Least time between two looks at one server: it may say as often as it likes that its lists have changed.
const LIST_PAUSE: Duration = Duration::from_secs(1);
/// Most pages of one list.
const MAX_PAGES: usize = 1_000;
/// Most entries of one list.
const MAX_ENTRIES: usize = 10_000;
/// Most that the lists of one foot's servers may take together, in bytes of JSON.
pub(super) const MAX_LIST_BYTES: usize = 16 * 1024 * 1024;

/// The lists of one server.
#[derive(Debug, Default)]
pub(super) struct Lists(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    resources: List,
    templates: List,
    prompts: List,
    /// A task is fetching some.
    fetching: bool,
}

#[derive(Debug)]
struct List {
    entries: Arc<[Raw]>,
    /// It has to be fetched.
    due: bool,
    /// What it takes of the foot's room.
    _room: Option<OwnedSemaphorePermit>,
}

impl Default for List {
    fn default() -> Self {
        Self { entries: Arc::new([]), due: false, _room: None }
    }
}

impl State {
    fn list(&mut self, kind: ListKind) -> &mut List {
        match kind {
            ListKind::Resources => &mut self.resources,
            ListKind::ResourceTemplates => &mut self.templates,
            ListKind::Prompts => &mut self.prompts,
        }
    }
}

impl Lists {
    /// What was fetched last.
    pub(super) fn get(&self, kind: ListKind) -> Arc<[Raw]> {
        self.0.lock().list(kind).entries.clone()
    }

    /// Some lists are to be fetched. `true`: nobody does that yet, the caller has to.
    fn due(&self, kinds: &[ListKind]) -> bool {
        let mut state = self.0.lock();
        for kind in kinds {
            state.list(*kind).due = true;
        }
        !std::mem::replace(&mut state.fetching, true)
    }

    /// The lists that are due, which they are no more. None: who fetches is done.
    fn take_due(&self) -> Vec<ListKind> {
        let mut state = self.0.lock();
        let due: Vec<ListKind> =
            ListKind::ALL.into_iter().filter(|kind| std::mem::take(&mut state.list(*kind).due)).collect();
        state.fetching = !due.is_empty();
        due
    }

    /// Takes a list. Whether it differs from the last one.
    fn set(&self, foot: &Foot, kind: ListKind, entries: Vec<Raw>) -> bool {
        let mut state = self.0.lock();
        let list = state.list(kind);
        if list.entries.iter().map(|entry| entry.get()).eq(entries.iter().map(|entry| entry.get())) {
            return false;
        }
        list.entries = Arc::new([]);
        list._room = None;
        let bytes: usize = entries.iter().map(|entry| entry.get().len()).sum();
        let room = foot.lists.clone().try_acquire_many_owned(u32::try_from(bytes).unwrap_or(u32::MAX));
        match room {
            Ok(room) => (list.entries, list._room) = (entries.into(), Some(room)),
            Err(_) => {
                tracing::warn!(foot = %foot.name, kind = kind.field(), bytes, "the lists of a foot's MCP servers take too much; one was dropped");
            }
        }
        true
    }
}

/// Fetches those lists of a server soon.
pub(super) fn refresh(core: &Core, foot: &Arc<Foot>, server: &Arc<LocalServer>, kinds: &[ListKind]) {
    if server.lists.due(kinds) {
        let (foot, server, hard) = (foot.clone(), server.clone(), core.lifecycle.hard().clone());
        core.lifecycle.spawn("feet-lists", async move {
            tokio::select! {
                () = hard.cancelled() => {}
                () = fetch(foot, server) => {}
            }
        });
    }
}

/// Fetches what is due until nothing is.
async fn fetch(foot: Arc<Foot>, server: Arc<LocalServer>) {
    loop {
        let due = server.lists.take_due();
        if due.is_empty() {
            return;
        }
        let mut changed = false;
        for kind in due {
            match pages(&foot, &server, kind).await {
                Ok(entries) => changed |= server.lists.set(&foot, kind, entries),
                // What is known stays: the next connection, or the next change, brings another look.
                Err(error) => {
                    tracing::debug!(foot = %foot.name, server = %server.name, %error, method = kind.method(), "a list could not be fetched");
                }
            }
        }
        if changed {
            server.notes.tell(McpNote::ListChanged);
            foot.node.surfaces.tell();
        }
        tokio::time::sleep(LIST_PAUSE).await;
    }
}

/// All entries of a list.
async fn pages(foot: &Foot, server: &LocalServer, kind: ListKind) -> Result<Vec<Raw>, RpcError> {
    let capability = match kind {
        ListKind::Resources | ListKind::ResourceTemplates => "resources",
        ListKind::Prompts => "prompts",
    };
    let capabilities = Fields::of(&server.description().capabilities).unwrap_or_default();
    if capabilities.get(capability).is_none() {
        return Ok(Vec::new());
    }
    let (mut entries, mut bytes, mut params) = (Vec::new(), 0, Fields::new());
    let mut seen = HashSet::new();
    let asker = Asker::hub(foot, LIST_TIMEOUT);
    for _ in 0..MAX_PAGES {
        let result = match foot.ask(&server.name, kind.method(), params.to_raw(), asker.clone()).await {
            // Templates came later than resources; not every server has them.
            Err(error) if error.code == codes::METHOD_NOT_FOUND => return Ok(Vec::new()),
            result => Fields::of(&result?).ok_or_else(|| unreadable("the list is no object"))?,
        };
        let page: Vec<Raw> = result.read(kind.field()).ok_or_else(|| unreadable("the list has no entries"))?;
        for entry in page.into_iter().filter(|entry| entry.get().starts_with('{')) {
            bytes += entry.get().len();
            if entries.len() >= MAX_ENTRIES || bytes > MAX_LIST_BYTES {
                tracing::warn!(foot = %foot.name, server = %server.name, method = kind.method(), "a list is too long; its end was left out");
                return Ok(entries);
            }
            entries.push(entry);
        }
        match result.read::<String>("nextCursor") {
            Some(cursor) if seen.insert(cursor.clone()) => params.set_value("cursor", &cursor),
            Some(_) => return Err(unreadable("a page comes twice")),
            None => return Ok(entries),
        }
    }
    Err(unreadable("the list has no end"))
}

//! The set of tools on offer, which can change while the foot runs, and what the hub was told of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use footbridge_shared::id::{EntryName, NameError, ToolName};
use footbridge_shared::limits::{MAX_SCHEMA_BYTES, MAX_TOOLS_MESSAGE_BYTES, MAX_TOOLS_PER_FOOT};
use footbridge_shared::message::{ToolEntry, Tools};
use tokio::sync::watch;

use super::Tool;
use super::arguments::ArgumentSchema;
use super::output::raw;
use crate::permissions::Permissions;

/// Bytes of a `tools` frame beside its entries and names, generously.
const ENVELOPE_BYTES: usize = 128;

/// Why a tool is not on offer. It costs itself, not the others.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ToolSetError {
    /// Its name does not follow the rule.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Another tool of the same set has its name.
    #[error("there are two tools `{0}`")]
    Twice(ToolName),
    /// Its input schema cannot be used.
    #[error("the schema of `{tool}` cannot be used: {reason}")]
    Schema {
        /// The tool.
        tool: ToolName,
        /// What is wrong.
        reason: String,
    },
    /// The set is full.
    #[error("`{0}` is left out: a foot offers at most {MAX_TOOLS_PER_FOOT} tools")]
    Full(ToolName),
}

/// A tool with its schema.
#[derive(Clone)]
pub(crate) struct Registered {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) schema: Arc<ArgumentSchema>,
    /// Those under which it is on offer.
    pub(crate) permissions: Arc<Permissions>,
    entry: Arc<ToolEntry>,
    bytes: usize,
    fingerprint: blake3::Hash,
}

impl std::fmt::Debug for Registered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registered").field("name", &self.entry.name).finish_non_exhaustive()
    }
}

impl Registered {
    /// `foreign`: it is somebody else's, with a schema that need not be perfect.
    fn new(
        tool: Arc<dyn Tool>,
        permissions: Arc<Permissions>,
        foreign: bool,
    ) -> Result<(ToolName, Self), ToolSetError> {
        let entry = tool.entry();
        let name = ToolName::parse(&entry.name)?;
        let schema = entry.input_schema.get();
        let schema = if schema.len() > MAX_SCHEMA_BYTES {
            Err(format!("it has {} bytes, the limit is {MAX_SCHEMA_BYTES}", schema.len()))
        } else if foreign {
            ArgumentSchema::foreign(schema)
        } else {
            ArgumentSchema::compile(schema)
        };
        let schema = schema.map_err(|reason| ToolSetError::Schema { tool: name.clone(), reason })?;
        let json = raw(&entry);
        let (bytes, fingerprint) = (json.get().len(), blake3::hash(json.get().as_bytes()));
        let (schema, entry) = (Arc::new(schema), Arc::new(entry));
        Ok((name, Self { tool, schema, permissions, entry, bytes, fingerprint }))
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.entry.name
    }
}

/// One consistent state of the set.
pub(crate) type Snapshot = Arc<BTreeMap<ToolName, Arc<Registered>>>;

/// The tools on offer.
#[derive(Debug)]
pub(crate) struct ToolSet {
    current: watch::Sender<Snapshot>,
    /// What it is made of. Held while it is made: of two changes the later one counts.
    parts: Mutex<Parts>,
}

/// A tool by its name.
type Named = (ToolName, Arc<Registered>);

#[derive(Debug)]
struct Parts {
    permissions: Arc<Permissions>,
    /// The foot's own tools.
    own: Vec<Named>,
    /// Those of local servers, by pack.
    packs: BTreeMap<EntryName, Vec<Named>>,
}

impl Parts {
    /// All of them in one set, the foot's own first; and what has no place in it.
    fn together(&self) -> (Snapshot, Vec<ToolSetError>) {
        let (mut set, mut left_out) = (BTreeMap::new(), Vec::new());
        for (name, registered) in self.own.iter().chain(self.packs.values().flatten()) {
            if set.contains_key(name) {
                left_out.push(ToolSetError::Twice(name.clone()));
            } else if set.len() == MAX_TOOLS_PER_FOOT {
                left_out.push(ToolSetError::Full(name.clone()));
            } else {
                set.insert(name.clone(), registered.clone());
            }
        }
        (Arc::new(set), left_out)
    }
}

/// Registers tools; those that cannot be are left out.
fn register(
    tools: Vec<Arc<dyn Tool>>,
    permissions: &Arc<Permissions>,
    foreign: bool,
) -> (Vec<Named>, Vec<ToolSetError>) {
    let (mut named, mut left_out) = (Vec::new(), Vec::new());
    for tool in tools {
        match Registered::new(tool, permissions.clone(), foreign) {
            Ok((name, registered)) => named.push((name, Arc::new(registered))),
            Err(error) => left_out.push(error),
        }
    }
    (named, left_out)
}

impl ToolSet {
    /// A set, and what had to be left out of it.
    pub(crate) fn new(tools: Vec<Arc<dyn Tool>>, permissions: &Arc<Permissions>) -> (Self, Vec<ToolSetError>) {
        let parts = Parts { permissions: permissions.clone(), own: Vec::new(), packs: BTreeMap::new() };
        let set = Self { current: watch::Sender::default(), parts: Mutex::new(parts) };
        let left_out = set.replace(tools, permissions);
        (set, left_out)
    }

    /// Puts other tools in place of the foot's own, and all tools under these permissions. Calls that run go on; a connected
    /// hub is told what changed. Returns what had to be left out.
    pub(crate) fn replace(&self, tools: Vec<Arc<dyn Tool>>, permissions: &Arc<Permissions>) -> Vec<ToolSetError> {
        let mut parts = self.parts();
        let (own, mut left_out) = register(tools, permissions, false);
        parts.permissions = permissions.clone();
        parts.own = own;
        for (_, registered) in parts.packs.values_mut().flatten() {
            *registered = Arc::new(Registered { permissions: permissions.clone(), ..Registered::clone(registered) });
        }
        left_out.extend(self.put(&parts));
        left_out
    }

    /// Puts tools in place of those of a pack: of a local server. Returns what had to be left out. Takes its time with many.
    pub(crate) fn replace_pack(&self, pack: &EntryName, tools: Vec<Arc<dyn Tool>>) -> Vec<ToolSetError> {
        let permissions = self.parts().permissions.clone();
        let (mut named, mut left_out) = register(tools, &permissions, true);
        let mut parts = self.parts();
        if !Arc::ptr_eq(&permissions, &parts.permissions) {
            // They changed meanwhile.
            let now = &parts.permissions;
            for (_, registered) in &mut named {
                *registered = Arc::new(Registered { permissions: now.clone(), ..Registered::clone(registered) });
            }
        }
        parts.packs.insert(pack.clone(), named);
        left_out.extend(self.put(&parts));
        left_out
    }

    /// Takes a pack out.
    pub(crate) fn remove_pack(&self, pack: &EntryName) {
        let mut parts = self.parts();
        if parts.packs.remove(pack).is_some() {
            drop(self.put(&parts));
        }
    }

    fn put(&self, parts: &Parts) -> Vec<ToolSetError> {
        let (set, left_out) = parts.together();
        self.current.send_replace(set);
        left_out
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        // Nothing panics while it holds the lock.
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the set says of its tools, by name.
    pub(crate) fn entries(&self) -> Vec<ToolEntry> {
        self.current.borrow().values().map(|registered| ToolEntry::clone(&registered.entry)).collect()
    }

    /// One tool, as it is now.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Registered>> {
        self.current.borrow().get(name).cloned()
    }

    /// Follows the set.
    pub(crate) fn follow(&self) -> watch::Receiver<Snapshot> {
        self.current.subscribe()
    }
}

/// Turns states of the set into incremental `tools` messages.
#[derive(Debug, Default)]
pub(crate) struct Announcer {
    revision: u64,
    /// Every name the hub may know, with what it was told on this connection.
    told: BTreeMap<ToolName, Option<blake3::Hash>>,
    greeting: bool,
}

impl Announcer {
    /// A new connection: the hub may still know what it was told before, or nothing. Everything is told again.
    pub(crate) fn restart(&mut self) {
        self.told.values_mut().for_each(|told| *told = None);
        self.greeting = true;
    }

    /// What to tell the hub so that it knows `tools`: as many messages as it takes to fit each into a frame, at least one
    /// after [`Self::restart`]. A tool that is larger than a frame has a message of its own, which goes in parts.
    pub(crate) fn catch_up(&mut self, tools: &Snapshot, frame_bytes: usize) -> Vec<Tools> {
        let mut batches = Batches { room: frame_bytes.saturating_sub(ENVELOPE_BYTES), full: Vec::new(), last: None };
        self.told.retain(|name, _| {
            let kept = tools.contains_key(name);
            if !kept {
                batches.room_for(name.as_str().len() + 3).remove.push(name.to_string());
            }
            kept
        });
        for (name, registered) in tools.iter() {
            if self.told.get(name) == Some(&Some(registered.fingerprint)) {
                continue;
            }
            self.told.insert(name.clone(), Some(registered.fingerprint));
            if registered.bytes + ENVELOPE_BYTES > MAX_TOOLS_MESSAGE_BYTES {
                tracing::warn!(tool = %name, bytes = registered.bytes, "tool not announced: its entry is too large");
                continue;
            }
            batches.room_for(registered.bytes + 1).upsert.push(ToolEntry::clone(&registered.entry));
        }
        if std::mem::take(&mut self.greeting) {
            batches.room_for(0);
        }
        let Batches { mut full, last, .. } = batches;
        full.extend(last.map(|(tools, _)| tools));
        for message in &mut full {
            self.revision += 1;
            message.revision = self.revision;
        }
        full
    }
}

/// Messages being filled.
struct Batches {
    room: usize,
    full: Vec<Tools>,
    last: Option<(Tools, usize)>,
}

impl Batches {
    /// The message that has room for this many bytes more.
    fn room_for(&mut self, bytes: usize) -> &mut Tools {
        let fits = self.last.as_ref().is_some_and(|(_, used)| used + bytes <= self.room);
        if !fits {
            self.full.extend(self.last.take().map(|(tools, _)| tools));
        }
        let fresh = || (Tools { revision: 0, upsert: Vec::new(), remove: Vec::new() }, 0);
        let (tools, used) = self.last.get_or_insert_with(fresh);
        *used += bytes;
        tools
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;
    use crate::permissions::Action;
    use crate::tools::{Arguments, CallContext, Plan, ToolOutput};
    use footbridge_shared::limits::MAX_FRAME_BYTES;
    use footbridge_shared::message::FootToHub;

    struct Fake(String, String, &'static str);

    #[async_trait::async_trait]
    impl Tool for Fake {
        fn entry(&self) -> ToolEntry {
            let entry = serde_json::json!({"name": self.0, "description": self.1,
                "inputSchema": serde_json::from_str::<serde_json::Value>(self.2).unwrap()});
            serde_json::from_str(&entry.to_string()).unwrap()
        }
        fn is_read_only(&self) -> bool {
            true
        }
        async fn plan(&self, _: Arguments, _: &CallContext) -> Result<Plan, Failure> {
            Ok(Plan::new(Action::Nothing, async |_| Ok(ToolOutput::text(""))))
        }
    }

    const OBJECT: &str = r#"{"type": "object"}"#;

    fn fake(name: &str, description: &str) -> Arc<dyn Tool> {
        Arc::new(Fake(name.to_owned(), description.to_owned(), OBJECT))
    }

    fn told(messages: &[Tools]) -> (Vec<u64>, Vec<&str>, Vec<&str>) {
        (
            messages.iter().map(|m| m.revision).collect(),
            messages.iter().flat_map(|m| m.upsert.iter().map(|e| e.name.as_str())).collect(),
            messages.iter().flat_map(|m| m.remove.iter().map(String::as_str)).collect(),
        )
    }

    #[test]
    fn a_bad_tool_costs_itself_and_not_the_others() {
        let broken: Arc<dyn Tool> = Arc::new(Fake("broken".to_owned(), String::new(), r#"{"type": "array"}"#));
        let (set, left_out) =
            ToolSet::new(vec![fake("a", ""), fake("A b", ""), broken, fake("a", "again")], &Permissions::for_tests());
        assert_eq!(set.entries().iter().map(|e| e.name.as_str()).collect::<Vec<_>>(), ["a"]);
        assert_eq!(left_out.len(), 3, "{left_out:?}");
    }

    #[test]
    fn packs_stand_beside_the_foots_own_tools_and_never_in_their_place() {
        let (set, _) = ToolSet::new(vec![fake("a", "own")], &Permissions::for_tests());
        let names = || set.entries().iter().map(|e| format!("{} {}", e.name, e.description)).collect::<Vec<_>>();
        let pack = |name: &str| EntryName::parse(name).unwrap();
        let broken: Arc<dyn Tool> = Arc::new(Fake("q__x".to_owned(), String::new(), r#"{"type": "array"}"#));
        assert_eq!(set.replace_pack(&pack("q"), vec![fake("q__b", ""), broken]).len(), 1);
        assert_eq!(set.replace_pack(&pack("p"), vec![fake("p__b", "1"), fake("a", "theirs")]).len(), 1);
        assert_eq!(names(), ["a own", "p__b 1", "q__b "]);
        let permissions = Permissions::for_tests();
        set.replace(vec![fake("c", "own")], &permissions);
        assert_eq!(names(), ["a theirs", "c own", "p__b 1", "q__b "]);
        assert!(Arc::ptr_eq(&set.get("q__b").unwrap().permissions, &permissions));
        set.remove_pack(&pack("p"));
        assert_eq!(names(), ["c own", "q__b "]);
    }

    #[test]
    fn only_changes_are_told_and_a_new_connection_is_told_everything() {
        let (set, _) = ToolSet::new(vec![fake("a", "1"), fake("b", "1")], &Permissions::for_tests());
        let follow = set.follow();
        let mut announcer = Announcer::default();
        announcer.restart();
        let catch_up = |announcer: &mut Announcer| announcer.catch_up(&follow.borrow(), MAX_FRAME_BYTES);
        assert_eq!(told(&catch_up(&mut announcer)), (vec![1], vec!["a", "b"], vec![]));
        assert!(catch_up(&mut announcer).is_empty());

        set.replace(vec![fake("b", "2"), fake("c", "1")], &Permissions::for_tests());
        assert_eq!(told(&catch_up(&mut announcer)), (vec![2], vec!["b", "c"], vec!["a"]));

        set.replace(vec![fake("c", "1")], &Permissions::for_tests());
        announcer.restart();
        assert_eq!(told(&catch_up(&mut announcer)), (vec![3], vec!["c"], vec!["b"]), "gone while nobody listened");

        set.replace(Vec::new(), &Permissions::for_tests());
        catch_up(&mut announcer);
        announcer.restart();
        assert_eq!(told(&catch_up(&mut announcer)), (vec![5], vec![], vec![]), "an empty set is told, too");
    }

    #[test]
    fn many_tools_are_told_in_frames_that_fit() {
        let mut tools: Vec<_> = (0..500).map(|n| fake(&format!("tool_{n:03}"), &"d".repeat(900))).collect();
        tools.push(fake("long", &"d".repeat(MAX_FRAME_BYTES)));
        tools.push(fake("too_long", &"d".repeat(MAX_TOOLS_MESSAGE_BYTES)));
        let (set, _) = ToolSet::new(tools, &Permissions::for_tests());
        let mut announcer = Announcer::default();
        announcer.restart();
        let messages = announcer.catch_up(&set.follow().borrow(), MAX_FRAME_BYTES);
        let (revisions, upserts, _) = told(&messages);
        assert_eq!(upserts.len(), 501, "the entry that fits no message is left out");
        assert_eq!(upserts[0], "long");
        assert_eq!(revisions, (1..=u64::try_from(messages.len()).unwrap()).collect::<Vec<_>>());
        assert!(messages.len() > 5);
        assert_eq!(messages[0].upsert.len(), 1, "alone, for it goes in parts");
        for message in messages.into_iter().skip(1) {
            assert!(FootToHub::from(message).encode().len() <= MAX_FRAME_BYTES);
        }
    }
}

//! A tool as a foot offers it, checked and cleaned; kept once, however many feet offer the very same.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use footbridge_shared::id::ToolName;
use footbridge_shared::message::ToolEntry;
use parking_lot::Mutex;

use super::foot::Foot;
use super::handler::FootHandler;
use crate::domain::tool::{Origin, Tool, ToolSpec};

/// How many definitions are kept before those that nobody uses are swept out.
const FIRST_SWEEP: usize = 1024;

/// A checked and cleaned entry.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: ToolName,
    pub(super) entry: ToolEntry,
    /// BLAKE3 of the entry: equal digests are equal tools.
    digest: [u8; 32],
    /// Of the entry as JSON.
    bytes: usize,
}

/// All definitions in use, by digest. Most feet of a hub are of one version and offer the same built-in tools.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    known: Mutex<HashMap<[u8; 32], Weak<Definition>>>,
}

impl Definitions {
    /// The shared definition that equals this one.
    pub(super) fn shared(&self, name: ToolName, entry: ToolEntry) -> Arc<Definition> {
        // An entry is plain data; one that could not be written would only be kept once more.
        let text = serde_json::to_vec(&entry).unwrap_or_default();
        let (digest, bytes) = (*blake3::hash(&text).as_bytes(), text.len());
        let mut known = self.known.lock();
        if let Some(definition) = known.get(&digest).and_then(Weak::upgrade)
            && definition.name == name
        {
            return definition;
        }
        if known.len() >= FIRST_SWEEP && known.len() == known.capacity() {
            known.retain(|_, definition| definition.strong_count() > 0);
        }
        let definition = Arc::new(Definition { name, entry, digest, bytes });
        known.insert(digest, Arc::downgrade(&definition));
        definition
    }

    /// How many are in use.
    #[cfg(test)]
    fn in_use(&self) -> usize {
        self.known.lock().values().filter(|definition| definition.strong_count() > 0).count()
    }
}

impl Definition {
    /// What it takes of the room that a foot has for its tools, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// One tool of one foot, with the public forms that were asked for so far.
#[derive(Debug)]
pub(super) struct FootTool {
    definition: Arc<Definition>,
    /// Counts up within the foot as tools are announced.
    pub(super) order: u64,
    bare: OnceLock<Arc<Tool>>,
    qualified: OnceLock<Arc<Tool>>,
}

/// The tools of one foot by their names on it.
pub(super) type ToolSet = BTreeMap<ToolName, Arc<FootTool>>;

impl FootTool {
    pub(super) fn new(definition: Arc<Definition>, order: u64) -> Self {
        Self { definition, order, bare: OnceLock::new(), qualified: OnceLock::new() }
    }

    /// The pack that it belongs to.
    pub(super) fn pack(&self) -> Option<&str> {
        self.definition.entry.pack.as_deref()
    }

    /// Its name where it comes from.
    pub(super) fn original_name(&self) -> &str {
        let Definition { name, entry, .. } = &*self.definition;
        entry.original_name.as_deref().unwrap_or(name.as_str())
    }

    /// Whether this is the tool that `definition` describes.
    pub(super) fn is(&self, definition: &Definition) -> bool {
        self.definition.digest == definition.digest
    }

    /// What it takes of the room that a foot has for its tools, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.definition.bytes()
    }

    /// The tool under its name on the foot.
    pub(super) fn bare(&self, foot: &Arc<Foot>) -> Arc<Tool> {
        self.bare.get_or_init(|| self.tool(foot, self.definition.name.clone())).clone()
    }

    /// The tool under a name that says which foot it is on. Mostly that name is the same for everybody.
    pub(super) fn qualified(&self, foot: &Arc<Foot>, name: &ToolName) -> Arc<Tool> {
        let usual = self.qualified.get_or_init(|| self.tool(foot, name.clone()));
        if usual.spec.name == *name { usual.clone() } else { self.tool(foot, name.clone()) }
    }

    fn tool(&self, foot: &Arc<Foot>, name: ToolName) -> Arc<Tool> {
        let Definition { name: local, entry, .. } = &*self.definition;
        let entry = entry.clone();
        let bare = name == *local;
        let original_name = entry.original_name.or_else(|| (!bare).then(|| local.to_string()));
        Arc::new(Tool {
            spec: ToolSpec {
                name: name.clone(),
                original_name,
                title: entry.title,
                description: entry.description,
                search_hint: entry.search_hint,
                prompt_hint: entry.prompt_hint,
                input_schema: entry.input_schema,
                output_schema: entry.output_schema,
                annotations: entry.annotations,
                extra: entry.extra,
                changed: false,
                labels: entry.labels,
                // The second name of a tool that has a short one is for those who look for it.
                primary: bare && entry.primary,
                deferred: !bare || entry.deferred,
                requires_roles: entry.requires_roles,
                profiles: entry.profiles,
                timeout: entry.timeout_ms.map(Duration::from_millis),
                max_timeout: entry.max_timeout_ms.map(Duration::from_millis),
                origin: Origin::Foot { foot: foot.name.clone(), owner: foot.owner.clone(), local: local.clone() },
            },
            // The foot checks the arguments of its own tools.
            schema: None,
            handler: Arc::new(FootHandler::new(foot, name, local.clone())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(description: &str) -> ToolEntry {
        serde_json::from_value(serde_json::json!({
            "name": "uptime", "description": description, "inputSchema": {"type": "object"}
        }))
        .unwrap()
    }

    #[test]
    fn equal_tools_are_kept_once_and_only_while_somebody_offers_them() {
        let definitions = Definitions::default();
        let name = ToolName::parse("uptime").unwrap();
        let (one, two) = (
            definitions.shared(name.clone(), entry("since boot")),
            definitions.shared(name.clone(), entry("since boot")),
        );
        assert!(Arc::ptr_eq(&one, &two));
        let other = definitions.shared(name, entry("since login"));
        assert!(!Arc::ptr_eq(&one, &other));
        assert_eq!(definitions.in_use(), 2);
        drop((one, two));
        assert_eq!(definitions.in_use(), 1);
    }
}

//! What a client that listens is told: that lists are others now, that resources it follows changed, and what servers log.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use footbridge_mcp::{Fields, Raw, changes};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::{StreamExt as _, StreamMap};

use super::level::{Level, level_of};
use super::message::object;
use super::peer::{Peer, View};
use super::{prompts, resources, tools};
use crate::domain::mcp::{ListKind, McpAudience, McpNote, McpServer};
use crate::domain::tool::{Tool, ToolSpec};

/// How long changes are gathered before they are looked at: one burst is told once.
const DEBOUNCE: Duration = Duration::from_millis(250);

/// Fingerprints of the lists that a client was shown last; `None`: it was shown none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) tools: Option<u64>,
    pub(super) resources: Option<u64>,
    pub(super) prompts: Option<u64>,
}

/// What a client wants to hear of.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    pub(super) tools: bool,
    pub(super) resources: bool,
    pub(super) prompts: bool,
    /// Resources, beside those that its session follows: server, URI there, and URI as the client knows it.
    pub(super) followed: Vec<(String, String, String)>,
}

impl Wanted {
    /// All that a session may hear.
    pub(super) fn lists() -> Self {
        Self { tools: true, resources: true, prompts: true, followed: Vec::new() }
    }

    /// What its URIs take.
    pub(super) fn bytes(&self) -> usize {
        self.followed.iter().map(|(_, original, known)| original.len() + known.len()).sum()
    }

    /// Whether it wants to hear that a list changed.
    fn wants(&self, method: &str) -> bool {
        match method {
            changes::TOOLS => self.tools,
            changes::RESOURCES => self.resources,
            changes::PROMPTS => self.prompts,
            _ => false,
        }
    }
}

/// Listens for one client.
pub(super) struct Listener {
    peer: Arc<Peer>,
    wanted: Wanted,
    shown: Shown,
    changes: watch::Receiver<u64>,
    notes: StreamMap<String, BroadcastStream<McpNote>>,
    due: Option<Instant>,
    queue: VecDeque<(String, Raw)>,
}

impl Listener {
    /// Listens, and has looked once: what changes from now on is heard, and what changed since the client's session was shown
    /// the lists.
    pub(super) async fn started(peer: Arc<Peer>, wanted: Wanted) -> Self {
        let changes = peer.state.mcp.changes().follow();
        let (notes, queue) = (StreamMap::new(), VecDeque::new());
        let mut listener = Self { peer, wanted, shown: Shown::default(), changes, notes, due: None, queue };
        if !listener.look().await {
            listener.due = Some(Instant::now() + DEBOUNCE);
        }
        listener
    }

    /// What the client wants to hear of.
    pub(super) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Hears of a resource too: of this server, under this URI there, which the client knows as the other.
    pub(super) fn follow_resource(&mut self, server: String, original: String, known: String) {
        self.wanted.followed.push((server, original, known));
    }

    /// Does not hear of the resource that it was told of last.
    pub(super) fn forget_last_resource(&mut self) {
        self.wanted.followed.pop();
    }

    /// The next thing to tell: a method and its parameters. Can be dropped and asked again.
    pub(super) async fn next(&mut self) -> (String, Raw) {
        loop {
            if let Some(next) = self.queue.pop_front() {
                return next;
            }
            let due = self.due;
            let wait = async move {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Ok(()) = self.changes.changed() => {
                    self.due.get_or_insert_with(|| Instant::now() + DEBOUNCE);
                }
                Some((server, note)) = self.notes.next() => match note {
                    Ok(note) => self.hear(&server, note),
                    // Some were missed: whatever they were, the lists are looked at.
                    Err(_) => { self.due.get_or_insert_with(|| Instant::now() + DEBOUNCE); }
                },
                () = wait => {
                    self.look().await;
                    self.due = None;
                }
            }
        }
    }

    fn hear(&mut self, server: &str, note: McpNote) {
        let (audience, method, params) = match note {
            McpNote::ListChanged => {
                self.due.get_or_insert_with(|| Instant::now() + DEBOUNCE);
                return;
            }
            McpNote::Told { audience, method, params } => (audience, method, params),
        };
        let session = self.peer.session.as_ref();
        let own = match &audience {
            McpAudience::Everybody => true,
            McpAudience::Subject(subject) => *subject == self.peer.caller.subject,
            McpAudience::Session(subject, id) => {
                *subject == self.peer.caller.subject && session.is_some_and(|session| *session.id == **id)
            }
        };
        if !own {
            return;
        }
        match method.as_str() {
            changes::RESOURCE => {
                if let Some(params) = self.updated(server, &params) {
                    self.queue.push_back((method, params));
                }
            }
            "notifications/message" => {
                let level = session.and_then(|session| session.level());
                let wanted = |wanted: Level| level_of(&params).is_none_or(|level| level >= wanted);
                if session.is_some() && level.is_none_or(wanted) {
                    self.queue.push_back((method, params));
                }
            }
            // Of one connection to the server: what the others are shown is looked at beside this.
            changes::TOOLS | changes::RESOURCES | changes::PROMPTS
                if self.peer.view != View::All && self.wanted.wants(&method) =>
            {
                self.queue.push_back((method, params));
            }
            _ if self.peer.view != View::All && session.is_some() => self.queue.push_back((method, params)),
            _ => {}
        }
    }

    /// Word of a resource that the client follows, under the URI that it knows.
    fn updated(&self, server: &str, params: &Raw) -> Option<Raw> {
        let mut fields = Fields::of(params)?;
        let original: String = fields.read("uri")?;
        let known = match &self.peer.session {
            Some(session) => session.follows(server, &original),
            None => {
                let mut followed = self.wanted.followed.iter();
                followed.find(|(name, uri, _)| name == server && *uri == original).map(|(.., known)| known.clone())
            }
        }?;
        fields.set_value("uri", &known);
        Some(fields.to_raw())
    }

    /// Looks at the servers and lists as they are now. Whether that was possible.
    async fn look(&mut self) -> bool {
        let Ok(servers) = self.peer.servers().await else { return false };
        self.follow(&servers);
        let mut now = self.last();
        if self.wanted.tools
            && let Ok(seen) = tools::seen(&self.peer).await
        {
            now.tools = Some(print_of_tools(&seen));
        }
        if self.wanted.resources {
            now.resources = self.print(&servers, ListKind::Resources).await.or(now.resources);
        }
        if self.wanted.prompts {
            now.prompts = self.print(&servers, ListKind::Prompts).await.or(now.prompts);
        }
        let before = self.last();
        for (before, now, method) in [
            (before.tools, now.tools, changes::TOOLS),
            (before.resources, now.resources, changes::RESOURCES),
            (before.prompts, now.prompts, changes::PROMPTS),
        ] {
            // A client that was shown nothing has nothing that could be out of date.
            if before.is_some() && before != now {
                self.queue.push_back((method.to_owned(), object([])));
            }
        }
        match &self.peer.session {
            Some(session) => session.shown(|shown| *shown = now),
            None => self.shown = now,
        }
        true
    }

    fn last(&self) -> Shown {
        self.peer.session.as_ref().map_or(self.shown, |session| session.shown(|shown| *shown))
    }

    async fn print(&self, servers: &[Arc<dyn McpServer>], kind: ListKind) -> Option<u64> {
        match (&self.peer.view, kind) {
            (View::Pack(name), _) => {
                let server = servers.iter().find(|server| server.name() == name)?;
                let mut hasher = DefaultHasher::new();
                let templates = server.listed(ListKind::ResourceTemplates);
                let templates = templates.iter().filter(|_| kind == ListKind::Resources);
                for thing in server.listed(kind).iter().chain(templates) {
                    thing.get().hash(&mut hasher);
                }
                Some(hasher.finish())
            }
            (View::All, ListKind::Prompts) => prompts::seen(&self.peer).await.ok().map(|seen| print_of_listed(&seen)),
            (View::All, kind) => resources::seen(&self.peer, kind).await.ok().map(|seen| print_of_listed(&seen)),
        }
    }

    /// Hears of each server that the client sees.
    fn follow(&mut self, servers: &[Arc<dyn McpServer>]) {
        let seen = |server: &Arc<dyn McpServer>| match &self.peer.view {
            View::All => true,
            View::Pack(name) => server.name() == name,
        };
        let names: Vec<&str> =
            servers.iter().filter(|server| seen(server)).map(|server| server.name().as_str()).collect();
        let gone: Vec<String> = self.notes.keys().filter(|name| !names.contains(&name.as_str())).cloned().collect();
        for name in gone {
            self.notes.remove(&name);
        }
        for server in servers.iter().filter(|server| names.contains(&server.name().as_str())) {
            if !self.notes.contains_key(server.name().as_str()) {
                self.notes.insert(server.name().to_string(), BroadcastStream::new(server.notes()));
            }
        }
    }
}

/// A fingerprint of tools as a client sees them.
pub(super) fn print_of_tools(tools: &[(String, Arc<Tool>)]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (name, tool) in tools {
        print_tool(name, &tool.spec, &mut hasher);
    }
    hasher.finish()
}

/// All of a tool that a client is shown.
fn print_tool(name: &str, spec: &ToolSpec, hasher: &mut DefaultHasher) {
    fn text(raw: Option<&Raw>) -> Option<&str> {
        raw.map(|raw| raw.get())
    }
    (name, &spec.title, &spec.description, spec.input_schema.get()).hash(hasher);
    (text(spec.output_schema.as_ref()), text(spec.annotations.as_ref()), text(spec.extra.as_ref())).hash(hasher);
}

/// A fingerprint of listed things.
pub(super) fn print_of_listed(things: &[(String, Raw)]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (key, thing) in things {
        (key, thing.get()).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use footbridge_shared::id::ToolName;

    use super::*;
    use crate::domain::tool::Origin;

    #[test]
    fn whatever_of_a_tool_is_shown_is_in_its_fingerprint() {
        let print = |spec: &ToolSpec| {
            let mut hasher = DefaultHasher::new();
            print_tool("echo", spec, &mut hasher);
            hasher.finish()
        };
        let raw = |text: &str| Some(serde_json::from_str::<Raw>(text).unwrap());
        let bare = ToolSpec::bare(ToolName::parse("echo").unwrap(), Origin::BuiltIn);
        let all = |text: &str| {
            [
                ToolSpec { output_schema: raw(text), ..bare.clone() },
                ToolSpec { annotations: raw(text), ..bare.clone() },
                ToolSpec { extra: raw(text), ..bare.clone() },
                ToolSpec { input_schema: raw(text).unwrap(), ..bare.clone() },
            ]
        };
        // Of the same length.
        for (before, after) in all(r#"{"a":1}"#).iter().zip(&all(r#"{"a":2}"#)) {
            assert_ne!(print(before), print(after));
            assert_eq!(print(before), print(&before.clone()));
        }
    }
}

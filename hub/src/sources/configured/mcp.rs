//! MCP servers that documents attach.
//!
//! A server belongs to its document: while a catalog holds that (an [`Attachment`]), its tools are listed in the background
//! and kept up to date, and projects that see the same document share it. What the document says of the pack may change
//! without a word to the server; with other parameters it is another server, and the old one ends. Where
//! that is the same program or address, what the old one offered is shown until the new one was listed.

mod asked;
mod backoff;
mod call;
mod child;
pub(super) mod config;
mod dial;
mod events;
mod followed;
mod http;
mod listening;
mod listing;
mod noise;
pub(super) mod redact;
mod server;
mod session;
pub(super) mod shape;
mod surface;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use footbridge_mcp::Spawn;
use footbridge_shared::id::{EntryName, ProjectName, TenantName};
use futures::future::BoxFuture;
use parking_lot::Mutex;

pub use child::{AllowedPrograms, ChildSettings};

use self::child::{Children, StdioDial};
use self::config::{ServerConfig, Target};
use self::dial::Dial;
use self::http::HttpDial;
use self::noise::Noise;
pub(super) use self::server::Server;
use self::session::IDLE;
use crate::clock::SharedClock;
use crate::domain::changes::SurfaceChanges;
use crate::domain::document::Layer;
use crate::domain::scope::Scope;
use crate::lifecycle::Lifecycle;

/// Time between two looks for connections that nobody uses.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Which document a server belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct DocumentKey {
    tenant: TenantName,
    /// `None`: all projects of the tenant see the same document.
    project: Option<ProjectName>,
    layer: Layer,
    name: EntryName,
}

impl DocumentKey {
    /// The document of that name which `scope` sees in `layer`.
    pub(super) fn new(scope: &Scope, layer: Layer, name: &EntryName) -> Self {
        let own = matches!(layer, Layer::Project | Layer::ProjectFolder);
        let project = own.then(|| scope.project.clone());
        Self { tenant: scope.tenant.clone(), project, layer, name: name.clone() }
    }
}

/// A document and its parameters.
type AttachmentKey = (DocumentKey, [u8; 32]);

/// All attached servers of a hub.
pub struct McpServersOfHub {
    hub: Arc<Hub>,
}

/// What servers share.
pub(super) struct Hub {
    pub(super) lifecycle: Lifecycle,
    pub(super) clock: SharedClock,
    pub(super) changes: SurfaceChanges,
    pub(super) spawn: Arc<dyn Spawn>,
    children: Arc<Children>,
    attached: Mutex<HashMap<AttachmentKey, Weak<Attachment>>>,
}

/// Holds a server in force. When the last one goes, the server ends.
pub struct Attachment(Arc<Server>);

impl Attachment {
    /// The server.
    pub(super) fn server(&self) -> &Arc<Server> {
        &self.0
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl McpServersOfHub {
    /// None yet. `changes` hears when a server offers something else than before.
    pub fn new(
        children: ChildSettings,
        clock: SharedClock,
        changes: SurfaceChanges,
        lifecycle: &Lifecycle,
    ) -> Arc<Self> {
        let hub = Arc::new(Hub {
            lifecycle: lifecycle.clone(),
            clock,
            changes,
            spawn: Arc::new(Spawner(lifecycle.clone())),
            children: Arc::new(Children::new(children, lifecycle.clone())),
            attached: Mutex::default(),
        });
        lifecycle.spawn("idle MCP servers", sweep(hub.clone()));
        Arc::new(Self { hub })
    }

    /// Word for those who show tools.
    pub(super) fn changes(&self) -> &SurfaceChanges {
        &self.hub.changes
    }

    /// The time of day.
    pub(super) fn now(&self) -> jiff::Timestamp {
        self.hub.clock.now()
    }

    /// The server of a document: the one that is there, or a new one, which begins at once.
    pub(super) fn attach(&self, document: DocumentKey, config: ServerConfig) -> Arc<Attachment> {
        self.attach_with(document, config, |hub, config, name| hub.dialer(config, name))
    }

    fn attach_with(
        &self,
        document: DocumentKey,
        mut config: ServerConfig,
        dialer: impl FnOnce(&Hub, &mut ServerConfig, &EntryName) -> Box<dyn Dial>,
    ) -> Arc<Attachment> {
        let mut attached = self.hub.attached.lock();
        let (name, key) = (document.name.clone(), (document, config.digest));
        if let Some(known) = attached.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        attached.retain(|_, attachment| attachment.strong_count() > 0);
        // The last that the same document attached, while it is there still: the one that this takes the place of.
        let of_document = attached.iter().filter(|((document, _), _)| *document == key.0);
        let before = of_document.filter_map(|(_, attachment)| attachment.upgrade()).find(|before| {
            let before = before.server();
            before.listed().description.is_some() && before.config.target.is_same_server(&config.target)
        });
        let dialer = dialer(&self.hub, &mut config, &name);
        let before = before.as_ref().map(|before| &**before.server());
        let server = Server::new(name, config, self.hub.clone(), dialer, before);
        let attachment = Arc::new(Attachment(server.clone()));
        attached.insert(key, Arc::downgrade(&attachment));
        drop(attached);
        self.hub.lifecycle.spawn("MCP server", server.keep());
        attachment
    }
}

impl Hub {
    /// The way to a server.
    fn dialer(&self, config: &mut ServerConfig, name: &EntryName) -> Box<dyn Dial> {
        let redactor = config.redactor.clone();
        match &mut config.target {
            Target::Stdio(program) => {
                let noise = Noise::new(name.clone(), redactor.clone());
                Box::new(StdioDial::new(program.clone(), redactor, noise, self.children.clone()))
            }
            Target::Http(endpoint) => Box::new(HttpDial::new((**endpoint).clone(), redactor)),
        }
    }

    fn servers(&self) -> Vec<Arc<Server>> {
        let attached = self.attached.lock();
        attached.values().filter_map(Weak::upgrade).map(|attachment| attachment.server().clone()).collect()
    }

    /// Ends the program that nobody used for longest, when there is no room for another.
    pub(super) async fn make_room_for_a_child(&self) {
        if !self.children.are_full() {
            return;
        }
        let stdio = self.servers().into_iter().filter(|server| matches!(server.config.target, Target::Stdio(_)));
        let oldest = stdio.filter_map(|server| Some((server.longest_idle()?, server))).max_by_key(|(idle, _)| *idle);
        let Some((idle, server)) = oldest else { return };
        for session in server.take_idle(idle) {
            session.close().await;
        }
    }
}

/// Ends connections that nobody used for a while.
async fn sweep(hub: Arc<Hub>) {
    loop {
        tokio::select! {
            () = hub.lifecycle.soft().cancelled() => return,
            () = tokio::time::sleep(SWEEP_INTERVAL) => {}
        }
        let idle = hub.servers().into_iter().flat_map(|server| server.take_idle(IDLE));
        futures::future::join_all(idle.map(|session| async move { session.close().await })).await;
    }
}

/// Gives the tasks of connections to the hub.
struct Spawner(Lifecycle);

impl Spawn for Spawner {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.0.spawn("MCP connection", task);
    }
}

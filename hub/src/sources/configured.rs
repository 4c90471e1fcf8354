//! Tools from documents: `server-tools/<name>.yaml`, through the cascade.
//!
//! The documents of a scope are compiled once into a catalog, which is used until they change. A write through this hub
//! counts at once ([`Documents::tool_generation`]), so whoever asks after it gets the new state; what another hub writes is
//! noticed through the store, and by comparing revisions every few seconds. A catalog is put in force only if the tool
//! documents are still those it was compiled from; other documents of the scope may come and go meanwhile.

use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::id::{EntryName, PACK_SEPARATOR, Subject};

use crate::documents::{Documents, DocumentsError, Revision};
use crate::domain::call::Caller;
use crate::domain::document::{DocumentPath, SERVER_TOOLS};
use crate::domain::failure::Failure;
use crate::domain::scope::Scope;
use crate::domain::tool::{Listing, ToolSource};
use crate::lifecycle::Lifecycle;
use crate::yaml::DocumentError;

mod cache;
mod catalog;
mod checker;
mod inputs;
mod link;
mod mcp;
mod pack;
mod paths;
mod server_tool;
mod status;
mod types;
mod watch;

#[cfg(test)]
mod tests;

pub use catalog::LayerState;
pub use checker::Checker;
pub use footbridge_shared::names::public_names;
pub use mcp::{AllowedPrograms, Attachment, ChildSettings, McpServersOfHub};
pub use server_tool::{Pin, ServerTool};
pub use status::{PackError, PackState, PackStatus, PackView};
pub use types::{
    Built, BuiltTool, Dependencies, Link, Pack, Place, Prepared, Registry, RegistryError, ToolType, ToolTypeInfo,
};

use cache::{Cache, Compiled, Slot};
use catalog::{Catalog, judge};

/// How often a compilation starts over when its scope is written to meanwhile; then its result serves one call.
const COMPILE_ATTEMPTS: usize = 5;

/// The source of configured tools. Cheap to clone.
#[derive(Clone)]
pub struct ConfiguredSource {
    inner: Arc<Inner>,
}

struct Inner {
    documents: Documents,
    checker: Checker,
    deps: Dependencies,
    cache: Cache,
}

impl ConfiguredSource {
    /// Starts the source and its poll. `checker` is the one that guards writes to `documents`.
    pub fn new(documents: Documents, checker: Checker, deps: Dependencies, lifecycle: &Lifecycle) -> Self {
        let source = Self { inner: Arc::new(Inner { documents, checker, deps, cache: Cache::default() }) };
        lifecycle.spawn("tool catalogs", watch::poll(source.clone(), lifecycle.soft().clone()));
        lifecycle.spawn("tool documents", watch::follow(source.clone(), lifecycle.soft().clone()));
        source
    }

    /// Compiles these scopes, so that the servers which their documents attach begin before anybody asks for them.
    pub async fn warm(&self, scopes: impl IntoIterator<Item = Scope>) {
        for scope in scopes.into_iter().take(watch::MAX_WARMED) {
            self.bring_up(&scope).await;
        }
    }

    /// The packs of a scope, by name, as a subject sees them. `all`: those too that only processes may use.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn packs(&self, scope: &Scope, subject: &Subject, all: bool) -> Result<Vec<PackView>, Failure> {
        let compiled = self.current(scope).await?;
        let packs = compiled.catalog.packs.iter().filter(|pack| all || pack.is_for_direct_callers());
        Ok(packs.map(|pack| pack.view(scope, subject)).collect())
    }

    /// Lists a pack again now, and takes what it offers then for looked at. Waits a while for that; the answer says how it
    /// went. `None`: there is no such pack.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn refresh_pack(
        &self,
        scope: &Scope,
        subject: &Subject,
        name: &str,
    ) -> Result<Option<PackView>, Failure> {
        let compiled = self.current(scope).await?;
        let Some(pack) = compiled.catalog.packs.iter().find(|pack| pack.name().as_str() == name) else {
            return Ok(None);
        };
        if let Some(server) = pack.server() {
            server.server().refresh().await;
        }
        Ok(Some(pack.view(scope, subject)))
    }

    /// The types, by id.
    pub fn tool_types(&self) -> Vec<ToolTypeInfo> {
        self.inner.checker.tool_types()
    }

    /// Every layer that holds a tool document of that name, innermost first, with what it would offer. The first one decides
    /// what the name means.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn explain(&self, scope: &Scope, name: &EntryName) -> Result<Vec<LayerState>, DocumentsError> {
        // An entry name holds nothing that a path may not hold.
        let Ok(path) = DocumentPath::parse(&checker::path_of(name)) else { return Ok(Vec::new()) };
        let layers = self.inner.documents.layers(scope, &path).await?;
        let states = layers.into_iter().map(|document| {
            let judged = judge(&self.inner.checker, name, &document);
            let (state, type_id) = (judged.state, judged.type_id);
            LayerState { layer: document.layer, etag: document.etag, state, type_id }
        });
        Ok(states.collect())
    }

    /// The tool documents of a scope that won, by name, whatever their state.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn server_tools(&self, scope: &Scope) -> Result<Vec<(EntryName, LayerState)>, Failure> {
        let compiled = self.current(scope).await?;
        Ok(compiled.catalog.documents.iter().map(|(name, state)| (name.clone(), state.clone())).collect())
    }

    /// What a scope sees that is of no use: what lies among its tools and is none, documents that offer a tool of an MCP
    /// server which is not there, and what was left out of its folder and its tenant's, folders that could not be looked into
    /// included. By place.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn problems(&self, scope: &Scope) -> Result<Vec<DocumentError>, Failure> {
        let catalog = self.current(scope).await?.catalog.clone();
        let mut problems = catalog.ignored.clone();
        problems.extend(catalog.mistakes());
        problems.extend(self.inner.documents.folder_problems_of(scope));
        problems.sort_by(|a, b| (&a.document, a.layer).cmp(&(&b.document, b.layer)));
        Ok(problems)
    }

    /// The catalog of a scope as it stands now.
    async fn current(&self, scope: &Scope) -> Result<Arc<Compiled>, Failure> {
        let slot = self.inner.cache.slot(scope);
        if let Some(current) = slot.current(self.inner.documents.tool_generation(scope)) {
            return Ok(current);
        }
        let _one = slot.compiling.lock().await;
        Ok(self.bring_up_to_date(scope, &slot).await?)
    }

    /// Compiles a scope if it has to be, for the sake of its servers. What goes wrong is told to whoever asks for tools.
    async fn bring_up(&self, scope: &Scope) {
        if let Err(failure) = self.current(scope).await {
            tracing::debug!(%scope, %failure, "the tools of a scope could not be compiled");
        }
    }

    /// Only one at a time does this for a scope.
    async fn bring_up_to_date(&self, scope: &Scope, slot: &Slot) -> Result<Arc<Compiled>, DocumentsError> {
        let documents = &self.inner.documents;
        let mut attempts = COMPILE_ATTEMPTS;
        loop {
            // Taken before reading: what is written from here on makes the result old at once.
            let generation = documents.tool_generation(scope);
            if let Some(current) = slot.current(generation) {
                return Ok(current);
            }
            let before = slot.installed.load_full();
            if let Some(before) = &before {
                let revision = documents.revision(scope).await?;
                if self.stands(scope, &revision, before).await? {
                    let same = Arc::new(Compiled { generation, revision, ..Compiled::clone(before) });
                    slot.install(same.clone());
                    return Ok(same);
                }
            }
            let assembled = documents.all(scope, SERVER_TOOLS).await?;
            let (revision, fingerprint) = (assembled.revision.clone(), assembled.fingerprint());
            let before = before.as_deref().map(|before| &*before.catalog);
            let catalog = Arc::new(Catalog::compile(scope, assembled, before, &self.inner.checker, &self.inner.deps));
            let compiled =
                Arc::new(Compiled { catalog, revision, fingerprint, generation, with_packs: Arc::default() });
            let still = self.stands(scope, &documents.revision(scope).await?, &compiled).await?;
            if still {
                report(scope, &compiled.catalog, before);
                slot.install(compiled.clone());
                self.inner.deps.servers.changes().tell();
            }
            attempts -= 1;
            if still || attempts == 0 {
                return Ok(compiled);
            }
        }
    }

    /// Whether the tool documents of a scope, which is at this revision, are those that a catalog was compiled from. What
    /// else is written to the scope changes its revision, and no tool.
    async fn stands(&self, scope: &Scope, now: &Revision, compiled: &Compiled) -> Result<bool, DocumentsError> {
        Ok(*now == compiled.revision
            || self.inner.documents.fingerprint(scope, SERVER_TOOLS).await? == compiled.fingerprint)
    }
}

#[async_trait]
impl ToolSource for ConfiguredSource {
    async fn listing(&self, scope: &Scope, subject: &Subject) -> Result<Arc<Listing>, Failure> {
        let compiled = self.current(scope).await?;
        let catalog = &compiled.catalog;
        if catalog.packs.is_empty() && catalog.links.is_empty() {
            return Ok(catalog.listing.clone());
        }
        Ok(compiled.with_packs.listing(catalog, scope, subject))
    }

    async fn absent(&self, scope: &Scope, caller: &Caller, name: &str) -> Option<Failure> {
        let (pack, _) = name.split_once(PACK_SEPARATOR)?;
        let compiled = self.current(scope).await.ok()?;
        let pack = compiled.catalog.packs.iter().find(|known| known.name().as_str() == pack)?;
        pack.absent(scope, caller, self.inner.deps.servers.now())
    }
}

/// Logs what is newly broken or ignored.
fn report(scope: &Scope, catalog: &Catalog, before: Option<&Catalog>) {
    use crate::domain::tool::EntryState::Broken;
    for (name, document) in &catalog.documents {
        let known = before.and_then(|before| before.documents.get(name)).is_some_and(|old| old.state == document.state);
        if let (Broken { reason }, false) = (&document.state, known) {
            tracing::warn!(%scope, tool = %name, reason, "a tool's document is broken");
        }
    }
    for error in &catalog.ignored {
        if !before.is_some_and(|before| before.ignored.contains(error)) {
            tracing::warn!(%scope, %error, "a document in the folder of tools is ignored");
        }
    }
}

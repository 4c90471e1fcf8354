//! Tools from documents: `server-tools/<name>.yaml`, through the cascade.
//!
//! The documents of a scope are compiled once into a catalog, which is used until they change. A write through this hub
//! counts at once ([`Documents::tool_generation`]), so whoever asks after it gets the new state; what another hub writes is
//! noticed through the store, and by comparing revisions every few seconds. A catalog is put in force only if the tool
//! documents are still those it was compiled from; other documents of the scope may come and go meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use footbridge_shared::id::{EntryName, Subject};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::documents::{Documents, DocumentsError, Revision};
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
mod pack;
mod paths;
mod server_tool;
mod types;

#[cfg(test)]
mod tests;

pub use catalog::LayerState;
pub use checker::Checker;
pub use footbridge_shared::names::public_names;
pub use server_tool::{Pin, ServerTool};
pub use types::{Built, BuiltTool, Dependencies, Pack, Prepared, Registry, RegistryError, ToolType, ToolTypeInfo};

use cache::{Cache, Compiled, Slot};
use catalog::{Catalog, judge};

/// How often the revisions of scopes in use are compared although nothing was noticed.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
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
        lifecycle.spawn("tool catalogs", poll(source.clone(), lifecycle.soft().clone()));
        source
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

    /// What a scope sees that is of no use: what lies among its tools and is none, and what was left out of its folder and
    /// its tenant's, folders that could not be looked into included. By place.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn problems(&self, scope: &Scope) -> Result<Vec<DocumentError>, Failure> {
        let mut problems = self.current(scope).await?.catalog.ignored.clone();
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
            let catalog = Arc::new(Catalog::compile(assembled, before, &self.inner.checker, &self.inner.deps));
            let compiled =
                Arc::new(Compiled { catalog, revision, fingerprint, generation, with_packs: Arc::default() });
            let still = self.stands(scope, &documents.revision(scope).await?, &compiled).await?;
            if still {
                report(scope, &compiled.catalog, before);
                slot.install(compiled.clone());
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
        if catalog.packs.is_empty() {
            return Ok(catalog.listing.clone());
        }
        Ok(compiled.with_packs.listing(catalog, scope, subject))
    }
}

/// Notices what was written elsewhere and not announced.
async fn poll(source: ConfiguredSource, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        for (scope, slot) in source.inner.cache.poll() {
            let Some(installed) = slot.installed.load_full() else { continue };
            match source.inner.documents.revision(&scope).await {
                Ok(revision) if revision != installed.revision => slot.stale.store(true, Ordering::Release),
                Ok(_) => {}
                // What is in force stays so; whoever writes or asks hears of it.
                Err(error) => tracing::debug!(%scope, %error, "the revision of a scope could not be compared"),
            }
        }
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

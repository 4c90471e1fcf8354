//! Documents through the cascade: the documents folder and the store, for the project and for its tenant, and what is
//! compiled into the hub. The innermost layer that holds a path wins, whole; nothing is merged.
//!
//! The order is that of [`Layer`]: project folder, project, tenant folder, tenant, bundled. A file that cannot be read
//! still holds its path: the path is then an error, never the text of a layer below.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::id::ProjectName;
use tokio::sync::broadcast;

use crate::clock::SharedClock;
use crate::domain::document::{DocumentPath, DocumentReader, Layer, ResolvedDocument};
use crate::domain::failure::Failure;
use crate::domain::scope::Scope;
use crate::lifecycle::Lifecycle;
use crate::store::Store;
use crate::yaml::DocumentError;

pub mod bundled;
mod cascade;
mod change;
mod error;
mod fingerprint;
mod folder;
mod listing;
mod write;

#[cfg(test)]
mod tests;

pub use bundled::Bundled;
pub use cascade::{Assembled, LayerDocument, Revision};
pub use change::{DocumentChange, Generation};
pub use error::{DocumentsError, Unreadable};
pub use fingerprint::Fingerprint;
pub use folder::{FolderError, FolderProblem};
pub use listing::{DocumentEntry, DocumentPage, MAX_PAGE};
pub use write::{WriteCondition, Written};

/// Says whether a text may stand at a path. Asked before every write, wherever it comes from.
pub trait DocumentValidator: Send + Sync {
    /// Checks a text that would be written to `layer`. Documents that are not its business pass.
    ///
    /// # Errors
    /// Everything that is wrong with it; at least one.
    fn check(&self, layer: Layer, path: &DocumentPath, text: &str) -> Result<(), Vec<DocumentError>>;
}

/// What the cascade is made of.
pub struct DocumentParts {
    /// Where documents are written.
    pub store: Arc<dyn Store>,
    /// The documents folder: `DIR/<tenant>/<project>/<path>`, with `_tenant` as the project of the tenant's own layer.
    pub folder: Option<PathBuf>,
    /// What is compiled in.
    pub bundled: Bundled,
    /// Who may refuse a write.
    pub validators: Vec<Arc<dyn DocumentValidator>>,
    /// Tells which files are too fresh for their modification time to be trusted.
    pub clock: SharedClock,
}

/// The documents of all scopes. Cheap to clone.
#[derive(Clone)]
pub struct Documents {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    folder: Option<Arc<folder::Folder>>,
    bundled: Bundled,
    validators: Vec<Arc<dyn DocumentValidator>>,
    changes: Arc<change::Changes>,
}

impl Documents {
    /// Reads the folder, and starts the tasks that watch it and pass on the store's changes.
    ///
    /// # Errors
    /// [`FolderError`] when the folder is not there, or cannot be read.
    pub async fn open(parts: DocumentParts, lifecycle: &Lifecycle) -> Result<Self, FolderError> {
        let changes = Arc::new(change::Changes::new());
        let forwarded = change::forward(parts.store.changes(), changes.clone(), lifecycle.soft().clone());
        lifecycle.spawn("store changes", forwarded);
        let folder = match parts.folder {
            None => None,
            Some(root) => {
                let folder = Arc::new(folder::Folder::open(root, parts.clock).await?);
                let watch = folder::watch(folder.clone(), changes.clone(), lifecycle.soft().clone());
                lifecycle.spawn("documents folder", watch);
                Some(folder)
            }
        };
        let DocumentParts { store, bundled, validators, .. } = parts;
        Ok(Self { inner: Arc::new(Inner { store, folder, bundled, validators, changes }) })
    }

    /// Changes from now on, in every scope. A subscriber that lags has missed some and reads anew.
    pub fn subscribe(&self) -> broadcast::Receiver<DocumentChange> {
        self.inner.changes.subscribe()
    }

    /// Counts up in memory with every change of a tool document of a scope or its tenant's layer that this hub knows of; a
    /// write through [`Self::put`] has counted when it returns. Equal generations: nothing happened here in between.
    pub fn tool_generation(&self, scope: &Scope) -> Generation {
        self.inner.changes.tool_generation(scope)
    }

    /// The scopes that have a folder.
    pub fn folder_scopes(&self) -> Vec<Scope> {
        self.inner.folder.as_ref().map(|folder| folder.snapshot().scopes().cloned().collect()).unwrap_or_default()
    }

    /// What was found in the folder and left out.
    pub fn folder_problems(&self) -> Vec<FolderProblem> {
        self.inner.folder.as_ref().map(|folder| folder.snapshot().problems().to_vec()).unwrap_or_default()
    }

    /// What was found in the folder of a scope, and in that of its tenant, and left out. `/` is all of the
    /// layer.
    pub fn folder_problems_of(&self, scope: &Scope) -> Vec<DocumentError> {
        let Some(folder) = self.folder_snapshot() else { return Vec::new() };
        let of = |level: Level| folder.problems_of(&level.scope, level.folder).collect::<Vec<_>>();
        levels(scope).into_iter().flat_map(of).collect()
    }

    /// Reads the folder now instead of when a change is noticed. Returns once the changes are in force.
    ///
    /// # Errors
    /// [`FolderError`] when the folder cannot be read; what was read before stays in force.
    pub async fn rescan_folder(&self) -> Result<(), FolderError> {
        match &self.inner.folder {
            Some(folder) => folder.rescan(&self.inner.changes).await,
            None => Ok(()),
        }
    }
}

#[async_trait]
impl DocumentReader for Documents {
    async fn read(&self, scope: &Scope, path: &DocumentPath) -> Result<Option<ResolvedDocument>, Failure> {
        self.resolve(scope, path).await.map_err(Failure::from)
    }
}

/// A scope in the chain from a project to its tenant, with the names of its two layers.
struct Level {
    scope: Scope,
    folder: Layer,
    stored: Layer,
}

/// The levels that a scope sees, innermost first: its own, and its tenant's.
fn levels(scope: &Scope) -> Vec<Level> {
    let tenant = Level { scope: scope.tenant_layer(), folder: Layer::TenantFolder, stored: Layer::Tenant };
    if scope.project.is_tenant_layer() {
        return vec![tenant];
    }
    vec![Level { scope: scope.clone(), folder: Layer::ProjectFolder, stored: Layer::Project }, tenant]
}

/// The layer that a write to this project goes to.
pub fn stored_layer(project: &ProjectName) -> Layer {
    if project.is_tenant_layer() { Layer::Tenant } else { Layer::Project }
}

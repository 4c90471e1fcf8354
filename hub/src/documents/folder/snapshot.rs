//! What the folder held when it was last read.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use footbridge_shared::id::TenantName;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::file::Stamp;
use crate::documents::cascade::LayerDocument;
use crate::documents::change::DocumentChange;
use crate::documents::error::Unreadable;
use crate::domain::document::{DocumentPath, Layer};
use crate::domain::scope::Scope;
use crate::yaml::{DocumentError, KeyPath, Position, Problem};

/// Changed files of one scope above which the whole scope counts as changed.
const MAX_SINGLE_CHANGES: usize = 256;

/// Something in the documents folder that was left out, or cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
pub struct FolderProblem {
    /// Where, within the documents folder.
    pub place: String,
    /// What is wrong with it.
    pub reason: String,
}

/// One file.
#[derive(Debug, Clone)]
pub(super) struct FileDocument {
    pub(super) path: DocumentPath,
    pub(super) content: Result<Arc<str>, Unreadable>,
    /// Of the text, for ETags.
    pub(super) digest: Arc<str>,
    pub(super) modified: Option<Timestamp>,
    /// As which the file was read; `None`: too fresh to be recognised by it.
    pub(super) stamp: Option<Stamp>,
}

/// The files of one scope.
#[derive(Debug, Clone, Default)]
pub(super) struct ScopeFiles {
    /// By path.
    pub(super) files: BTreeMap<String, FileDocument>,
    /// Folders that could not be looked into: they may hold any path that starts so.
    pub(super) blind: Vec<(String, Unreadable)>,
    /// The number of the scan in which this last changed.
    pub(super) revision: u64,
}

/// All files of the folder.
#[derive(Debug, Default)]
pub(in crate::documents) struct Snapshot {
    pub(super) scopes: BTreeMap<Scope, ScopeFiles>,
    /// Tenant folders that could not be looked into.
    pub(super) blind_tenants: BTreeMap<TenantName, Unreadable>,
    pub(super) problems: Vec<FolderProblem>,
    /// The folder as it was found: the place itself behind the name, to see when another one takes its place.
    pub(super) root: Option<Stamp>,
    /// Counts scans.
    sequence: u64,
    /// The number of the scan in which a scope that is gone went, or a tenant folder changed.
    gone: BTreeMap<Scope, u64>,
}

impl Snapshot {
    /// An empty folder.
    pub(super) fn of_root(root: Stamp) -> Self {
        Self { root: Some(root), ..Self::default() }
    }

    /// Scopes that have a folder.
    pub(in crate::documents) fn scopes(&self) -> impl Iterator<Item = &Scope> {
        self.scopes.keys()
    }

    pub(in crate::documents) fn problems(&self) -> &[FolderProblem] {
        &self.problems
    }

    /// What was left out of the folder of a scope, which is this layer.
    pub(in crate::documents) fn problems_of(
        &self,
        scope: &Scope,
        layer: Layer,
    ) -> impl Iterator<Item = DocumentError> + use<'_> {
        let (tenant, own) = (scope.tenant.to_string(), scope.to_string());
        self.problems.iter().filter_map(move |FolderProblem { place, reason }| {
            let rel = place.strip_prefix(&own).and_then(|rest| rest.strip_prefix('/'));
            let document = rel.or_else(|| (*place == own || *place == tenant).then_some("/"))?;
            let problem = Problem::new(Position::START, KeyPath::root(), reason.clone());
            Some(problem.in_document(&document, Some(layer)))
        })
    }

    /// Changes whenever the files of a scope do.
    pub(in crate::documents) fn revision(&self, scope: &Scope) -> u64 {
        let present = self.scopes.get(scope).map_or(0, |files| files.revision);
        present
            .max(self.gone.get(scope).copied().unwrap_or(0))
            .max(self.gone.get(&scope.tenant_layer()).copied().unwrap_or(0))
    }

    /// The file at a path, or why nobody knows whether there is one.
    pub(in crate::documents) fn held(&self, scope: &Scope, layer: Layer, path: &DocumentPath) -> Option<LayerDocument> {
        let file = self.scopes.get(scope).and_then(|files| files.files.get(path.as_str()));
        match file {
            Some(file) => Some(file.in_layer(layer)),
            None => self.blind(scope, path).map(|error| LayerDocument::unreadable(layer, error.clone())),
        }
    }

    /// Whether a write to that path would lie under a file.
    pub(in crate::documents) fn holds(&self, scope: &Scope, path: &DocumentPath) -> bool {
        self.scopes.get(scope).is_some_and(|files| files.files.contains_key(path.as_str()))
            || self.blind(scope, path).is_some()
    }

    /// Why nobody knows whether there is a file at a path; `None` when it is known.
    pub(in crate::documents) fn blind(&self, scope: &Scope, path: &DocumentPath) -> Option<&Unreadable> {
        if let Some(error) = self.blind_tenants.get(&scope.tenant) {
            return Some(error);
        }
        let files = self.scopes.get(scope)?;
        if files.files.contains_key(path.as_str()) {
            return None;
        }
        files.blind.iter().find(|(prefix, _)| path.as_str().starts_with(prefix.as_str())).map(|(_, error)| error)
    }

    /// Why nobody knows what else lies under a whole prefix; `None` when it is known.
    pub(in crate::documents) fn blind_under(&self, scope: &Scope, prefix: &str) -> Option<&Unreadable> {
        self.blind_tenants.get(&scope.tenant).or_else(|| {
            let blind = &self.scopes.get(scope)?.blind;
            blind.iter().find(|(part, _)| prefix.starts_with(part.as_str())).map(|(_, error)| error)
        })
    }

    /// The files of a scope under a prefix, by path in byte order.
    pub(in crate::documents) fn under<'a>(
        &'a self,
        scope: &Scope,
        layer: Layer,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a DocumentPath, LayerDocument)> {
        let files = self.scopes.get(scope).map(|files| &files.files);
        files
            .into_iter()
            .flat_map(move |files| files.range::<str, _>((Bound::Included(prefix), Bound::Unbounded)))
            .take_while(move |(path, _)| path.starts_with(prefix))
            .map(move |(_, file)| (&file.path, file.in_layer(layer)))
    }

    /// Numbers this snapshot after the one before it, and says what changed in between.
    pub(super) fn succeed(&mut self, before: &Self) -> Vec<DocumentChange> {
        self.sequence = before.sequence + 1;
        self.gone.clone_from(&before.gone);
        let mut changes = Vec::new();
        if self.blind_tenants != before.blind_tenants {
            let tenants = self.blind_tenants.keys().chain(before.blind_tenants.keys()).cloned();
            for tenant in tenants.collect::<BTreeSet<_>>() {
                let scope = Scope::new(tenant, footbridge_shared::id::ProjectName::tenant_layer());
                self.gone.insert(scope.clone(), self.sequence);
                changes.push(DocumentChange::Scope(scope));
            }
        }
        let nothing = ScopeFiles::default();
        for (scope, files) in &mut self.scopes {
            let known = before.scopes.get(scope);
            let old = known.unwrap_or(&nothing);
            let mut changed = files.changes(old, scope);
            if known.is_none() && changed.is_empty() {
                // An empty folder makes a scope too.
                changed.push(DocumentChange::Scope(scope.clone()));
            }
            files.revision = if changed.is_empty() { old.revision } else { self.sequence };
            changes.extend(changed);
        }
        for (scope, old) in before.scopes.iter().filter(|(scope, _)| !self.scopes.contains_key(scope)) {
            self.gone.insert(scope.clone(), self.sequence);
            let changed = nothing.changes(old, scope);
            changes.extend(changed.is_empty().then(|| DocumentChange::Scope(scope.clone())));
            changes.extend(changed);
        }
        changes
    }

    /// Logs what is new among the problems.
    pub(super) fn report(&self, before: &Self) {
        let known: BTreeSet<_> = before.problems.iter().collect();
        for FolderProblem { place, reason } in self.problems.iter().filter(|problem| !known.contains(problem)) {
            tracing::warn!(place, reason, "documents folder");
        }
    }
}

impl ScopeFiles {
    fn changes(&self, old: &Self, scope: &Scope) -> Vec<DocumentChange> {
        let paths: BTreeSet<&String> = self.files.keys().chain(old.files.keys()).collect();
        let changed: Vec<&DocumentPath> = paths
            .into_iter()
            .filter_map(|path| match (self.files.get(path), old.files.get(path)) {
                (Some(new), Some(old)) => (new.content != old.content).then_some(&new.path),
                (Some(file), None) | (None, Some(file)) => Some(&file.path),
                (None, None) => None,
            })
            .collect();
        if self.blind != old.blind || changed.len() > MAX_SINGLE_CHANGES {
            return vec![DocumentChange::Scope(scope.clone())];
        }
        changed.into_iter().map(|path| DocumentChange::Document { scope: scope.clone(), path: path.clone() }).collect()
    }
}

impl FileDocument {
    fn in_layer(&self, layer: Layer) -> LayerDocument {
        match &self.content {
            Ok(text) => LayerDocument::digested(layer, text.clone(), &self.digest, self.modified),
            Err(error) => LayerDocument::unreadable(layer, error.clone()),
        }
    }
}

//! Looking through the folder.

use std::fs::{self, FileType, Metadata};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use footbridge_shared::id::{ProjectName, TenantName};
use jiff::Timestamp;

use super::file::{self, LEADS_OUT, NO_FILE, Stamp};
use super::snapshot::{FileDocument, FolderProblem, ScopeFiles, Snapshot};
use crate::documents::cascade::digest;
use crate::documents::error::Unreadable;
use crate::domain::document::DocumentPath;
use crate::domain::scope::Scope;
use crate::yaml::shown;

/// Most files and folders of one scope.
const MAX_ENTRIES: usize = 50_000;
/// Most text of one scope kept in memory, bytes.
const MAX_SCOPE_BYTES: usize = 256 * 1024 * 1024;

const LINKED_FOLDER: Unreadable = Unreadable::path("a link is not followed to a folder");
const TOO_MANY: Unreadable = Unreadable::file("the scope's folder holds more than 50000 entries");
const TOO_MUCH: Unreadable = Unreadable::file("the scope's folder holds more than 256 MiB");
const DANGLING: Unreadable = Unreadable::path("it is a link that leads nowhere");

/// Why the folder cannot be used. Does not name it: whoever chose it knows which one it is.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It is not there.
    #[error("the documents folder does not exist; make it, or leave --documents out")]
    Missing,
    /// It is something else.
    #[error("what is given as the documents folder is no folder")]
    NotAFolder,
    /// It cannot be read.
    #[error("the documents folder cannot be read: {0}")]
    Unreadable(#[source] std::io::Error),
}

/// Names that editors and systems leave beside documents, and everything hidden.
pub(in crate::documents) fn is_editor_file(name: &str) -> bool {
    name.starts_with('.')
        || name.ends_with('~')
        || (name.len() > 1 && name.starts_with('#') && name.ends_with('#'))
        || [".swp", ".swo", ".swx", ".tmp", ".part"].iter().any(|end| name.ends_with(end))
}

/// Reads the folder. Files that look as they did in `before` are not read again.
pub(super) fn scan(root: &Path, before: &Snapshot, now: Timestamp) -> Result<Snapshot, FolderError> {
    let root = root.canonicalize().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => FolderError::Missing,
        _ => FolderError::Unreadable(error),
    })?;
    let meta = fs::metadata(&root).map_err(FolderError::Unreadable)?;
    if !meta.is_dir() {
        return Err(FolderError::NotAFolder);
    }
    let mut found = Snapshot::of_root(Stamp::of(&meta));
    for child in children(&root).map_err(FolderError::Unreadable)? {
        let place = child.name.clone();
        match TenantName::parse(&child.name) {
            // Also what is no folder: where a tenant's should be, nothing of that tenant can be read.
            Ok(tenant) => tenant_folder(&mut found, tenant, &child, before, now),
            Err(error) => found.problem(place, error.to_string()),
        }
    }
    found.problems.sort();
    Ok(found)
}

fn tenant_folder(found: &mut Snapshot, tenant: TenantName, folder: &Child, before: &Snapshot, now: Timestamp) {
    let projects = folder.look_into();
    let projects = match projects {
        Ok(projects) => projects,
        Err(error) => {
            found.problem(folder.name.clone(), error.to_string());
            found.blind_tenants.insert(tenant, error);
            return;
        }
    };
    for child in projects {
        let place = format!("{tenant}/{}", child.name);
        match ProjectName::parse(&child.name) {
            // Likewise.
            Ok(project) => {
                let scope = Scope::new(tenant.clone(), project);
                let mut walk = Walk { root: &child.path, before: before.scopes.get(&scope), now, ..Walk::new(&place) };
                walk.folder(&child, "");
                found.problems.append(&mut walk.problems);
                found.scopes.insert(scope, walk.found);
            }
            Err(error) => found.problem(place, error.to_string()),
        }
    }
}

impl Snapshot {
    fn problem(&mut self, place: String, reason: impl Into<String>) {
        self.problems.push(FolderProblem { place: shown(&place), reason: reason.into() });
    }
}

/// Whether a folder has the name of a document that says how the hub works. It then hides what lies below, as any other thing
/// would that is no file.
fn stands_for_a_document(path: &DocumentPath) -> bool {
    let name = path.as_str().rsplit('/').next().unwrap_or_default();
    path.is_config() && [".yaml", ".js"].iter().any(|end| name.ends_with(end))
}

/// Looking through one scope's folder.
struct Walk<'a> {
    root: &'a Path,
    place: &'a str,
    before: Option<&'a ScopeFiles>,
    now: Timestamp,
    found: ScopeFiles,
    problems: Vec<FolderProblem>,
    entries: usize,
    bytes: usize,
    waiting: Vec<(Child, String)>,
}

impl<'a> Walk<'a> {
    fn new(place: &'a str) -> Self {
        Self {
            root: Path::new(""),
            place,
            before: None,
            now: Timestamp::UNIX_EPOCH,
            found: ScopeFiles::default(),
            problems: Vec::new(),
            entries: 0,
            bytes: 0,
            waiting: Vec::new(),
        }
    }

    /// Everything in a folder and below, without recursion. `prefix` is empty or ends with `/`.
    fn folder(&mut self, folder: &Child, prefix: &str) {
        self.look_into(folder, prefix);
        while let Some((folder, prefix)) = self.waiting.pop() {
            self.look_into(&folder, &prefix);
        }
    }

    fn look_into(&mut self, folder: &Child, prefix: &str) {
        let children = match folder.look_into() {
            Ok(children) => children,
            Err(error) => return self.blind(prefix, error),
        };
        for child in children {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                self.waiting.clear();
                return self.blind("", TOO_MANY);
            }
            let rel = format!("{prefix}{}", child.name);
            match DocumentPath::parse(&rel) {
                _ if !child.utf8 => self.problem(&rel, "its name is not UTF-8"),
                Err(error) => self.problem(&rel, error.reason),
                Ok(path) if child.is_folder() => {
                    if stands_for_a_document(&path) {
                        self.file(&child, path);
                    }
                    self.waiting.push((child, format!("{rel}/")));
                }
                Ok(path) => self.file(&child, path),
            }
        }
    }

    fn file(&mut self, child: &Child, path: DocumentPath) {
        let document = match self.place_of(child) {
            Ok((place, meta)) => self.read(&place, &meta, path),
            Err(error) => {
                // What it does not lead to may well be a folder.
                if error == LINKED_FOLDER || error == DANGLING {
                    self.found.blind.push((format!("{path}/"), error.clone()));
                }
                Self::unreadable(path, error)
            }
        };
        if let Err(error) = &document.content {
            self.problem(document.path.as_str(), &error.to_string());
        }
        self.found.files.insert(document.path.as_str().to_owned(), document);
    }

    /// Where a file or link really is: within the scope's folder, and a regular file.
    fn place_of(&self, child: &Child) -> Result<(PathBuf, Metadata), Unreadable> {
        let link = child.kind.is_symlink();
        let place = if link { child.path.canonicalize().map_err(|_| DANGLING)? } else { child.path.clone() };
        let meta = place.symlink_metadata().map_err(|error| file::reason(&error))?;
        match meta.file_type() {
            kind if kind.is_dir() && link => Err(LINKED_FOLDER),
            _ if !place.starts_with(self.root) => Err(LEADS_OUT),
            kind if kind.is_file() => Ok((place, meta)),
            _ => Err(NO_FILE),
        }
    }

    fn read(&mut self, place: &Path, meta: &Metadata, path: DocumentPath) -> FileDocument {
        let known = self.before.and_then(|before| before.files.get(path.as_str()));
        let document = match known {
            Some(known) if known.stamp == Some(Stamp::of(meta)) => known.clone(),
            _ => self.read_anew(place, path),
        };
        self.bytes += document.content.as_ref().map_or(0, |text| text.len());
        if self.bytes > MAX_SCOPE_BYTES {
            return Self::unreadable(document.path, TOO_MUCH);
        }
        document
    }

    fn read_anew(&self, place: &Path, path: DocumentPath) -> FileDocument {
        match file::read(place) {
            Ok((text, meta)) => {
                let stamp = Stamp::of(&meta);
                FileDocument {
                    path,
                    digest: digest(&text).into(),
                    content: Ok(text.into()),
                    modified: file::modified(&meta),
                    stamp: stamp.is_settled(self.now).then_some(stamp),
                }
            }
            Err(error) => Self::unreadable(path, error),
        }
    }

    fn unreadable(path: DocumentPath, error: Unreadable) -> FileDocument {
        FileDocument { path, content: Err(error), digest: Arc::default(), modified: None, stamp: None }
    }

    fn blind(&mut self, prefix: &str, error: Unreadable) {
        self.problem(prefix.trim_end_matches('/'), &error.to_string());
        self.found.blind.push((prefix.to_owned(), error));
    }

    fn problem(&mut self, rel: &str, reason: &str) {
        let place = if rel.is_empty() { self.place.to_owned() } else { format!("{}/{}", self.place, shown(rel)) };
        self.problems.push(FolderProblem { place, reason: reason.to_owned() });
    }
}

/// An entry of a folder.
struct Child {
    /// Its name; with U+FFFD for what is no UTF-8.
    name: String,
    utf8: bool,
    path: PathBuf,
    kind: FileType,
}

impl Child {
    fn is_folder(&self) -> bool {
        self.kind.is_dir()
    }

    /// What stands in it. A link is not looked into, wherever it leads.
    fn look_into(&self) -> Result<Vec<Child>, Unreadable> {
        if self.kind.is_symlink() {
            return Err(LINKED_FOLDER);
        }
        // It may have been swapped for a link since it was listed.
        if !self.path.canonicalize().is_ok_and(|place| place == self.path) {
            return Err(LINKED_FOLDER);
        }
        children(&self.path).map_err(|error| file::reason(&error))
    }
}

/// The entries of a folder by name, without hidden and editor files.
fn children(folder: &Path) -> std::io::Result<Vec<Child>> {
    let mut children: Vec<Child> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let utf8 = name.to_str().is_some();
        let name = name.to_string_lossy().into_owned();
        if !is_editor_file(&name) {
            children.push(Child { name, utf8, path: entry.path(), kind: entry.file_type()? });
        }
    }
    children.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(children)
}

//! The documents that are compiled into the hub: the folder `defaults/` of the repository.

use std::collections::BTreeMap;
use std::sync::Arc;

use include_dir::{Dir, include_dir};

use super::cascade::{LayerDocument, digest};
use super::folder::is_editor_file;
use crate::domain::document::{DocumentPath, Layer, PathError};

static DEFAULTS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../defaults");

/// The lowest layer: the same in every scope, and never written to.
#[derive(Debug, Clone, Default)]
pub struct Bundled {
    documents: Arc<BTreeMap<DocumentPath, LayerDocument>>,
}

impl Bundled {
    /// What is compiled in. A file that is no UTF-8 or whose name is no document path is left out; a test sees to it that
    /// there is none.
    pub fn compiled() -> Self {
        Self::of(
            files(&DEFAULTS)
                .filter_map(|(path, bytes)| Some((DocumentPath::parse(path).ok()?, std::str::from_utf8(bytes).ok()?))),
        )
    }

    /// Documents made up by a test or an embedding program.
    ///
    /// # Errors
    /// The first path that is none.
    pub fn from_texts<'a>(texts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, PathError> {
        let texts: Result<Vec<_>, _> =
            texts.into_iter().map(|(path, text)| Ok((DocumentPath::parse(path)?, text))).collect();
        Ok(Self::of(texts?))
    }

    fn of<'a>(texts: impl IntoIterator<Item = (DocumentPath, &'a str)>) -> Self {
        let documents = texts
            .into_iter()
            .map(|(path, text)| (path, LayerDocument::digested(Layer::Bundled, text.into(), &digest(text), None)))
            .collect();
        Self { documents: Arc::new(documents) }
    }

    /// One document.
    pub(super) fn get(&self, path: &DocumentPath) -> Option<&LayerDocument> {
        self.documents.get(path)
    }

    /// All documents under a prefix, by path in byte order.
    pub(super) fn under<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a DocumentPath, &'a LayerDocument)> {
        self.documents.iter().filter(move |(path, _)| path.as_str().starts_with(prefix))
    }
}

fn files(dir: &'static Dir<'static>) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    let mut open = vec![dir];
    let mut found = Vec::new();
    while let Some(dir) = open.pop() {
        open.extend(dir.dirs());
        found.extend(dir.files().filter_map(|file| Some((file.path().to_str()?, file.contents()))));
    }
    found.into_iter().filter(|(path, _)| !path.split('/').any(is_editor_file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bundled_file_is_a_document() {
        for (path, bytes) in files(&DEFAULTS) {
            assert!(DocumentPath::parse(path).is_ok(), "{path}");
            assert!(std::str::from_utf8(bytes).is_ok(), "{path}");
        }
    }
}

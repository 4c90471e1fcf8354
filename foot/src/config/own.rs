//! Where a foot keeps what is its own, by the user's folders for such things.

use std::path::PathBuf;

use super::Environment;

/// Our folder within the user's state, configuration and data folders.
const OWN_FOLDER: &str = "footbridge";

/// Our own folders of this user.
pub(super) struct Own {
    pub(super) state: Option<PathBuf>,
    data: Option<PathBuf>,
    configuration: Option<PathBuf>,
    /// The settings file.
    pub(super) settings: Option<PathBuf>,
}

impl Own {
    pub(super) fn new(environment: &Environment) -> Self {
        let folder = |name, in_home| environment.folder(name, in_home).map(|folder| folder.join(OWN_FOLDER));
        let configuration = folder("XDG_CONFIG_HOME", ".config");
        Self {
            state: folder("XDG_STATE_HOME", ".local/state"),
            data: folder("XDG_DATA_HOME", ".local/share"),
            settings: configuration.as_ref().map(|folder| folder.join("foot.yaml")),
            configuration,
        }
    }

    /// All of them: what lies there is nobody else's.
    pub(super) fn folders(self) -> impl Iterator<Item = PathBuf> {
        [self.state, self.data, self.configuration].into_iter().flatten()
    }
}

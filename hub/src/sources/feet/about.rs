//! What others may know of a foot: where it is, for whom it works, and what it says of itself.

use footbridge_shared::id::Subject;
use footbridge_shared::message::{FootInfo, Share};
use footbridge_shared::text::clean_and_cut;

use super::foot::{Foot, Link};
use crate::domain::feet::{FootDetails, FootState};

/// Longest name of a machine, version and the like that a foot may show, in characters.
const MAX_INFO_CHARS: usize = 256;
/// Longest folder that a foot may show, in characters.
const MAX_FOLDER_CHARS: usize = 1024;

impl Foot {
    /// Whether the foot works for `subject`.
    pub(super) fn admits(&self, subject: &Subject) -> bool {
        self.state.lock().share.admits(&self.owner, subject)
    }

    /// Whether it works for anybody but its owner.
    pub(super) fn is_shared(&self) -> bool {
        self.state.lock().share != Share::Owner
    }

    /// Where it is.
    pub(super) fn place(&self) -> FootState {
        match self.state.lock().link {
            Link::Open => FootState::Connected,
            Link::Away => FootState::Away,
            Link::Gone => FootState::Offline,
        }
    }

    /// What those see of it for whom it works.
    pub(super) fn details(&self) -> FootDetails {
        let state = self.state.lock();
        let share = match &state.share {
            Share::Owner => "owner",
            Share::Project => "project",
            Share::Subjects(_) => "subjects",
        };
        let listed = state.link == Link::Open;
        FootDetails {
            share: share.to_owned(),
            version: state.info.version.clone(),
            os: state.info.os.clone(),
            arch: state.info.arch.clone(),
            hostname: state.info.hostname.clone(),
            cwd: state.info.cwd.clone(),
            tools: state.tools.keys().filter(|_| listed).map(ToString::to_string).collect(),
            servers: state.servers.values().filter(|_| listed).map(|server| server.summary()).collect(),
            connected_at: Some(state.connected_at),
        }
    }
}

/// What a foot says of itself, as others may see it.
pub(super) fn shown(info: FootInfo) -> FootInfo {
    let short = |text: &str| clean_and_cut(text, MAX_INFO_CHARS);
    FootInfo {
        version: short(&info.version),
        os: short(&info.os),
        arch: short(&info.arch),
        hostname: short(&info.hostname),
        cwd: info.cwd.map(|folder| clean_and_cut(&folder, MAX_FOLDER_CHARS)),
        ..info
    }
}

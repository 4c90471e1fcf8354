//! Takes up changes of `foot.yaml`, and of the remembered answers, while the foot runs.
//!
//! The files are looked at each half a second: editors write it in many ways, most of them put another file in its place, and
//! file systems of networks and containers tell nobody. What cannot be understood changes nothing.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::config::FootConfig;
use crate::error::FootError;
use crate::offer::{self, Offer};
use crate::servers::Servers;
use crate::tools::ToolSet;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(500);

/// Where settings come from, to read them once more.
pub(crate) struct Source {
    /// The settings file, which need not be there.
    pub(crate) file: PathBuf,
    /// Puts all layers on top of each other, as at the start. Blocks.
    pub(crate) read: Arc<dyn Fn() -> Result<FootConfig, FootError> + Send + Sync>,
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

async fn stamp(file: &Path) -> Option<Stamp> {
    let found = tokio::fs::metadata(file).await.ok()?;
    Some(Stamp {
        device: found.dev(),
        inode: found.ino(),
        bytes: found.size(),
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
    })
}

/// Follows the file and puts changes into force. Never ends by itself; to lose this future is to stop.
pub(crate) async fn follow(
    source: Source,
    mut config: FootConfig,
    offer: &Offer,
    tools: &Arc<ToolSet>,
    servers: &Arc<Servers>,
) {
    // What was read before the first look counts as not seen: to read it twice does no harm.
    let mut in_force: Option<[Option<Stamp>; 2]> = None;
    let mut last = None;
    let mut looks = tokio::time::interval(INTERVAL);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut answers = None;
    loop {
        looks.tick().await;
        answers = take_up_answers(offer, answers).await;
        let more = match &config.mcp_json {
            Some(file) => stamp(file).await,
            None => None,
        };
        let now = [stamp(&source.file).await, more];
        // A file that is being written is left alone until it stays as it is.
        let stays = last.replace(now) == Some(now);
        if !stays || in_force == Some(now) {
            continue;
        }
        let first = in_force.replace(now).is_none();
        let (read, before, offer) = (source.read.clone(), config.clone(), offer.clone());
        let (tools, servers) = (tools.clone(), servers.clone());
        // Settings and roots may lie in a file system that takes its time, and calls go on meanwhile.
        let taken = tokio::task::spawn_blocking(move || {
            let next = read()?;
            if first && same(&before, &next) {
                Ok(None)
            } else {
                take_up(&before, next, &offer, (&tools, &servers)).map(Some)
            }
        });
        let refused = |error: &dyn std::fmt::Display| {
            tracing::warn!(%error, "the settings changed and cannot be used; those before stay in force");
        };
        match taken.await {
            Ok(Ok(next)) => config = next.unwrap_or(config),
            Ok(Err(error)) => refused(&error),
            Err(error) => refused(&error),
        }
    }
}

/// `foot permissions forget` takes back an answer in a process of its own. The file is only ever exchanged whole.
async fn take_up_answers(offer: &Offer, last: Option<Stamp>) -> Option<Stamp> {
    let answers = offer.answers().clone();
    let now = stamp(answers.path()?).await;
    if now != last {
        match tokio::task::spawn_blocking(move || answers.refresh()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the answers that were known stay in force"),
            Err(error) => tracing::warn!(%error, "the answers that were known stay in force"),
        }
    }
    now
}

/// Whether nothing changed that could be taken up.
fn same(before: &FootConfig, after: &FootConfig) -> bool {
    let shown =
        |config: &FootConfig| format!("{:?}{:?}{:?}{:?}", config.roots, config.deny, config.permitted, config.exec);
    shown(before) == shown(after)
        && before.servers == after.servers
        && before.left_out == after.left_out
        && before.mcp_json == after.mcp_json
}

/// Puts new settings into force, but for those that a foot is born with. Calls that run go on as they were admitted.
/// Blocks.
fn take_up(
    before: &FootConfig,
    mut next: FootConfig,
    offer: &Offer,
    (tools, servers): (&ToolSet, &Servers),
) -> Result<FootConfig, FootError> {
    for key in born_with(before, &next) {
        tracing::warn!(key, "a changed setting takes effect at the next start");
    }
    // A token that is to be used from the next start on is kept to itself from now on.
    if let crate::config::TokenSource::File(path) = &next.token {
        next.deny.push(path.clone());
    }
    // The hub that is served stays the one that it was.
    crate::config::leave_out_own_hub(&before.hub, &mut next.servers, &mut next.left_out);
    let next = FootConfig {
        exec: next.exec,
        roots: next.roots,
        deny: next.deny,
        homes: next.homes,
        permitted: next.permitted,
        servers: next.servers,
        left_out: next.left_out,
        mcp_json: next.mcp_json,
        ..before.clone()
    };
    let permissions = offer.permissions(&next)?;
    offer::tell(tools.replace(offer.tools(&next, &permissions), &permissions));
    if next.left_out != before.left_out {
        crate::servers::tell(&next.left_out);
    }
    servers.apply(&next.servers, &offer::orders(&next.exec, &permissions), &permissions);
    let (write, exec) = (next.permitted.defaults.write, next.permitted.defaults.exec);
    tracing::info!(%write, %exec, rules = next.permitted.rules.count(), "changed settings are in force");
    Ok(next)
}

fn born_with(before: &FootConfig, next: &FootConfig) -> Vec<&'static str> {
    [
        ("hub", before.hub.to_string() != next.hub.to_string()),
        ("tokenFile", before.token != next.token),
        ("tenant", before.tenant != next.tenant),
        ("project", before.project != next.project),
        ("name", before.name != next.name),
        ("share", before.share != next.share),
        ("ca", before.ca != next.ca),
        ("maxConcurrent", before.max_concurrent != next.max_concurrent),
    ]
    .into_iter()
    .filter_map(|(key, changed)| changed.then_some(key))
    .collect()
}

#[cfg(test)]
mod tests;

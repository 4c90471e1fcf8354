//! Somebody who looks at a foot all the while, and notes each moment that is not as it should be.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::Result;
use crate::api::Api;

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(3);

/// What was seen.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Looks in all.
    pub looks: usize,
    /// Times without the tool, with what stood in its place.
    pub gaps: Vec<Gap>,
    /// Moments with more than one foot of the name.
    pub doubles: usize,
}

/// A time without the tool.
#[derive(Debug, Clone)]
pub struct Gap {
    /// How long.
    pub lasted: Duration,
    /// The state of the foot when it began.
    pub state: String,
}

/// A running watch.
#[derive(Debug)]
pub struct Watcher {
    stop: watch::Sender<bool>,
    watching: JoinSet<Result<Seen>>,
}

impl Watcher {
    /// Watches a foot by its owner's eyes, and whether its tool `tool` (a qualified name) is listed.
    pub fn start(api: Api, foot: &str, tool: &str) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut watching = JoinSet::new();
        watching.spawn(watch(api, foot.to_owned(), tool.to_owned(), stopped));
        Self { stop, watching }
    }

    /// Stops, and tells.
    ///
    /// # Errors
    /// When the hub did not answer some time.
    pub async fn seen(mut self) -> Result<Seen> {
        self.stop.send_replace(true);
        self.watching.join_next().await.ok_or("nobody watched")??
    }
}

async fn watch(api: Api, foot: String, tool: String, stopped: watch::Receiver<bool>) -> Result<Seen> {
    let mut seen = Seen::default();
    let mut gap: Option<(Instant, String)> = None;
    while !*stopped.borrow() {
        let listed = api.get(&format!("tools/{tool}")).await?.status.is_success();
        let feet = api.get("feet").await?.ok()?.json();
        let own: Vec<&Value> =
            feet["feet"].as_array().into_iter().flatten().filter(|other| other["name"] == foot.as_str()).collect();
        seen.looks += 1;
        seen.doubles += usize::from(own.len() > 1);
        let state = own.first().and_then(|foot| foot["state"].as_str()).unwrap_or("nowhere").to_owned();
        gap = match (gap, listed) {
            (Some((since, state)), true) => {
                seen.gaps.push(Gap { lasted: since.elapsed(), state });
                None
            }
            (None, false) => Some((Instant::now(), state)),
            (gap, _) => gap,
        };
        tokio::time::sleep(PAUSE).await;
    }
    if let Some((since, state)) = gap {
        seen.gaps.push(Gap { lasted: since.elapsed(), state });
    }
    Ok(seen)
}

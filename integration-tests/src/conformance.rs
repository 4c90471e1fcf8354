//! The MCP conformance suite, run at the fixture directly and on every way through Footbridge: what passes directly has to
//! pass everywhere. Besides, its scenarios for clients, run at the hub's own client.

mod harness;
mod known;
mod outcome;
mod player;
mod report;
mod suite;
mod ways;

use futures::future::try_join_all;

use crate::Result;
use outcome::Outcomes;
use suite::Suite;

pub use player::{Script, play};
pub use report::Report;
pub use ways::Way;

/// A revision of the protocol whose requirements are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revision {
    /// With sessions.
    R2025_11_25,
    /// Without.
    R2026_07_28,
}

impl Revision {
    /// All.
    pub const ALL: [Self; 2] = [Self::R2025_11_25, Self::R2026_07_28];

    /// As the suite names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::R2025_11_25 => "2025-11-25",
            Self::R2026_07_28 => "2026-07-28",
        }
    }
}

/// What the suite says of every way in `ways`, for both revisions. All ways run at once, each with a fixture of its own.
///
/// # Errors
/// When the suite is not installed, or a way cannot be set up.
pub async fn servers(ways: &[Way]) -> Result<Report> {
    let suite = Suite::installed()?;
    let columns = try_join_all(ways.iter().map(|way| column(&suite, *way))).await?;
    let mut report = Report::default();
    for (place, revision) in Revision::ALL.into_iter().enumerate() {
        let of_revision = ways.iter().zip(&columns).map(|(way, column)| (*way, &column[place]));
        report.compare(revision, &of_revision.collect::<Vec<_>>());
    }
    Ok(report)
}

/// What the suite says of the hub's client, for both revisions.
///
/// # Errors
/// When the suite is not installed or says nothing.
pub async fn client() -> Result<Report> {
    let suite = Suite::installed()?;
    let mut report = Report::default();
    for revision in Revision::ALL {
        report.client(revision, &suite.client(revision).await?);
    }
    Ok(report)
}

/// The outcomes of one way, a revision each.
async fn column(suite: &Suite, way: Way) -> Result<Vec<Outcomes>> {
    let target = way.set_up().await.map_err(|error| format!("{}: {error}", way.title()))?;
    let mut column = Vec::new();
    for revision in Revision::ALL {
        let outcomes = suite.server(&target.url, revision).await;
        column.push(outcomes.map_err(|error| format!("{}, {}: {error}", way.title(), revision.as_str()))?);
    }
    Ok(column)
}

//! The foot: offers a developer machine's tools to a Footbridge hub.
//!
//! It only ever dials out. [`run`] connects, serves calls, and connects again, until it is told to stop or until only a
//! person can help. It runs on Unix: permissions, links and file locks are used as they are there.

mod calls;
mod cli;
mod clock;
mod config;
mod connection;
mod error;
mod exec;
mod failure;
mod frame;
mod identity;
mod journal;
mod line;
mod offer;
mod permissions;
mod policy;
mod random;
mod reload;
mod runner;
mod servers;
mod session;
mod tools;

use std::sync::Arc;

use offer::{Offer, orders};
use permissions::{Asker, Headless};
use reload::Source;
use servers::Servers;
use tokio_util::sync::CancellationToken;
use tools::ToolSet;

pub use cli::cli_main;
pub use config::{ConfigError, FootConfig, HubUrl, HubUrlError, Token, TokenError, TokenSource};
pub use error::{Exit, FootError};
pub use exec::{
    Checked as CheckedCommand, CommandInput, CommandTool, ExecSettings, ExecUnavailable, InputType, KernelSandbox,
    ReachError,
};
pub use identity::IdentityError;
pub use policy::{FloorRule, PolicyError};
pub use runner::Runner;

/// Works as a foot until `shutdown` fires, which ends running calls and says good-bye, or until the hub turns it away
/// for good. Nobody is asked anything: what would have to be is refused.
///
/// # Errors
/// [`FootError`]: the configuration cannot be used, or the hub does not want this foot.
pub async fn run(config: FootConfig, shutdown: CancellationToken) -> Result<Exit, FootError> {
    serve(config, Box::new(Headless), None, shutdown).await
}

/// The same, with somebody to ask, and with settings that may change meanwhile.
async fn serve(
    config: FootConfig,
    asker: Box<dyn Asker>,
    source: Option<Source>,
    shutdown: CancellationToken,
) -> Result<Exit, FootError> {
    // Later a file may be away for a moment, while it is exchanged. At the start that is a mistake somebody can mend.
    config.token.read()?;
    let identity = identity::Identity::open(&config)?;
    if identity.in_use && !config.supersede {
        return Err(IdentityError::InUse(config.name).into());
    }
    if identity.in_use {
        tracing::warn!(name = %config.name, "another process of this foot runs on this machine; it will be superseded");
    }
    let clock = Arc::new(clock::SystemClock);
    let offer = Offer::open(&config, asker, clock.clone())?;
    let permissions = offer.permissions(&config)?;
    let (tools, left_out) = ToolSet::new(offer.tools(&config, &permissions), &permissions);
    offer::tell(left_out);
    let tools = Arc::new(tools);
    let servers = Servers::open(config.ca.as_deref(), (&tools, &permissions), clock.clone())?;
    servers::tell(&config.left_out);
    servers.apply(&config.servers, &orders(&config.exec, &permissions), &permissions);
    let roots: Vec<_> = permissions.policy().roots().iter().map(|root| root.display().to_string()).collect();
    let servers_told: Vec<_> = config.servers.iter().map(|it| format!("{} ({})", it.name, it.permission)).collect();
    let told = servers_told.join(", ");
    tracing::info!(name = %config.name, hub = %config.hub, ?roots, share = ?config.share, servers = told, "foot starts");
    if config.runner == Runner::Real {
        tools::tell_of_confinement();
    }
    let session =
        session::Session::new(config.clone(), identity, (tools.clone(), servers.clone()), clock)?.run(shutdown);
    let follow = async {
        match source {
            Some(source) => reload::follow(source, config, &offer, &tools, &servers).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        ended = session => ended,
        () = follow => Ok(Exit::Stopped),
    }
}

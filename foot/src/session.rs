//! A foot at work: it connects, serves, and connects again, until it is told to stop or to stay away.

mod heartbeat;
mod link;
mod outbox;
mod parts;
mod probe;
mod wire;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use footbridge_shared::id::{InstanceId, SessionId};
use footbridge_shared::limits::RESUME_GRACE;
use footbridge_shared::message::{FootInfo, Hello, InFlight, Resume, ServerInfo, Welcome};
use tokio_util::sync::CancellationToken;

use crate::calls::{Calls, Capacity};
use crate::clock::SharedClock;
use crate::config::FootConfig;
use crate::connection::backoff::Backoff;
use crate::connection::{Dialer, Ended, Socket};
use crate::error::{Exit, FootError};
use crate::identity::Identity;
use crate::journal::Journal;
use crate::random;
use crate::servers::{Infos, Servers};
use crate::tools::{Announcer, ToolSet};
use link::{Left, Link};
use parts::Unfinished;
pub(crate) use probe::{Probe, probe};

/// Bytes of `hello` that the calls in flight may take. Those that do not fit are sent again by the hub and answered from
/// memory.
const IN_FLIGHT_BYTES: usize = 32 * 1024;
/// Bytes of `hello` that local servers may take.
const SERVERS_BYTES: usize = 16 * 1024;

/// A foot and all that outlives a connection.
pub(crate) struct Session {
    config: FootConfig,
    identity: Identity,
    instance: InstanceId,
    tools: Arc<ToolSet>,
    /// The local MCP servers among them.
    servers: Arc<Servers>,
    announcer: Announcer,
    /// Whether the hub may know of any server.
    told_servers: bool,
    calls: Calls,
    /// Messages of the hub that are here in part.
    unfinished: Unfinished,
    clock: SharedClock,
    dialer: Arc<Dialer>,
    /// The folder that it works in.
    cwd: Option<String>,
    /// The session of the last welcome.
    resume: Option<SessionId>,
    /// How long the hub waits for us to resume it.
    grace: Duration,
    /// Since when there is no hub.
    away_since: Option<Duration>,
    backoff: Backoff,
}

impl Session {
    pub(crate) fn new(
        config: FootConfig,
        identity: Identity,
        (tools, servers): (Arc<ToolSet>, Arc<Servers>),
        clock: SharedClock,
    ) -> Result<Self, FootError> {
        let running = usize::try_from(config.max_concurrent).unwrap_or(usize::MAX);
        let capacity = Capacity { running, queued: config.max_queued };
        let instance = new_instance()?;
        let dialer = Arc::new(Dialer::new(&config)?);
        let folder = config.own_file("journal");
        let (journal, before) = Journal::open(folder, &instance, clock.clone());
        let calls = Calls::new(capacity, clock.clone(), journal, before).over(servers.line().clone());
        let cwd = cwd(&config);
        Ok(Self {
            config,
            identity,
            instance,
            tools,
            servers,
            announcer: Announcer::default(),
            told_servers: false,
            calls,
            unfinished: Unfinished::default(),
            clock,
            dialer,
            cwd,
            resume: None,
            grace: RESUME_GRACE,
            away_since: None,
            backoff: Backoff::default(),
        })
    }

    /// Works until it is told to stop, or until only a person can help.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) -> Result<Exit, FootError> {
        loop {
            let ended = match self.connect(&shutdown).await {
                None => break,
                Some(Err(ended)) => ended,
                Some(Ok((socket, welcome))) => {
                    let since = self.clock.boot();
                    self.welcomed(&welcome);
                    self.servers.line().connected(welcome.resumed);
                    let left = Link::new(&mut self, socket, welcome).serve(&shutdown).await;
                    self.servers.disconnected();
                    let now = self.clock.boot();
                    self.away_since = Some(now);
                    self.backoff.lasted(now.saturating_sub(since));
                    match left {
                        Left::Stopped => break,
                        Left::Ended(ended) => ended,
                    }
                }
            };
            let wait = match ended {
                Ended::Final(error) => {
                    self.end_work().await;
                    return Err(error);
                }
                Ended::Superseded => {
                    tracing::warn!("a newer process of this foot took over");
                    self.end_work().await;
                    return Ok(Exit::Superseded);
                }
                Ended::Lost { why, wait } => {
                    let wait = self.backoff.next(wait, random::unit());
                    tracing::warn!(why, retry_ms = wait.as_millis(), "not connected");
                    wait
                }
            };
            if self.while_away(tokio::time::sleep(wait), &shutdown).await.is_none() {
                break;
            }
        }
        self.end_work().await;
        Ok(Exit::Stopped)
    }

    /// `None`: it was told to stop.
    async fn connect(&mut self, shutdown: &CancellationToken) -> Option<Result<(Socket, Welcome), Ended>> {
        let dialer = self.dialer.clone();
        let challenged = match self.while_away(dialer.dial(), shutdown).await? {
            Ok(challenged) => challenged,
            Err(ended) => return Some(Err(ended)),
        };
        let hello = self.hello(&challenged.nonce);
        self.while_away(challenged.hello(hello), shutdown).await
    }

    fn hello(&self, nonce: &str) -> Hello {
        Hello {
            resume: self.resume.clone().map(|session| Resume { session }),
            in_flight: that_fit(self.calls.in_flight()),
            servers: those_that_fit(&self.servers.infos().borrow()),
            ..first_hello(&self.config, self.cwd.clone(), &self.identity, &self.instance, nonce)
        }
    }

    fn welcomed(&mut self, welcome: &Welcome) {
        tracing::info!(
            hub = %self.config.hub, name = %self.config.name, owner = %welcome.owner, resumed = welcome.resumed, "connected"
        );
        if let Some(shared_name) = &welcome.shared_name {
            tracing::info!(%shared_name, "for others this foot has another name");
        }
        if self.resume.replace(welcome.session.clone()).is_some() && !welcome.resumed {
            // Nobody waits any more for what has not started.
            self.calls.drop_waiting();
            self.unfinished.clear();
        }
        self.grace = Duration::from_millis(welcome.limits.resume_grace_ms);
        self.away_since = None;
    }

    /// Does something without a hub; calls go on meanwhile. `None`: it was told to stop.
    async fn while_away<T>(&mut self, work: impl Future<Output = T>, shutdown: &CancellationToken) -> Option<T> {
        let mut work = pin!(work);
        loop {
            let pause = self.calls.next_tick();
            tokio::select! {
                () = shutdown.cancelled() => return None,
                done = &mut work => return Some(done),
                // Answers wait for the next hub where they are kept.
                event = self.calls.next() => drop(self.calls.settle(event)),
                () = tokio::time::sleep(pause) => {
                    drop(self.calls.tick());
                    let now = self.clock.boot();
                    if self.away_since.is_some_and(|since| now.saturating_sub(since) > self.grace) {
                        self.calls.drop_waiting();
                        self.unfinished.clear();
                        self.servers.line().abandon();
                    }
                }
            }
        }
    }

    /// Stops all calls and waits, within their grace, until they have ended and their ends are written down.
    async fn end_work(&mut self) {
        drop(self.calls.stop_all());
        self.servers.line().abandon();
        while !self.calls.is_idle() {
            let pause = self.calls.next_tick();
            tokio::select! {
                event = self.calls.next() => drop(self.calls.settle(event)),
                () = tokio::time::sleep(pause) => drop(self.calls.tick()),
            }
        }
        self.servers.end().await;
        self.calls.flush().await;
    }
}

/// The first root, in full. Looked up once: a file system that hangs later must not hold up the session.
fn cwd(config: &FootConfig) -> Option<String> {
    let root = config.roots.first()?;
    Some(std::fs::canonicalize(root).as_ref().unwrap_or(root).display().to_string())
}

/// What a foot says of itself when it has no past with the hub.
fn first_hello(
    config: &FootConfig,
    cwd: Option<String>,
    identity: &Identity,
    instance: &InstanceId,
    nonce: &str,
) -> Hello {
    Hello {
        proof: identity.prove(nonce),
        foot: FootInfo {
            name: config.name.clone(),
            id: identity.id.clone(),
            instance: instance.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            cwd,
        },
        share: config.share.clone(),
        tenant: config.tenant.clone(),
        project: config.project.clone(),
        resume: None,
        in_flight: Vec::new(),
        servers: Vec::new(),
        max_concurrent: config.max_concurrent,
    }
}

fn new_instance() -> Result<InstanceId, FootError> {
    Ok(InstanceId::parse(&random::id()).map_err(crate::config::ConfigError::from)?)
}

/// As many as `hello` has room for.
fn that_fit(mut calls: Vec<InFlight>) -> Vec<InFlight> {
    const FIELDS_BYTES: usize = 64;
    let mut bytes = 0;
    let fit = calls.iter().take_while(|known| {
        let digest = known.digest.as_ref().map_or(0, String::len);
        bytes += FIELDS_BYTES + known.call.as_str().len() + digest + known.origin.len();
        bytes <= IN_FLIGHT_BYTES
    });
    let count = fit.count();
    calls.truncate(count);
    calls
}

/// The servers, if `hello` has room for all of them: behind it they are told anyway, and some would stand for all.
fn those_that_fit(infos: &Infos) -> Vec<ServerInfo> {
    let bytes: usize = infos.values().map(|info| crate::tools::raw(info).get().len()).sum();
    if bytes <= SERVERS_BYTES { infos.values().cloned().collect() } else { Vec::new() }
}

#[cfg(test)]
mod tests;

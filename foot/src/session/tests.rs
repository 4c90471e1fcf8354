//! Whole sessions against a hub that the test plays, over real sockets.

mod calls;
mod connections;
mod hub;
mod parts;
mod servers;

use std::path::Path;
use std::sync::Arc;

use footbridge_shared::id::{ProjectName, TenantName};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Session;
use crate::clock::SystemClock;
use crate::config::{FootConfig, Token, TokenSource};
use crate::error::{Exit, FootError};
use crate::identity::Identity;
use crate::permissions::{Defaults, Permissions};
use crate::policy::Policy;
use crate::runner::Runner;
use crate::servers::Servers;
use crate::tools::ToolSet;
use hub::Hub;

/// A foot that runs in the test's process.
struct Foot {
    tools: Arc<ToolSet>,
    shutdown: CancellationToken,
    task: JoinSet<Result<Exit, FootError>>,
    dir: tempfile::TempDir,
}

fn config(hub: &Hub, dir: &Path) -> FootConfig {
    let token = TokenSource::Value(Token::parse("fbt_test").unwrap());
    let (tenant, project) = (TenantName::parse("acme").unwrap(), ProjectName::parse("web").unwrap());
    std::fs::create_dir_all(dir.join("Work")).unwrap();
    let roots = vec![dir.join("Work")];
    let config = FootConfig::new(hub.url(), token, tenant, project, roots, dir.join("state")).unwrap();
    FootConfig { runner: Runner::Echo, ..config }
}

impl Foot {
    fn start(hub: &Hub) -> Self {
        Self::start_with(hub, |config| config)
    }

    fn start_with(hub: &Hub, change: impl FnOnce(FootConfig) -> FootConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = change(config(hub, dir.path()));
        let policy = Arc::new(Policy::new(&config.roots, config.floor()).unwrap());
        let permissions = Permissions::new(policy, Defaults::default());
        let tools = Arc::new(ToolSet::new(config.runner.tools(&permissions), &permissions).0);
        let identity = Identity::open(&config).unwrap();
        let launcher = crate::servers::tests::launcher();
        let servers = Servers::launched_by(launcher, (&tools, &permissions), Arc::new(SystemClock));
        servers.apply(&config.servers, &crate::offer::orders(&config.exec, &permissions), &permissions);
        let offered = (tools.clone(), servers);
        let session = Session::new(config, identity, offered, Arc::new(SystemClock)).unwrap();
        let shutdown = CancellationToken::new();
        let mut task = JoinSet::new();
        task.spawn(session.run(shutdown.clone()));
        Self { tools, shutdown, task, dir }
    }

    /// How it ended.
    async fn ended(&mut self) -> Result<Exit, FootError> {
        hub::soon(self.task.join_next()).await.unwrap().unwrap()
    }
}

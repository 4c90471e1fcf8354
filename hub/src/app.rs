//! Puts the parts of the hub together.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use footbridge_launcher::Launcher;
use footbridge_shared::id::{EntryName, Subject};
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::access::{AccessError, Tenants, Tokens};
use crate::clock::{SharedClock, SystemClock};
use crate::config::{HubConfig, McpCommands};
use crate::dispatch::audit::AuditLog;
use crate::dispatch::keyed::KeyedCalls;
use crate::dispatch::{Dispatcher, DispatcherParts, Sources};
use crate::documents::{Bundled, DocumentChange, DocumentParts, Documents, FolderError};
use crate::domain::changes::SurfaceChanges;
use crate::domain::failure::Failure;
use crate::domain::mcp::{McpServer, McpServers};
use crate::domain::principal::Reach;
use crate::domain::scope::Scope;
use crate::domain::tool::ToolSource as _;
use crate::lifecycle::Lifecycle;
use crate::script::{Pool, PoolConfig};
use crate::sources::builtin::{BuiltInError, BuiltInSource, NAMES, Services};
use crate::sources::configured::{
    AllowedPrograms, Checker, ChildSettings, ConfiguredSource, Dependencies, McpServersOfHub, Registry, RegistryError,
};
use crate::sources::feet::{FeetConfig, FeetParts, FeetRegistry, ScopeCheck};
use crate::store::journal::StoredJournal;
use crate::store::lock::{DataLock, LockError};
use crate::store::sqlite::{OpenError, SqliteStore};
use crate::store::{Store, StoreError};
use crate::web::bodies::Bodies;
use crate::web::host::HostRules;
use crate::web::mcp::Mcp;
use crate::web::{AppState, server};

/// Why a hub did not start. Safe to show to its operator.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// Another hub has the data folder, or it cannot be made.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The data file cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The data cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Tokens or tenants cannot be read.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The documents folder cannot be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The address is taken, or not this machine's.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The script workers cannot be started.
    #[error("script workers cannot be started: {0}")]
    Scripts(io::Error),
    /// A tool type of this build is defective.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A built-in tool of this build is defective.
    #[error(transparent)]
    BuiltIn(#[from] BuiltInError),
}

/// A hub that runs in this process.
pub struct Hub {
    address: SocketAddr,
    lifecycle: Lifecycle,
    tokens: Arc<Tokens>,
    tenants: Arc<Tenants>,
    scripts: Arc<Pool>,
    store: Arc<dyn Store>,
    // Let go of last: whoever gets it may open the data.
    _lock: DataLock,
}

impl Hub {
    /// Starts a hub; it listens on return.
    ///
    /// # Errors
    /// The data folder is in use, the address is, or something cannot be opened.
    pub async fn start(config: HubConfig) -> Result<Self, AppError> {
        let lock = DataLock::acquire(&config.data)?;
        // Taken early: an address in use is the commonest trouble, and nothing has been started yet.
        let listening = TcpListener::bind(config.listen).await.and_then(|listener| {
            let address = listener.local_addr()?;
            Ok((listener, address))
        });
        let (listener, address) = listening.map_err(|error| AppError::Listen { address: config.listen, error })?;

        let lifecycle = Lifecycle::new();
        let hub = Self::put_together(config, lock, listener, address, lifecycle.clone()).await;
        if hub.is_err() {
            // What was started must not go on without a hub.
            lifecycle.shut_down(Duration::ZERO).await;
        }
        hub
    }

    async fn put_together(
        config: HubConfig,
        lock: DataLock,
        listener: TcpListener,
        address: SocketAddr,
        lifecycle: Lifecycle,
    ) -> Result<Self, AppError> {
        let clock: SharedClock = Arc::new(SystemClock);
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&config.data, clock.clone())?);
        let tokens = Tokens::load(store.clone(), clock.clone()).await?;
        let tenants = Tenants::load(store.clone(), clock.clone()).await?;
        tokens.follow(&lifecycle);
        tenants.follow(&lifecycle);

        let checker = Checker::new(Registry::new()?);
        let documents = Documents::open(
            DocumentParts {
                store: store.clone(),
                folder: config.documents.clone(),
                bundled: Bundled::compiled(),
                validators: vec![Arc::new(checker.clone())],
                clock: clock.clone(),
            },
            &lifecycle,
        )
        .await?;
        // Followed from before it is read: what comes in between is seen.
        let changes = documents.subscribe();
        tenants.set_folder_scopes(documents.folder_scopes());
        lifecycle.spawn("folder scopes", follow_folder(changes, documents.clone(), tenants.clone(), lifecycle.clone()));

        let surface = SurfaceChanges::default();
        lifecycle.spawn("surface", follow_documents(documents.subscribe(), surface.clone(), lifecycle.clone()));

        let reader = Arc::new(documents.clone());
        let scripts =
            Arc::new(Pool::start(&pool_config(&config)?, reader.clone(), &lifecycle).await.map_err(AppError::Scripts)?);
        let journal = StoredJournal::new(store.clone());
        journal.sweep(&lifecycle);
        let keyed = KeyedCalls::new(Arc::new(journal), clock.clone());
        let feet = FeetRegistry::open(FeetParts {
            config: feet_config(&config),
            store: store.clone(),
            clock: clock.clone(),
            lifecycle: lifecycle.clone(),
            scopes: Arc::new(KnownScopes(tenants.clone())),
            built_ins: NAMES.iter().map(|name| (*name).to_owned()).collect(),
            late: keyed.clone(),
            surfaces: surface.clone(),
        })
        .await?;
        let built_in = BuiltInSource::new(&Services {
            clock: clock.clone(),
            documents: documents.clone(),
            feet: Arc::new(feet.clone()),
            scripts: scripts.clone(),
        })?;
        let servers = McpServersOfHub::new(child_settings(&config), clock.clone(), surface.clone(), &lifecycle);
        let dependencies =
            Dependencies { documents: reader, scripts: scripts.clone(), feet: Arc::new(feet.clone()), servers };
        let configured = ConfiguredSource::new(documents.clone(), checker, dependencies, &lifecycle);
        let dispatcher = Dispatcher::new(DispatcherParts {
            sources: Sources {
                configured: Arc::new(configured.clone()),
                built_in: Arc::new(built_in),
                client: Arc::new(feet.clone()),
            },
            listeners: vec![Arc::new(AuditLog)],
            keyed,
            feet: Arc::new(feet.clone()),
            lifecycle: lifecycle.clone(),
        });
        let mcp_servers: Vec<Arc<dyn McpServers>> = vec![
            Arc::new(configured.clone()),
            Arc::new(ServersOfFeet { feet: feet.clone(), configured: configured.clone() }),
        ];
        let hosts =
            HostRules::new(address, config.public_url.as_deref(), &config.allowed_hosts, &config.allowed_origins);
        let state = AppState {
            mcp: Mcp::new(mcp_servers, surface, &lifecycle),
            bodies: Bodies::default(),
            hosts,
            dispatcher,
            documents,
            configured: configured.clone(),
            feet,
            tokens: tokens.clone(),
            tenants: tenants.clone(),
            store: store.clone(),
            clock,
            lifecycle: lifecycle.clone(),
        };
        server::spawn(listener, Arc::new(state));
        // Behind the listener: a hub with many scopes is up before it has looked into all of them.
        lifecycle.spawn("first look at tools", first_look(configured, tenants.clone(), lifecycle.clone()));
        Ok(Self { address, lifecycle, tokens, tenants, scripts, store, _lock: lock })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its tokens.
    pub fn tokens(&self) -> &Arc<Tokens> {
        &self.tokens
    }

    /// Its tenants.
    pub fn tenants(&self) -> &Arc<Tenants> {
        &self.tenants
    }

    /// Stops it: lets running calls end for so long, then ends them. Asked again while it stops, the shorter time holds.
    pub async fn stop(&self, drain: Duration) {
        let left = self.lifecycle.shut_down(drain).await;
        if left > 0 {
            tracing::warn!(tasks = left, "some tasks did not end in time");
        }
        self.scripts.shutdown().await;
        if let Err(error) = self.store.close().await {
            tracing::error!(%error, "the store did not close in order");
        }
    }
}

fn pool_config(config: &HubConfig) -> Result<PoolConfig, AppError> {
    let program = std::env::current_exe().map_err(AppError::Scripts)?;
    Ok(PoolConfig {
        workers: config.script.workers,
        per_tenant: config.script.per_tenant,
        queue: config.script.queue,
        idle: config.script.idle,
        ..PoolConfig::new(program)
    })
}

fn child_settings(config: &HubConfig) -> ChildSettings {
    ChildSettings {
        launcher: Launcher::of_this_program(),
        allowed: match &config.mcp.commands {
            Some(McpCommands::Any) => AllowedPrograms::Any,
            Some(McpCommands::Listed(programs)) => AllowedPrograms::Listed(programs.clone()),
            None => AllowedPrograms::Listed(Vec::new()),
        },
        variables: config.mcp.variables.clone(),
        environment: config.mcp.environment.clone(),
    }
}

/// Looks into every scope once, so that MCP servers are there before somebody asks for their tools.
async fn first_look(configured: ConfiguredSource, tenants: Arc<Tenants>, lifecycle: Lifecycle) {
    let scopes = tenants
        .list(&Reach::HUB)
        .into_iter()
        .flat_map(|tenant| tenant.projects.into_iter().map(move |project| Scope::new(tenant.name.clone(), project)));
    tokio::select! {
        () = configured.warm(scopes) => {}
        () = lifecycle.soft().cancelled() => {}
    }
}

fn feet_config(config: &HubConfig) -> FeetConfig {
    FeetConfig {
        node: config.node.clone(),
        heartbeat_interval: config.feet.heartbeat,
        resume_grace: config.feet.resume_grace,
        ..FeetConfig::default()
    }
}

/// Folders that come later are scopes too.
async fn follow_folder(
    mut changes: broadcast::Receiver<DocumentChange>,
    documents: Documents,
    tenants: Arc<Tenants>,
    lifecycle: Lifecycle,
) {
    loop {
        tokio::select! {
            () = lifecycle.soft().cancelled() => return,
            change = changes.recv() => match change {
                Ok(_) | Err(RecvError::Lagged(_)) => {
                    tenants.set_folder_scopes(documents.folder_scopes());
                }
                Err(RecvError::Closed) => return,
            },
        }
    }
}

/// Documents say what tools there are.
async fn follow_documents(
    mut changes: broadcast::Receiver<DocumentChange>,
    surface: SurfaceChanges,
    lifecycle: Lifecycle,
) {
    loop {
        tokio::select! {
            () = lifecycle.soft().cancelled() => return,
            change = changes.recv() => match change {
                Ok(_) | Err(RecvError::Lagged(_)) => surface.tell(),
                Err(RecvError::Closed) => return,
            },
        }
    }
}

/// The MCP servers of feet, as far as documents leave room for them.
struct ServersOfFeet {
    feet: FeetRegistry,
    configured: ConfiguredSource,
}

#[async_trait]
impl McpServers for ServersOfFeet {
    async fn servers(&self, scope: &Scope, subject: &Subject) -> Result<Vec<Arc<dyn McpServer>>, Failure> {
        let documents = self.configured.listing(scope, subject).await?;
        // What a layer that cannot be read names, nobody knows.
        let hides = |name: &EntryName| documents.blind.is_some() || documents.entries.contains_key(name);
        Ok(self.feet.servers_below(scope, subject, hides))
    }
}

struct KnownScopes(Arc<Tenants>);

#[async_trait]
impl ScopeCheck for KnownScopes {
    async fn exists(&self, scope: &Scope) -> Result<bool, Failure> {
        Ok(self.0.exists(scope))
    }
}

//! Resources that clients follow. However many do, the server is subscribed to once; and again on the next connection, as long
//! as somebody follows: that keeps the connection open.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use footbridge_mcp::{Fields, Lifecycle, Raw, RequestOptions, RpcError, Subscriptions, changes, codes};
use footbridge_shared::Outcome;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::call::{NoResult, cancelled};
use super::server::{Server, nothing, until};
use super::session::{Live, Session};
use crate::domain::call::CallContext;
use crate::domain::mcp::{McpAudience, McpNote};

pub(super) const SUBSCRIBE: &str = "resources/subscribe";
pub(super) const UNSUBSCRIBE: &str = "resources/unsubscribe";
/// Resources that are followed over one connection at a time.
const MAX_FOLLOWED: usize = 256;
/// How long to wait before a server that cannot be reached is tried again, where nobody knows better.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// The resources that are followed over one place's connections.
#[derive(Default)]
pub(super) struct Followed {
    resources: Mutex<BTreeMap<String, Arc<Resource>>>,
    /// A task looks after them.
    kept: AtomicBool,
    /// One has no followers any more.
    left: Notify,
}

/// One resource.
#[derive(Default)]
struct Resource {
    count: AtomicUsize,
    /// Who changes something about it takes turns: what the server hears last is what holds.
    turn: tokio::sync::Mutex<Followers>,
}

#[derive(Default)]
struct Followers {
    /// MCP sessions, and what ends the watch over each one's end.
    sessions: HashMap<String, Option<DropGuard>>,
    /// Requests of clients without a session.
    others: usize,
    /// Dropped, a server without sessions is not listened to any more.
    listening: Option<DropGuard>,
}

impl Followers {
    fn count(&self) -> usize {
        self.sessions.len() + self.others
    }

    fn remove(&mut self, session: Option<&str>) {
        match session {
            Some(session) => drop(self.sessions.remove(session)),
            None => self.others = self.others.saturating_sub(1),
        }
    }
}

impl Followed {
    /// Whether nobody follows anything.
    pub(super) fn is_empty(&self) -> bool {
        self.resources.lock().values().all(|resource| resource.count.load(Ordering::Acquire) == 0)
    }

    /// A resource. `None`: there are too many.
    fn resource(&self, uri: &str) -> Option<Arc<Resource>> {
        let mut resources = self.resources.lock();
        if let Some(resource) = resources.get(uri) {
            return Some(resource.clone());
        }
        // Those that nobody follows or is about to.
        resources.retain(|_, one| one.count.load(Ordering::Acquire) > 0 || Arc::strong_count(one) > 1);
        (resources.len() < MAX_FOLLOWED).then(|| resources.entry(uri.to_owned()).or_default().clone())
    }

    fn all(&self) -> Vec<(String, Arc<Resource>)> {
        self.resources.lock().iter().map(|(uri, resource)| (uri.clone(), resource.clone())).collect()
    }

    fn counted(&self, resource: &Resource, followers: &Followers) {
        resource.count.store(followers.count(), Ordering::Release);
        if followers.count() == 0 {
            self.left.notify_one();
        }
    }
}

impl Server {
    /// A client begins to follow a resource, or ends.
    pub(super) async fn follow(
        self: &Arc<Self>,
        ctx: &CallContext,
        begins: bool,
        params: Fields,
    ) -> Result<Raw, NoResult> {
        let method = if begins { SUBSCRIBE } else { UNSUBSCRIBE };
        let Some(uri) = params.read::<String>("uri") else { return self.relay(ctx, method, params, None).await };
        let session = self.session_of(ctx).await?;
        let resource = session.followed.resource(&uri).ok_or_else(|| {
            let message = format!("{MAX_FOLLOWED} resources of the server are followed already");
            NoResult::Rpc(RpcError::new(codes::INVALID_PARAMS, message))
        })?;
        let work = async {
            let mut followers = resource.turn.lock().await;
            let client = ctx.client.as_ref();
            let follower = client.and_then(|client| client.session());
            if !begins {
                followers.remove(follower);
                session.followed.counted(&resource, &followers);
                if followers.count() > 0 || followers.listening.take().is_some() {
                    return Ok(nothing());
                }
                // Where there is no connection, nothing is followed over it, nor will be over the next one.
                if session.open_now().is_none() {
                    return Ok(nothing());
                }
                return self.relay(ctx, UNSUBSCRIBE, params, None).await;
            }
            let live = session.live(self, self.capabilities(&session, ctx)).await?;
            let mut answer = nothing();
            if followers.count() == 0 {
                match live.connection.server().version.lifecycle() {
                    Lifecycle::Stateless => followers.listening = Some(self.listen_to(&live, &uri)),
                    Lifecycle::Session => answer = self.relay(ctx, SUBSCRIBE, params, None).await?,
                }
            }
            match follower {
                None => followers.others += 1,
                Some(name) if followers.sessions.contains_key(name) => {}
                Some(name) => {
                    let ended = client.and_then(|client| client.ended());
                    let watch = ended.map(|ended| self.leave_at_end(&session, &uri, name, ended));
                    followers.sessions.insert(name.to_owned(), watch);
                }
            }
            session.followed.counted(&resource, &followers);
            if !session.followed.kept.swap(true, Ordering::AcqRel) {
                let keeping = self.clone().keep_following(session.clone(), live, self.capabilities(&session, ctx));
                self.spawner().spawn("followed resources of an MCP server", keeping);
            }
            Ok(answer)
        };
        tokio::select! {
            answer = work => answer,
            () = ctx.cancel.cancelled() => Err(NoResult::Failure(cancelled(Outcome::Unknown))),
        }
    }

    /// Follows again what is followed whenever the connection is another one, until nothing is. `live` is the one on which it
    /// is followed now.
    async fn keep_following(self: Arc<Self>, session: Arc<Session>, live: Arc<Live>, capabilities: Raw) {
        let mut signs = session.is_at(&live).then(|| live.signs());
        drop(live);
        let keep = async {
            loop {
                let is_lost = async {
                    let Some(signs) = &signs else { return };
                    tokio::select! {
                        () = signs.closed.cancelled() => {}
                        () = signs.let_go.cancelled() => {}
                    }
                };
                tokio::select! {
                    biased;
                    () = session.followed.left.notified() => {
                        if session.followed.is_empty() {
                            session.followed.kept.store(false, Ordering::Release);
                            // Somebody may have come meanwhile, and found this task.
                            if session.followed.is_empty() || session.followed.kept.swap(true, Ordering::AcqRel) {
                                return;
                            }
                        }
                        continue;
                    }
                    () = is_lost => {}
                }
                match session.live(&self, capabilities.clone()).await {
                    Ok(live) => {
                        for (uri, resource) in session.followed.all() {
                            self.follow_again(&session, &live, &uri, &resource).await;
                        }
                        signs = Some(live.signs());
                    }
                    Err(unavailable) => {
                        signs = None;
                        let at = unavailable.next_try.unwrap_or_else(|| Instant::now() + TRY_AGAIN);
                        until(Some(at)).await;
                    }
                }
            }
        };
        tokio::select! {
            () = keep => {}
            () = session.over.cancelled() => {}
            () = self.ended() => {}
        }
    }

    async fn follow_again(self: &Arc<Self>, session: &Session, live: &Arc<Live>, uri: &str, resource: &Resource) {
        let mut followers = resource.turn.lock().await;
        if followers.count() == 0 {
            return;
        }
        if live.connection.server().version.lifecycle() == Lifecycle::Stateless {
            followers.listening = Some(self.listen_to(live, uri));
        } else if let Err(why) = self.tell_server(live, SUBSCRIBE, uri).await {
            return tracing::debug!(pack = %self.name, why, "a resource is not followed any more");
        }
        // It may have changed while nobody looked.
        let audience = session.key.audience().unwrap_or(McpAudience::Everybody);
        self.tell(McpNote::Told { audience, method: changes::RESOURCE.to_owned(), params: of(uri) });
    }

    /// What a subscription is to a server without sessions: a request that lasts as long. It ends when this is dropped.
    fn listen_to(self: &Arc<Self>, live: &Live, uri: &str) -> DropGuard {
        let wanted = Subscriptions { uris: vec![uri.to_owned()], ..Subscriptions::default() };
        let end = CancellationToken::new();
        let (me, connection, until) = (self.clone(), live.connection.clone(), end.clone());
        self.spawner().spawn("followed resource of an MCP server", async move {
            let closed = connection.closed().clone();
            tokio::select! {
                () = closed.cancelled() => {}
                () = me.ended() => {}
                heard = connection.listen(&wanted, until) => if let Err(error) = heard {
                    tracing::debug!(pack = %me.name, %error, "an MCP server does not tell of a resource");
                },
            }
        });
        end.drop_guard()
    }

    /// Has an MCP session follow a resource no longer than it lasts, and no longer than until this is dropped.
    fn leave_at_end(
        self: &Arc<Self>,
        session: &Arc<Session>,
        uri: &str,
        follower: &str,
        ended: CancellationToken,
    ) -> DropGuard {
        let left = CancellationToken::new();
        let guard = left.clone().drop_guard();
        let (me, session, uri, follower) = (self.clone(), session.clone(), uri.to_owned(), follower.to_owned());
        self.spawner().spawn("end of an MCP session that follows", async move {
            tokio::select! {
                () = left.cancelled() => {}
                () = me.ended() => {}
                () = ended.cancelled() => me.leave(&session, &uri, &follower).await,
            }
        });
        guard
    }

    async fn leave(&self, session: &Session, uri: &str, follower: &str) {
        let Some(resource) = session.followed.resource(uri) else { return };
        let mut followers = resource.turn.lock().await;
        followers.remove(Some(follower));
        session.followed.counted(&resource, &followers);
        if followers.count() == 0
            && followers.listening.take().is_none()
            && let Some(live) = session.open_now()
            && let Err(why) = self.tell_server(&live, UNSUBSCRIBE, uri).await
        {
            tracing::debug!(pack = %self.name, why, "a resource that nobody follows is still told of");
        }
    }

    async fn tell_server(&self, live: &Live, method: &str, uri: &str) -> Result<(), String> {
        let asked = live.connection.request(method, Some(of(uri)), RequestOptions::default());
        match tokio::time::timeout(self.config.init_timeout, asked).await {
            Ok(answer) => answer.map(drop).map_err(|error| self.config.redactor.text(&error.to_string()).into_owned()),
            Err(_) => Err("there was no answer in time".to_owned()),
        }
    }
}

fn of(uri: &str) -> Raw {
    let mut params = Fields::new();
    params.set_value("uri", uri);
    params.to_raw()
}

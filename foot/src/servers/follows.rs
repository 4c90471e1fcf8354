//! The resources that are followed on one connection, and by whom. To a server all who share a connection are one.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use footbridge_mcp::{Fields, Lifecycle, Raw, RequestOptions, RpcError, Subscriptions, codes};
use footbridge_shared::id::Subject;
use footbridge_shared::message::Caller;
use tokio_util::sync::CancellationToken;

use super::attached::Attached;
use super::tasks::Tasks;

const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// Resources that are followed on one connection.
const MAX_FOLLOWED: usize = 256;

/// Who follows a resource: one session of a subject, or all that a subject does without.
type Follower = (Subject, Option<String>);

/// What is followed, by address.
#[derive(Default)]
pub(super) struct Follows(Mutex<HashMap<String, Followed>>);

/// One resource.
#[derive(Default)]
struct Followed {
    /// How often by each. A session follows once; those without one are not told from each other.
    by: HashMap<Follower, usize>,
    /// Ends the request by which a server without sessions tells of it; fired when that has ended.
    heard: Option<CancellationToken>,
}

impl Drop for Followed {
    fn drop(&mut self) {
        if let Some(heard) = &self.heard {
            heard.cancel();
        }
    }
}

/// What is to be followed on another connection.
#[derive(Default)]
pub(super) struct Taken(HashMap<String, Followed>);

/// What becomes of a request.
pub(super) enum Following<'a> {
    /// The server is asked. Where it begins a subscription, that stands once it is [kept](Begun::keep).
    Ask(Option<Begun<'a>>),
    /// It is answered here.
    Done(Result<Raw, RpcError>),
}

/// A subscription that the server is asked for. Dropped, it is none.
pub(super) struct Begun<'a> {
    follows: &'a Follows,
    uri: String,
    follower: Option<Follower>,
}

impl Begun<'_> {
    /// The server agreed.
    pub(super) fn keep(mut self) {
        self.follower = None;
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if let Some(follower) = self.follower.take() {
            self.follows.remove(&self.uri, &follower);
        }
    }
}

impl Follows {
    /// Whether nothing is.
    pub(super) fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Takes all out. Nothing more is heard of it on this connection.
    pub(super) fn take(&self) -> Taken {
        Taken(std::mem::take(&mut *self.all()))
    }

    /// `Ok(false)`: this session did before.
    fn add(&self, uri: &str, follower: &Follower) -> Result<bool, RpcError> {
        let mut all = self.all();
        if all.len() >= MAX_FOLLOWED && !all.contains_key(uri) {
            return Err(RpcError::new(codes::INVALID_PARAMS, "as many resources are followed as may be"));
        }
        let count = all.entry(uri.to_owned()).or_default().by.entry(follower.clone()).or_default();
        let again = *count > 0 && follower.1.is_some();
        if !again {
            *count += 1;
        }
        Ok(!again)
    }

    /// Whether nobody follows it now.
    fn remove(&self, uri: &str, follower: &Follower) -> bool {
        let mut all = self.all();
        let Some(followed) = all.get_mut(uri) else { return true };
        if let Some(count) = followed.by.get_mut(follower) {
            *count -= 1;
            if *count == 0 {
                followed.by.remove(follower);
            }
        }
        let nobody = followed.by.is_empty();
        if nobody {
            all.remove(uri);
        }
        nobody
    }

    /// Until when to hear of a resource; `None` where that is heard already, or not followed any more.
    fn begin_to_hear(&self, uri: &str, over: &CancellationToken) -> Option<CancellationToken> {
        let mut all = self.all();
        let heard = &mut all.get_mut(uri)?.heard;
        if heard.as_ref().is_some_and(|heard| !heard.is_cancelled()) {
            return None;
        }
        Some(heard.insert(over.child_token()).clone())
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Followed>> {
        // Nothing panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attached {
    /// What is to be done about a request for a caller, as far as that is a matter of what is followed: the server hears of the
    /// last who ends a subscription alone, and one without sessions is asked in its own way, by a request that lasts as long.
    pub(super) fn follow(&self, method: &str, params: &Raw, caller: &Caller, tasks: &Tasks) -> Following<'_> {
        if ![SUBSCRIBE, UNSUBSCRIBE].contains(&method) {
            return Following::Ask(None);
        }
        let stateless = self.lifecycle() == Lifecycle::Stateless;
        let uri = Fields::of(params).and_then(|params| params.read::<String>("uri"));
        let Some(uri) = uri else {
            // What a server says to that is for it to say, where it knows the method.
            let wrong = || RpcError::new(codes::INVALID_PARAMS, "`uri` is missing");
            return if stateless { Following::Done(Err(wrong())) } else { Following::Ask(None) };
        };
        let done = || Following::Done(Ok(Fields::new().to_raw()));
        let session = caller.client.as_deref().and_then(|client| client.session.clone());
        let follower = (caller.subject.clone(), session);
        if method == UNSUBSCRIBE {
            let nobody = self.follows.remove(&uri, &follower);
            return if nobody && !stateless { Following::Ask(None) } else { done() };
        }
        let is_new = match self.follows.add(&uri, &follower) {
            Ok(is_new) => is_new,
            Err(error) => return Following::Done(Err(error)),
        };
        if stateless {
            self.hear(uri, tasks);
            return done();
        }
        Following::Ask(is_new.then(|| Begun { follows: &self.follows, uri, follower: Some(follower) }))
    }

    /// Follows what was followed on a connection that is over.
    pub(super) fn follow_again(&self, Taken(taken): Taken, tasks: &Tasks) {
        for (uri, mut followed) in taken {
            self.follows.all().entry(uri.clone()).or_default().by.extend(std::mem::take(&mut followed.by));
            if self.lifecycle() == Lifecycle::Stateless {
                self.hear(uri, tasks);
                continue;
            }
            let (connection, cancel) = (self.connection.clone(), self.over().child_token());
            let mut params = Fields::new();
            params.set_value("uri", &uri);
            tasks.run(async move {
                let options = RequestOptions { cancel, ..RequestOptions::default() };
                if let Err(error) = connection.request(SUBSCRIBE, Some(params.to_raw()), options).await {
                    tracing::debug!(%error, "a resource of a local MCP server is followed no more");
                }
            });
        }
    }

    /// Hears of a resource at a server without sessions.
    fn hear(&self, uri: String, tasks: &Tasks) {
        let Some(until) = self.follows.begin_to_hear(&uri, self.over()) else { return };
        let connection = self.connection.clone();
        tasks.run(async move {
            let _ended = until.clone().drop_guard();
            let wanted = Subscriptions { uris: vec![uri], ..Subscriptions::default() };
            if let Err(error) = connection.listen(&wanted, until).await {
                tracing::debug!(%error, "changes of a resource of a local MCP server are not told");
            }
        });
    }
}

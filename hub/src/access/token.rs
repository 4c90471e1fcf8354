//! Tokens: who may come in, as whom, to do what, and where.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::{Mutex, Notify};
use tokio_util::sync::CancellationToken;

pub use self::ledger::TokenInfo;
use self::ledger::{Held, Ledger, StoredToken};
pub use self::request::{ANYBODY, MAX_ACT_AS, MAX_TOKEN_NAME_CHARS, MAX_TOKEN_PROJECTS, NewToken};
pub use self::text::TokenText;
use super::follow::{Follower, follow};
use super::mirror::{Mirror, Recorded as _};
use super::{AccessError, require_admin};
use crate::clock::{SharedClock, random_bytes};
use crate::domain::principal::{Principal, Reach};
use crate::lifecycle::Lifecycle;
use crate::store::{Precondition, Store, StoreError, StoreResult};

mod ledger;
mod request;
#[cfg(test)]
mod tests;
mod text;

/// Longest time until the wall clock is looked at again, so that a jump of it, or a sleep of the machine, ends what has
/// expired meanwhile.
const CLOCK_CHECK: Duration = Duration::from_secs(5);
/// Random bytes in the public id of a token: short enough to type, too many to meet twice.
const ID_BYTES: usize = 8;

/// A token that was just made.
#[derive(Debug)]
pub struct CreatedToken {
    /// Its text. This is the only time that anybody sees it.
    pub text: TokenText,
    /// What can be told of it later.
    pub info: TokenInfo,
}

/// Makes, knows and revokes tokens.
pub struct Tokens {
    store: Arc<dyn Store>,
    clock: SharedClock,
    ledger: ArcSwap<Ledger>,
    /// Whoever holds it reads or writes the store and installs what came of it, so that an older state never takes the
    /// place of a newer one.
    turn: Mutex<()>,
    installed: Notify,
}

impl Tokens {
    /// Reads all tokens. They stay as they were read until [`Self::follow`] is called.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn load(store: Arc<dyn Store>, clock: SharedClock) -> Result<Arc<Self>, AccessError> {
        let tokens = Self { store, clock, ledger: ArcSwap::default(), turn: Mutex::new(()), installed: Notify::new() };
        tokens.refresh().await?;
        Ok(Arc::new(tokens))
    }

    /// From now on keeps up with the store, and ends tokens when they expire.
    pub fn follow(self: &Arc<Self>, lifecycle: &Lifecycle) {
        lifecycle.spawn("tokens", follow(self.clone(), Held::KIND, lifecycle.soft().clone()));
        lifecycle.spawn("token-expiry", self.clone().keep_expiry(lifecycle.soft().clone()));
    }

    /// Whether there is no token at all: nobody can come in.
    pub fn is_empty(&self) -> bool {
        self.ledger.load().tokens.values().next().is_none()
    }

    /// Who a token's text speaks for. `None`: it is unknown, revoked or expired. Looks into memory alone.
    pub fn authenticate(&self, text: &str) -> Option<Arc<Principal>> {
        self.ledger.load().authenticate(text, self.clock.now())
    }

    /// Makes a token that reaches no further than the one that asks. It is in force on return.
    ///
    /// # Errors
    /// When `by` is no admin or does not reach as far, when there can be no such token, and those of the store.
    pub async fn create(&self, request: NewToken, by: &Principal) -> Result<CreatedToken, AccessError> {
        self.issue(request, Some(by)).await
    }

    /// Makes a token that nobody vouches for: for whoever has the data folder, and so has everything.
    ///
    /// # Errors
    /// When there can be no such token, and those of the store.
    pub async fn create_first(&self, request: NewToken) -> Result<CreatedToken, AccessError> {
        self.issue(request, None).await
    }

    /// The tokens within the reach of an admin, also those that have expired; oldest first.
    ///
    /// # Errors
    /// When `by` is no admin.
    pub fn list(&self, by: &Principal) -> Result<Vec<TokenInfo>, AccessError> {
        require_admin(by)?;
        let ledger = self.ledger.load();
        let within = ledger.tokens.values().filter(|held| by.reach.contains(&held.principal.reach));
        let mut infos: Vec<_> = within.map(|held| held.info.clone()).collect();
        infos.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(infos)
    }

    /// Takes a token out of use for good. Whatever lives on it has been told to end on return.
    ///
    /// # Errors
    /// [`AccessError::UnknownToken`] for one that is not there or lies beyond the reach of `by`; when `by` is no admin,
    /// and those of the store.
    pub async fn revoke(&self, id: &str, by: &Principal) -> Result<(), AccessError> {
        let _turn = self.turn.lock().await;
        require_admin(by)?;
        // Read anew: another hub may have made or revoked it a moment ago.
        let Some(record) = self.store.record(Held::KIND, id).await? else {
            self.install(self.ledger.load().tokens.without(id));
            return Err(AccessError::UnknownToken);
        };
        let known = self.ledger.load().tokens.with(record);
        // Nobody can tell how far one reaches that cannot be read; whoever has the whole hub may still be rid of it.
        let within = known.get(id).map_or(by.reach.is_hub(), |held| by.reach.contains(&held.principal.reach));
        self.install(known);
        if !within {
            return Err(AccessError::UnknownToken);
        }
        match self.store.delete_record(Held::KIND, id, Precondition::Any).await {
            Ok(()) | Err(StoreError::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
        self.install(self.ledger.load().tokens.without(id));
        Ok(())
    }

    async fn issue(&self, request: NewToken, by: Option<&Principal>) -> Result<CreatedToken, AccessError> {
        let _turn = self.turn.lock().await;
        if let Some(by) = by {
            request.check(by)?;
        }
        let (created_at, text) = (self.clock.now(), TokenText::generate());
        let NewToken { name, subject, roles, reach, act_as, expires_at } = request.normalize(created_at)?;
        let Reach { tenant, projects } = reach;
        let id = random_bytes::<ID_BYTES>().iter().map(|byte| format!("{byte:02x}")).collect();
        let hash = text.hash();
        let stored = StoredToken { id, name, subject, roles, tenant, projects, act_as, created_at, expires_at, hash };
        let value = serde_json::to_string(&stored).map_err(|error| StoreError::Unavailable(error.into()))?;
        let record = self.store.put_record(Held::KIND, &stored.id, &value, Precondition::Absent).await?;
        self.install(self.ledger.load().tokens.with(record));
        Ok(CreatedToken { text, info: stored.info() })
    }

    /// Puts tokens in force, and ends those that are no longer among them.
    fn install(&self, tokens: Mirror<Held>) {
        let newer = Arc::new(Ledger::new(tokens));
        let older = self.ledger.swap(newer.clone());
        for held in older.tokens.gone_from(&newer.tokens) {
            held.principal.ended.cancel();
        }
        self.installed.notify_one();
    }

    /// One timer for all: it sleeps until the next token expires.
    async fn keep_expiry(self: Arc<Self>, end: CancellationToken) {
        loop {
            let now = self.clock.now();
            let next = self.ledger.load().end_expired(now);
            let wait = next.map_or(CLOCK_CHECK, |next| until(now, next).min(CLOCK_CHECK));
            tokio::select! {
                () = end.cancelled() => return,
                () = self.installed.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}

#[async_trait]
impl Follower for Tokens {
    fn store(&self) -> &dyn Store {
        &*self.store
    }

    async fn refresh(&self) -> StoreResult<()> {
        let _turn = self.turn.lock().await;
        let records = self.store.records(Held::KIND, "").await?;
        self.install(self.ledger.load().tokens.of(records));
        Ok(())
    }
}

/// From one time of day to a later one.
fn until(now: Timestamp, later: Timestamp) -> Duration {
    later.duration_since(now).try_into().unwrap_or_default()
}

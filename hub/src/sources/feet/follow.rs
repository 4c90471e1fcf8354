//! Follows the bindings in the store: another hub may bind and release names, too.

use std::collections::HashMap;
use std::sync::Arc;

use footbridge_shared::id::FootKey;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::Core;
use super::binding::{RECORD_KIND, parse_key};
use super::roster::Address;
use crate::domain::scope::Scope;
use crate::store::{Change, StoreResult};

/// Applies changes of bindings until the hub stops.
pub(super) async fn follow(core: Arc<Core>, mut changes: Receiver<Change>) {
    loop {
        let change = tokio::select! {
            biased;
            () = core.lifecycle.soft().cancelled() => return,
            change = changes.recv() => change,
        };
        let applied = match change {
            Ok(Change::Record { kind, key }) if kind == RECORD_KIND => match parse_key(&key) {
                Some((scope, address)) => core.read_binding(&scope, address).await,
                None => continue,
            },
            Ok(_) => continue,
            Err(RecvError::Lagged(_)) => core.compare_bindings().await,
            Err(RecvError::Closed) => return,
        };
        if let Err(error) = applied {
            // A foot that connects is checked against the store itself; what is stale here is only what is shown.
            tracing::warn!(error = &error as &dyn std::error::Error, "the bindings of foot names could not be read");
        }
    }
}

impl Core {
    /// Makes one name here what it is in the store. Held still, so that no foot takes a seat in between.
    async fn read_binding(&self, scope: &Scope, address: Address) -> StoreResult<()> {
        let held = self.bindings.hold(scope, &address).await;
        match held.bound_to().await? {
            Some(key) => self.roster_of(scope).bind(address, key),
            None => {
                if let Some(roster) = self.known(scope) {
                    roster.release(&address);
                }
            }
        }
        Ok(())
    }

    /// Learns the names that the store holds, before any foot is here.
    pub(super) async fn read_bindings(&self) -> StoreResult<()> {
        for (scope, address, key) in self.bindings.all().await? {
            self.roster_of(&scope).bind(address, key);
        }
        Ok(())
    }

    /// Makes all names here what they are in the store. What the store held a moment ago decides nothing: names that
    /// differ are read again one by one, held still.
    async fn compare_bindings(&self) -> StoreResult<()> {
        let mut stored: HashMap<(Scope, Address), FootKey> = HashMap::new();
        for (scope, address, key) in self.bindings.all().await? {
            stored.insert((scope, address), key);
        }
        let rosters: Vec<_> =
            self.rosters.read().iter().map(|(scope, roster)| (scope.clone(), roster.clone())).collect();
        let mut differ = Vec::new();
        for (scope, roster) in rosters {
            for (address, key) in roster.bound() {
                let place = (scope.clone(), address);
                if stored.remove(&place) != Some(key) {
                    differ.push(place);
                }
            }
        }
        for (scope, address) in differ.into_iter().chain(stored.into_keys()) {
            self.read_binding(&scope, address).await?;
        }
        Ok(())
    }
}

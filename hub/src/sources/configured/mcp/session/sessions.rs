//! The places for connections to one server: how many there are, and who may have them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use footbridge_shared::ErrorCode;
use parking_lot::Mutex;

use super::{Key, Session, Using};
use crate::sources::configured::mcp::dial::Unavailable;

/// Of the places for connections to one server one in so many is never the same subject's as all the rest: what it does
/// shuts out nobody else.
const ONE_IN_SO_MANY: usize = 8;

/// The sessions of one server.
#[derive(Default)]
pub(in super::super) struct Sessions(Mutex<HashMap<Key, Arc<Session>>>);

impl Sessions {
    /// The session of that key, and one that had to make room for it, of `most` that there may be, and of the subject's share
    /// of them.
    ///
    /// # Errors
    /// All are in use.
    pub(in super::super) fn of(&self, key: Key, most: usize) -> Result<(Using, Option<Arc<Session>>), Unavailable> {
        let mut sessions = self.0.lock();
        let mut evicted = None;
        if !sessions.contains_key(&key) {
            let share = most - most / ONE_IN_SO_MANY;
            let is_own = |session: &&Arc<Session>| key.subject().is_some() && session.key.subject() == key.subject();
            let (oldest, message) = if sessions.values().filter(is_own).count() >= share {
                let own = oldest(sessions.values().filter(is_own));
                (Some(own), format!("all {share} connections to the server that one subject may have are in use"))
            } else if sessions.len() >= most {
                (Some(oldest(sessions.values())), format!("all {most} connections to the server are in use"))
            } else {
                (None, String::new())
            };
            if let Some(oldest) = oldest {
                let oldest = oldest.map(|(_, session)| session.key.clone());
                evicted = oldest.and_then(|key| sessions.remove(&key));
                if evicted.is_none() {
                    return Err(Unavailable { code: ErrorCode::Overloaded, ..Unavailable::now(message) });
                }
            }
        }
        let session = sessions.entry(key.clone()).or_insert_with(|| Session::new(key)).clone();
        session.users.send_modify(|users| *users += 1);
        Ok((Using(session), evicted))
    }

    /// Takes one out that nobody uses; `false`: somebody does.
    pub(in super::super) fn take_unused(&self, session: &Arc<Session>) -> bool {
        let mut sessions = self.0.lock();
        let unused = *session.users.borrow() == 0;
        if unused && sessions.get(&session.key).is_some_and(|known| Arc::ptr_eq(known, session)) {
            sessions.remove(&session.key);
        }
        unused
    }

    /// Takes out those that nobody used for so long.
    pub(in super::super) fn take_idle(&self, for_so_long: Duration) -> Vec<Arc<Session>> {
        let mut sessions = self.0.lock();
        let idle = |session: &Arc<Session>| session.idle().is_some_and(|idle| idle >= for_so_long);
        let keys: Vec<Key> =
            sessions.values().filter(|session| idle(session)).map(|session| session.key.clone()).collect();
        keys.iter().filter_map(|key| sessions.remove(key)).collect()
    }

    /// For how long the one that was not used for longest was not; `None`: all are in use.
    pub(in super::super) fn longest_idle(&self) -> Option<Duration> {
        oldest(self.0.lock().values()).map(|(idle, _)| idle)
    }

    /// All.
    pub(in super::super) fn all(&self) -> Vec<Arc<Session>> {
        self.0.lock().values().cloned().collect()
    }
}

fn oldest<'a>(sessions: impl Iterator<Item = &'a Arc<Session>>) -> Option<(Duration, &'a Arc<Session>)> {
    sessions.filter_map(|session| Some((session.idle()?, session))).max_by_key(|(idle, _)| *idle)
}

//! All sessions of the hub: how many there may be, and when they end.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dashmap::DashMap;
use footbridge_mcp::{Raw, Version};
use footbridge_shared::ErrorCode;
use footbridge_shared::id::Subject;

use super::peer::View;
use super::session::{Opened, Session};
use crate::clock::random_bytes;
use crate::domain::failure::Failure;
use crate::domain::principal::Principal;
use crate::domain::scope::Scope;

/// Sessions of one hub.
pub(super) const MAX_SESSIONS: usize = 10_000;
/// Of these, those of one subject. When it opens one more, the one that it left alone the longest ends.
pub(super) const MAX_SESSIONS_OF_A_SUBJECT: usize = 256;
/// How long a session lives in which nothing happens.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Random bytes of a session's id, which is half a secret: it says whose session it is, beside the token.
const ID_BYTES: usize = 24;

/// The sessions.
#[derive(Default)]
pub(super) struct Sessions(DashMap<Arc<str>, Arc<Session>>);

impl Sessions {
    /// Opens one.
    ///
    /// # Errors
    /// There is no room.
    pub(super) fn open(
        &self,
        scope: Arc<Scope>,
        principal: &Principal,
        version: Version,
        capabilities: Raw,
        view: View,
    ) -> Result<Arc<Session>, Failure> {
        self.make_room(&principal.subject)?;
        let id: Arc<str> = URL_SAFE_NO_PAD.encode(random_bytes::<ID_BYTES>()).into();
        let subject = principal.subject.clone();
        let ended = principal.ended.child_token();
        let opened = Opened { id: id.clone(), scope, subject, version, capabilities, view, ended };
        let session = Arc::new(Session::new(opened));
        self.0.insert(id, session.clone());
        Ok(session)
    }

    fn make_room(&self, subject: &Subject) -> Result<(), Failure> {
        if self.0.len() < MAX_SESSIONS.min(MAX_SESSIONS_OF_A_SUBJECT) {
            return Ok(());
        }
        let own: Vec<Arc<Session>> =
            self.0.iter().filter(|session| session.subject == *subject).map(|session| session.clone()).collect();
        if own.len() < MAX_SESSIONS_OF_A_SUBJECT && self.0.len() < MAX_SESSIONS {
            return Ok(());
        }
        let idle = own.into_iter().filter_map(|session| Some((session.idle()?, session)));
        match idle.max_by_key(|(idle, _)| *idle) {
            Some((_, oldest)) => {
                self.remove(&oldest);
                Ok(())
            }
            None => Err(Failure::not_run(ErrorCode::Overloaded, "there are too many MCP sessions")
                .hint("end sessions with DELETE, or ask without one")),
        }
    }

    /// A session by its id, of this subject in this scope.
    pub(super) fn get(&self, id: &str, scope: &Scope, subject: &Subject) -> Option<Arc<Session>> {
        let session = self.0.get(id)?.clone();
        let own = *session.scope == *scope && session.subject == *subject;
        (own && !session.ended.is_cancelled()).then_some(session)
    }

    /// Ends one.
    pub(super) fn remove(&self, session: &Session) {
        self.0.remove(&session.id);
        session.end();
    }

    /// Ends those that were left alone, and those whose token has ended.
    pub(super) fn sweep(&self) {
        let over =
            |session: &Session| session.ended.is_cancelled() || session.idle().is_some_and(|idle| idle >= IDLE_TIMEOUT);
        let gone: Vec<Arc<Session>> =
            self.0.iter().filter(|session| over(session)).map(|session| session.clone()).collect();
        for session in gone {
            self.remove(&session);
        }
    }
}

#[cfg(test)]
mod tests {
    use footbridge_shared::id::{ProjectName, TenantName};
    use serde_json::value::RawValue;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::domain::principal::Reach;

    fn principal(subject: &str) -> Principal {
        Principal {
            token: "t".into(),
            subject: Subject::parse(subject).unwrap(),
            roles: Vec::new(),
            reach: Reach::HUB,
            act_as: Vec::new(),
            ended: CancellationToken::new(),
        }
    }

    fn scope(project: &str) -> Arc<Scope> {
        Arc::new(Scope::new(TenantName::parse("acme").unwrap(), ProjectName::parse(project).unwrap()))
    }

    fn open(sessions: &Sessions, by: &Principal) -> Arc<Session> {
        let none = RawValue::from_string("{}".to_owned()).unwrap();
        sessions.open(scope("web"), by, Version::V2025_11_25, none, View::All).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_is_its_subjects_in_its_scope_and_ends_with_its_token() {
        let (sessions, ann) = (Sessions::default(), principal("ann"));
        let session = open(&sessions, &ann);
        let found = |scope: &Scope, subject: &str| {
            sessions.get(&session.id, scope, &Subject::parse(subject).unwrap()).is_some()
        };
        assert!(found(&scope("web"), "ann"));
        assert!(!found(&scope("app"), "ann"));
        assert!(!found(&scope("web"), "bob"));
        ann.ended.cancel();
        assert!(!found(&scope("web"), "ann"));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_left_alone_ends_and_one_that_is_listened_to_does_not() {
        let (sessions, ann) = (Sessions::default(), principal("ann"));
        let (idle, listened) = (open(&sessions, &ann), open(&sessions, &ann));
        let listening = listened.listen();
        tokio::time::advance(IDLE_TIMEOUT).await;
        sessions.sweep();
        assert!(idle.ended.is_cancelled() && !listened.ended.is_cancelled());
        drop(listening);
        tokio::time::advance(IDLE_TIMEOUT).await;
        sessions.sweep();
        assert!(listened.ended.is_cancelled() && sessions.0.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_subject_that_opens_too_many_loses_its_oldest_and_nobody_elses() {
        let (sessions, ann, bob) = (Sessions::default(), principal("ann"), principal("bob"));
        let bobs = open(&sessions, &bob);
        tokio::time::advance(Duration::from_secs(1)).await;
        let first = open(&sessions, &ann);
        tokio::time::advance(Duration::from_secs(1)).await;
        for _ in 0..MAX_SESSIONS_OF_A_SUBJECT {
            open(&sessions, &ann);
        }
        assert!(first.ended.is_cancelled() && !bobs.ended.is_cancelled());
        assert_eq!(sessions.0.len(), MAX_SESSIONS_OF_A_SUBJECT + 1);
    }
}
